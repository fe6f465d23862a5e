"""Runs in a process of its own, on the backend of KERAS_BACKEND.

worker.py save FOLDER             saves every case, and its answers before and after more training
worker.py load FOLDER OUT CASES   loads the cases (all, or one's name) of FOLDER, answers, trains
                                  on, answers again; writes OUT
"""

import os
import sys

import keras
import numpy as np

import bert_keras

TEXTS = ["a b c", "d e f g", "h", "a a a b b", "g f e d c b a", "b c"] * 4
LABELS = [0, 1, 1, 0, 1, 0] * 4
LETTERS = "abcdefgh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + x for x in LETTERS)]
WORDS = [text.split() for text in TEXTS[:6]]


def parts():
    backbone = bert_keras.BertBackbone(
        len(VOCABULARY),
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        dropout=0.0,
        max_sequence_length=16,
    )
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    return {"backbone": backbone, "preprocessor": preprocessor}


def classifier(optimizer=None, **options):
    task = bert_keras.TextClassifier(**parts(), label_names=["no", "yes"], **options)
    schedule = bert_keras.WarmupDecay(1e-3, total_steps=12)
    task.compile(optimizer=bert_keras.AdamW(schedule, **(optimizer or {})))
    return task


# Saved in the middle of training, which goes on after loading.
TRAINED = {
    "schedule": classifier,
    "one_layer_frozen_and_averages": lambda: classifier(
        {"use_ema": True, "ema_momentum": 0.9}, frozen=1
    ),
    "adapters": lambda: classifier(lora_rank=2),
}


# Every other task -> how to make it, and its answers as arrays.
OTHERS = {
    "tagger": (
        lambda: bert_keras.TokenClassifier(**parts(), num_classes=3),
        lambda task: task.predict(WORDS, verbose=0),
    ),
    "crf_tagger": (
        lambda: bert_keras.TokenClassifier(**parts(), num_classes=3, crf=True),
        lambda task: task.predict(WORDS, verbose=0),
    ),
    "question_answering": (
        lambda: bert_keras.QuestionAnswering(**parts()),
        lambda task: [
            [answer["probability"], answer["start"]] for answer in task.answer(["a"] * 6, TEXTS[:6])
        ],
    ),
    "multiple_choice": (
        lambda: bert_keras.MultipleChoice(**parts()),
        lambda task: task.predict((TEXTS[:4], [["a", "b c"]] * 4), verbose=0),
    ),
    "long_text_classifier": (
        lambda: bert_keras.LongTextClassifier(**parts(), num_classes=2, combine="self_attention"),
        lambda task: task.predict(["a b c d e f g h " * 4] * 3, verbose=0),
    ),
    "embedder": (lambda: bert_keras.TextEmbedder(**parts()), lambda task: task.embed(TEXTS)),
    "masked_lm": (
        lambda: bert_keras.MaskedLM(**parts()),
        lambda task: task.score(TEXTS[:6]),
    ),
    "next_sentence": (
        lambda: bert_keras.NextSentencePrediction(**parts()),
        lambda task: task.predict((TEXTS[:6], TEXTS[6:12]), verbose=0),
    ),
    "pretraining": (
        lambda: bert_keras.Pretraining(**parts()),
        lambda task: [answer["probability"] for answer in task.is_next(TEXTS[:6], TEXTS[6:12])],
    ),
}


def train(task, first, last):
    task.fit(
        TEXTS, LABELS, batch_size=8, initial_epoch=first, epochs=last, shuffle=False, verbose=0
    )


def answers(name, task):
    found = task.predict(TEXTS, verbose=0) if name in TRAINED else OTHERS[name][1](task)
    return np.concatenate([np.ravel(np.asarray(part, "float64")) for part in found])


def save(folder):
    found = {}
    for name in (*TRAINED, *OTHERS):
        keras.utils.set_random_seed(7)
        task = TRAINED[name]() if name in TRAINED else OTHERS[name][0]()
        if name in TRAINED:
            train(task, 0, 2)
        task.save(os.path.join(folder, f"{name}.keras"))
        collect(name, task, found)
    np.savez(os.path.join(folder, "answers.npz"), **found)


def load(folder, out, cases):
    found = {}
    for name in (*TRAINED, *OTHERS) if cases == "all" else (cases,):
        collect(name, keras.models.load_model(os.path.join(folder, f"{name}.keras")), found)
    np.savez(out, **found)


def collect(name, task, found):
    found[name] = answers(name, task)
    if name in TRAINED:
        train(task, 2, 4)
        found[f"{name}, trained on"] = answers(name, task)


{"save": save, "load": load}[sys.argv[1]](*sys.argv[2:])
