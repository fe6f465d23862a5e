"""Saves or loads tasks in processes of its own, on the backend of KERAS_BACKEND.

It reads jobs from standard input, a JSON list a line. Each runs in a fork of this process, which
has imported all modules and computed nothing. It prints each job's exit code.

["save", FOLDER]        saves each case that a backend loads, those of TRAINED in the middle of a
                        `fit` that continues, and the answers at that moment and at the end
["load", FOLDER, ...]   loads cases of each FOLDER, which is named after the backend that saved it,
                        answers, trains to the end, answers again; writes FOLDER/<backend>.npz
"""

import functools
import json
import multiprocessing
import os
import pathlib
import random
import sys
import warnings

if os.environ["KERAS_BACKEND"] != "tensorflow":
    sys.modules["tensorflow"] = None  # Keras would import it to save a file.
# Keras would import them for its plots, wrappers, tables, and JAX checkpoints.
unused = {"matplotlib", "sklearn", "pandas", "jax"} - {os.environ["KERAS_BACKEND"]}
sys.modules |= dict.fromkeys(unused)

import keras
import numpy as np
from small_tokenizers import SPECIAL_TOKENS, byte_pair_tokenizer
from tiny import tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.datasets import load_sentiment_sentences

SIZES = {"num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32, "max_sequence_length": 16}
SIZES["initializer_range"] = 0.2
TEXTS = ["a b c", "d e f g", "h", "a a a b b", "g f e d c b a", "b c"] * 4
LABELS = [0, 1, 1, 0, 1, 0] * 4
WORDS, PAIRS = [text.split() for text in TEXTS[:6]], (TEXTS[:6], TEXTS[6:12])
# Texts that the families are trained on.
ROOT = pathlib.Path(__file__).parents[2]
_TRAIN, _ = load_sentiment_sentences(ROOT / "examples" / "data" / "sentiment_labelled_sentences")
SENTENCES = (list(_TRAIN.texts[:24]), list(_TRAIN.labels[:24]))
# An epoch of a family is one batch, of other cases three: the file of "schedule" is written between
# the two batches of an update.
EPOCHS, SAVED_AFTER = 2, 1


def parts(dropout=0.0, dtype=None):
    backbone = tiny_backbone(dropout=dropout, initializer_range=0.2, dtype=dtype)
    return {"backbone": backbone, "preprocessor": tiny_preprocessor()}


def classifier(recipe=None, dropout=0.0, dtype=None, **options):
    task = bert_keras.TextClassifier(**parts(dropout, dtype), label_names=["no", "yes"], **options)
    task.compile(**(recipe or {"learning_rate": 3e-3}))
    return task


@functools.cache
def byte_pairs():
    return byte_pair_tokenizer(SENTENCES[0], 350)


@functools.cache
def word_pieces():
    vocabulary = bert_keras.train_wordpiece(texts=SENTENCES[0], vocabulary_size=350)
    return bert_keras.WordPieceTokenizer(vocabulary)


def mpnet_pieces():
    vocabulary = [*SPECIAL_TOKENS[:4], *word_pieces().vocabulary, "<mask>"]
    return bert_keras.WordPieceTokenizer(vocabulary)


def of_family(make, tokenizer, recipe=None, frozen=None, lora_rank=None, **options):
    options = {"num_layers": 1, "dropout": 0.0, **SIZES, **options}
    backbone = make(vocabulary_size=tokenizer.vocabulary_size, **options)
    # One length, so that one program is compiled.
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    options = {"dropout": 0.0, "frozen": frozen, "lora_rank": lora_rank}
    task = bert_keras.TextClassifier(backbone, 2, preprocessor, **options)
    task.compile(**{"learning_rate": 3e-3, **(recipe or {})})
    return task


def own_optimizer():
    schedule = bert_keras.WarmupDecay(3e-3, total_steps=3 * EPOCHS)
    return bert_keras.AdamW(schedule, gradient_accumulation_steps=2)


# Tasks saved in the middle of training, which resumes after loading: every family, some of them
# with what else a file must keep.
TRAINED = {
    "schedule": lambda: classifier({"optimizer": own_optimizer()}),
    "roberta_adapters_by_lamb": lambda: of_family(
        bert_keras.RobertaBackbone,
        byte_pairs(),
        {"optimizer": "lamb", "learning_rate": 3e-2, "lr_schedule": "cosine"},
        lora_rank=2,
    ),
    "albert": lambda: of_family(bert_keras.AlbertBackbone, word_pieces(), num_layers=2),
    "distilbert_frozen_and_averages": lambda: of_family(
        bert_keras.DistilBertBackbone, word_pieces(), {"ema_momentum": 0.9}, frozen=1, num_layers=2
    ),
    "electra": lambda: of_family(bert_keras.ElectraBackbone, word_pieces(), embedding_dim=8),
    "mpnet": lambda: of_family(bert_keras.MPNetBackbone, mpnet_pieces()),
    "deberta": lambda: of_family(
        bert_keras.DebertaV2Backbone, word_pieces(), num_buckets=6, max_distance=9
    ),
    "nomic_bert": lambda: of_family(bert_keras.NomicBertBackbone, word_pieces()),
    "modernbert": lambda: of_family(bert_keras.ModernBertBackbone, byte_pairs(), num_layers=2),
    # Bit for bit on its own backend. Others draw other masks and round differently.
    "dropout_in_float16": lambda: classifier(dropout=0.1, dtype="mixed_float16"),
}
# Cases that each backend loads itself, to resume training bit for bit.
OWN = ("schedule", "dropout_in_float16", "roberta_adapters_by_lamb")
# Cases of the families, trained on sentences.
FAMILIES = tuple(name for name in TRAINED if name not in OWN[:2])
# Cases that each backend loads from each other one: the optimizer keeps more than weights and
# moments.
NINE = ("schedule", "roberta_adapters_by_lamb", "distilbert_frozen_and_averages")


def quantized():
    task = classifier()
    with warnings.catch_warnings():  # Keras warns of each layer that has nothing to quantize.
        warnings.simplefilter("ignore")
        task.quantize("int8")
    return task


def crf_tagger():
    """A tagger whose CRF is not zero, so that a file that lacks it makes a difference."""
    task = bert_keras.TokenClassifier(**parts(), num_classes=3, crf=True)
    rng = np.random.default_rng(7)
    for variable in task.head.crf.variables:
        variable.assign(rng.normal(size=variable.shape))
    return task


def making(name, **options):
    return lambda: getattr(bert_keras, name)(**parts(), **options)


def predicting(texts):
    return lambda task: task.predict(texts, verbose=0)


# Every other task -> how to make it, and its answers as arrays.
OTHERS = {
    "quantized": (quantized, predicting(TEXTS)),
    "several_labels": (
        making("TextClassifier", num_classes=3, problem_type="multi_label"),
        predicting(TEXTS),
    ),
    "score": (
        making("TextClassifier", num_classes=1, problem_type="regression"),
        predicting(TEXTS),
    ),
    "tagger": (making("TokenClassifier", num_classes=3), predicting(WORDS)),
    "crf_tagger": (
        crf_tagger,
        lambda task: [*task.predict(WORDS, verbose=0), *task.predict_tags(WORDS)],
    ),
    "question_answering": (making("QuestionAnswering"), predicting(PAIRS)),
    "multiple_choice": (making("MultipleChoice"), predicting((TEXTS[:4], [["a", "b c"]] * 4))),
    "long_text_classifier": (
        making("LongTextClassifier", num_classes=2, combine="max"),
        predicting(["a b c d e f g h " * 4] * 3),
    ),
    "zero_shot_tagger": (
        making("ZeroShotTagger", dim=8),
        lambda task: [
            entity["score"]
            for answer in task.tag(TEXTS[:6], ["a", "b c"], 0.0)
            for entity in answer["entities"]
        ],
    ),
    "embedder": (making("TextEmbedder"), lambda task: task.embed(TEXTS)),
    "masked_lm": (making("MaskedLM"), lambda task: task.score(TEXTS[:6])),
    "next_sentence": (making("NextSentencePrediction"), predicting(PAIRS)),
    "span_boundary": (making("SpanBoundary"), predicting(["a [MASK] [MASK] b"] * 3)),
    "pretraining": (making("Pretraining"), predicting(PAIRS)),
}
CASES = (*TRAINED, *OTHERS)
BACKENDS = ("tensorflow", "jax", "torch")


def is_loaded(name, saver, loader):
    """Whether a backend loads a case that itself or another backend has saved.

    One backend after the other saves a case, which both others load. With ALL_PAIRS=1 everything
    is loaded in all nine directions.
    """
    if "ALL_PAIRS" in os.environ:
        return True
    if saver == loader:
        return name in OWN
    return name in NINE or saver == BACKENDS[CASES.index(name) % 3]


class InTheMiddle(keras.callbacks.Callback):
    """Saves the task and records its answers during `fit`."""

    def __init__(self, name, path, found):
        super().__init__()
        self.name, self.path, self.found = name, path, found

    def on_epoch_end(self, epoch, logs=None):
        if epoch + 1 == SAVED_AFTER:
            # Before saving: torch's loader draws a random number, so the state must be saved after.
            self.found[self.name] = answers(self.name, self.model)
            self.model.save(self.path)


def train(name, task, found, first=0, callbacks=()):
    texts, labels = SENTENCES if name in FAMILIES else (TEXTS, LABELS)
    options = {"batch_size": 24 if name in FAMILIES else 8, "epochs": EPOCHS, "verbose": 0}
    task.fit(texts, labels, initial_epoch=first, callbacks=list(callbacks), **options)
    found[f"{name}, trained on"] = answers(name, task)


def answers(name, task):
    texts = SENTENCES[0] if name in FAMILIES else TEXTS
    # To trace it takes longer on TensorFlow. JAX would compile each operation.
    trains_eagerly, task.run_eagerly = task.run_eagerly, keras.backend.backend() != "jax"
    found = task.predict(texts, verbose=0) if name in TRAINED else OTHERS[name][1](task)
    task.run_eagerly = trains_eagerly
    return np.concatenate([np.ravel(np.asarray(x, "float64")) for x in keras.tree.flatten(found)])


def opened(name, open, is_own=True):
    """Returns a task that is made or loaded. On TensorFlow all but one run without a graph.

    Tracing takes most of the time there. XLA compiles "schedule" where it is saved and where its
    own backend resumes it. No graph is rewritten.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        tf.config.run_functions_eagerly(name != "schedule" or not is_own)
    return open()


def save(folder):
    found, saver = {}, keras.backend.backend()
    for name in CASES:
        if not any(is_loaded(name, saver, loader) for loader in BACKENDS):
            continue
        keras.utils.set_random_seed(7)
        path = os.path.join(folder, f"{name}.keras")
        make = TRAINED[name] if name in TRAINED else OTHERS[name][0]
        task = opened(name, make)
        if name in TRAINED:
            train(name, task, found, callbacks=[InTheMiddle(name, path, found)])
        else:
            task.save(path)
            found[name] = answers(name, task)
    np.savez(os.path.join(folder, "answers.npz"), **found)


def load(*folders):
    loader = keras.backend.backend()
    for folder in folders:
        found, saver = {}, os.path.basename(folder)
        for name in CASES:
            if is_loaded(name, saver, loader):
                path = os.path.join(folder, f"{name}.keras")
                load_model = functools.partial(keras.models.load_model, path)
                task = opened(name, load_model, is_own=saver == loader)
                found[name] = answers(name, task)
                if name in TRAINED:
                    train(name, task, found, first=SAVED_AFTER)
        np.savez(os.path.join(folder, f"{loader}.npz"), **found)


def run(job, *arguments):
    os.dup2(2, 1)  # What a job prints is no exit code.
    random.seed()  # As in a process that was started anew.
    np.random.seed()
    {"save": save, "load": load}[job](*arguments)


for line in sys.stdin:
    process = multiprocessing.get_context("fork").Process(target=run, args=json.loads(line))
    process.start()
    process.join()
    print(process.exitcode, flush=True)
