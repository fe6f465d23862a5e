"""Programs of users, for a type checker: marked lines are wrong, all others are right."""

from typing import assert_type

import keras
import numpy as np

import bert_keras

TEXTS = ["a good film", "a bad one"]


def classify() -> str:
    classifier = bert_keras.TextClassifier.from_preset(
        "bert_mini_en_gutenberg",
        num_classes=2,
        label_names=["bad", "good"],
        problem_type="single_label",
        max_length=64,
        backbone={"dropout": 0.0},
    )
    classifier.compile("lamb", learning_rate=1e-3, lr_schedule="cosine", metrics=["accuracy"])
    history = classifier.fit(
        TEXTS, ["good", "bad"], epochs=2, validation_split=0.5, class_weight="balanced", verbose=0
    )
    classifier.evaluate((TEXTS, TEXTS), [1, 0], return_dict=True)["loss"].is_integer()
    classifier.fit({"token_ids": np.ones((2, 8), "int32")}, [1, 0], frozen=3)  # wrong
    classifier.fit(TEXTS, epoch=3)  # wrong
    classifier.compile(lr_schedule="exponential")  # wrong
    classifier.fit(TEXTS, [1, 0], verbose="loud")  # wrong
    classifier.compile(learning_rate="fast")  # wrong
    bert_keras.TextClassifier(classifier.backbone, num_labels=2)  # wrong
    bert_keras.TextClassifier(classifier.backbone, 2, problem_type="multilabel")  # wrong
    bert_keras.LongTextClassifier(classifier.backbone, 2, head_options={})  # wrong
    bert_keras.TextClassifier.from_preset("p", load_weights="no")  # wrong
    assert_type(classifier, bert_keras.TextClassifier)
    answers = classifier.classify(TEXTS)
    label: str = classifier.classify("a film")["label"]
    return label + str(answers[0]["label"] == history.history)


def answer() -> list[str]:
    tagger = bert_keras.TokenClassifier.from_preset("p", num_classes=3, crf=True)
    places = [(entity["start"], entity["end"]) for entity in tagger.tag("Ada")["entities"]]
    model = bert_keras.MaskedLM.from_preset("p", masking={"rate": 0.3})
    (token, probability), *_ = model.fill_mask("a [MASK]", top_k=3)[0]
    reader = bert_keras.QuestionAnswering.from_preset("p", stride=64)
    best = reader.answer("who?", "Ada", no_answer=False, max_answer_length=4)
    several = reader.answer(["who?"], "Ada", top_k=2)
    chooser = bert_keras.MultipleChoice.from_preset("p", frozen="backbone")
    bert_keras.MultipleChoice(chooser.backbone, frozen="everything")  # wrong
    chooser.predict((TEXTS, [TEXTS, TEXTS]), callback=[])  # wrong
    finder = bert_keras.ZeroShotTagger.from_preset("p", max_width=8)
    assert_type(finder, bert_keras.ZeroShotTagger)
    bert_keras.ZeroShotTagger(finder.backbone, span_mode="wide")  # wrong
    embedder = bert_keras.TextEmbedder.from_preset("p", pooling="mean", lora_rank=8)
    hits = embedder.semantic_search("film", TEXTS)
    follows = bert_keras.NextSentencePrediction.from_preset("p").is_next("a", "b")["is_next"]
    index = chooser.choose("a", ["b", "c"])["index"]
    return [
        token,
        best["answer"],
        several[0][1]["answer"],
        f"{places}{hits[0]['score']}{hits[0]['text']}{index}",
    ] * (follows + (probability > 0.5))


def parts() -> keras.Model:
    vocabulary = bert_keras.train_wordpiece(texts=TEXTS, vocabulary_size=30)
    tokenizer = bert_keras.WordPieceTokenizer(vocabulary, lowercase=True)
    assert_type(tokenizer("a film"), list[int])
    assert_type(tokenizer(TEXTS), list[list[int]])
    assert_type(tokenizer.tokenize("a film"), list[str])
    assert_type(tokenizer.detokenize([5, 6]), str)
    tokenizer.encode("a film").offsets[0][0].bit_length()
    tokenizer.encode("a film").ids.upper()  # wrong
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=64, truncation="head_tail")
    bert_keras.TextPreprocessor("vocab.txt")  # wrong
    bert_keras.Tokenizer.load("folder", lowercase=False, mask_token="<mask>")
    backbone = bert_keras.BertBackbone(
        tokenizer.vocabulary_size, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16
    )
    bert_keras.BertBackbone(30, 2, 2, 8, 16, max_sequence_length="512")  # wrong
    backbone(preprocessor(TEXTS), return_hidden_states=True)["hidden_states"]
    rates = bert_keras.layer_wise_decay(backbone, rate=0.95)
    bert_keras.AdamW(bert_keras.WarmupDecay(1e-3, 100), learning_rate_multipliers=rates)
    bert_keras.AdamW(weight_decay="no")  # wrong
    bert_keras.layers.Pooler(8, units=8)  # wrong
    bert_keras.layers.CRF(num_tags=3, name="crf").decode(np.zeros((1, 2, 3)))
    examples, _ = bert_keras.datasets.load_sentiment_sentences("folder")
    task = bert_keras.Pretraining(backbone, preprocessor, frozen=1, lora_rank=None, name="task")
    task.fit((examples.texts, examples.texts), examples.labels, callbacks=[])
    return task


class Grader(bert_keras.Task):
    """A user's own task has its own arguments."""

    def __init__(self, backbone: bert_keras.BertBackbone, num_grades: int = 3) -> None:
        super().__init__(backbone, frozen="embeddings")
        self.num_grades = num_grades


def subclasses() -> int:
    return Grader.from_preset("p", num_grades=5).num_grades
