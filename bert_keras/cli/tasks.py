"""The tasks that `train` knows, a row each: its examples, its model, its scores and its flags."""

from collections.abc import Callable
from typing import NamedTuple

import bert_keras
from bert_keras.answers.entity_tags import SCHEMES
from bert_keras.cli import likeness, pictures, scores
from bert_keras.cli import training_files as data
from bert_keras.cli.options import Option
from bert_keras.training import CosineRegression, MultipleNegativesRanking

CUTS = ("head", "tail", "head_tail")
MEASURING = ("sklearn", "scipy")
COMBINATIONS = ("mean", "max", "self_attention")

FILES = (
    Option("data_dir", str, None, "Folder with the dataset's original files."),
    Option("train_file", str, None, "File to train on, instead of --data_dir."),
    Option("dev_file", str, None, "File to measure on; else a part of --train_file is."),
    Option("test_file", str, None, "File to predict; measured too where it has labels."),
    Option(
        "sample",
        int,
        None,
        "Train on this many examples, drawn by --seed. What is measured on stays whole, but for "
        "the tasks where that takes hours, of long texts and questions: there it is cut likewise.",
        1,
    ),
)
COLUMNS = (
    Option("dataset", str, None, "Name of the dataset, where --data_dir does not tell."),
    Option(
        "text_column",
        str,
        "text",
        "Name of the text's column in files; or its number from 0, where all columns are numbers "
        "and the first row is an example, no header.",
    ),
    Option("label_column", str, "label", "Name or number of the label's column."),
    Option("separator", str, None, "What stands between columns, where the file does not tell."),
)
PAIR = (Option("pair_column", str, None, "Name or number of the second text's column."),)
LABELS = (
    Option(
        "problem_type",
        ("single_label", "multi_label", "regression"),
        "single_label",
        "What the labels of files are.",
    ),
    Option("label_separator", str, ",", "With multi_label: what stands between labels."),
)
TAGS = (
    Option(
        "scheme",
        SCHEMES,
        None,
        "Count only the entities that this scheme allows; by default what conlleval counts.",
    ),
    Option("word_column", int, None, "Column of the words, from 0; by default as usual."),
    Option("tag_column", int, None, "Column of the tags, from 0; -1 is the last."),
)
POOLING = Option(
    "pooling", str, None, "pooler, cls, mean or max; without it as the checkpoint's family has it."
)


class Recipe(NamedTuple):
    """What there is to know of a task. No other code of the command knows its name.

    Args:
        about: str, the task in a sentence.
        task: class of the model.
        read: function of the flags, returns `Parts`.
        fit: function of the flags and `Parts`, returns what `fit` takes.
        evaluate: function of flags, model, examples and `Parts.further`, returns scores, the main
            one first, none without labels, and a function that returns the answers by file name.
        data: `Option`s beside `FILES`.
        model: `Option`s that `from_preset` takes under these names, where they are given.
        settings: function of the flags and the training examples, what else it takes.
        training: further `Option`s.
        compile: function of the flags, what else `compile` takes.
        defaults: dict of flags whose default differs.
        cuts_all: bool, whether `--sample` cuts what is measured on too.
        before: function of flags, a maker of models and `Parts`: scores to compare with, by name.
        after: function of flags, model and `Parts`: thresholds, and further scores.
        make: function of flags, setting and arguments that returns the model.
        answer: function of the model and some examples, returns lines for people.
        check: function of the model and `Parts`, which raises where measuring would fail later.
        draw: function of the model, `Parts` and a folder, which writes pictures there.
        keeps_answers: bool, whether those on the dev set are written too.
        needs: packages that measuring takes.
    """

    about: str
    task: type
    read: Callable
    fit: Callable
    evaluate: Callable
    answer: Callable
    data: tuple = ()
    model: tuple = ()
    settings: Callable = lambda given, parts: {}
    training: tuple = ()
    compile: Callable = lambda given: {}
    defaults: dict = {}  # noqa: RUF012
    cuts_all: bool = False
    before: Callable = lambda given, make, parts: {}
    after: Callable = lambda given, model, parts: (None, {})
    make: Callable = lambda recipe, given, setting, options: recipe.task.from_preset(
        given.preset, **options
    )
    check: Callable = lambda model, parts: None
    draw: Callable = lambda model, parts, folder: None
    keeps_answers: bool = False
    needs: tuple = ()


def _columns(x, y):
    """Returns a function that gives `fit` these fields of the examples, and those of dev."""

    def of(examples):
        texts = tuple(getattr(examples, n) for n in x) if isinstance(x, tuple) else None
        return getattr(examples, x) if texts is None else texts, getattr(examples, y)

    def fit(given, parts):
        return dict(zip("xy", of(parts.train), strict=True), validation_data=of(parts.dev))

    return fit


def _pairs(given, parts):
    if given.objective == "ranking":
        return dict(zip("xy", likeness.true_pairs(parts.train), strict=True))
    return {"x": parts.train.texts, "y": parts.train.labels}


def _names_of_labels(given, parts):
    train = parts.train
    return {
        "num_classes": max(1, len(train.label_names)),
        "label_names": train.label_names or None,
        "problem_type": train.problem_type,
    }


def _thresholds(given, model, parts):
    if parts.train.problem_type != "multi_label":
        return None, {}
    return scores.tune_thresholds(given, model, parts)


def _by_strategy(recipe, given, setting, options):
    """Returns a classifier that reads documents by a strategy."""
    strategy = setting["strategy"]
    options.pop("problem_type")
    windows = {name: options.pop(name, None) for name in ("num_windows", "stride", "keep")}
    if strategy in CUTS:
        return bert_keras.TextClassifier.from_preset(given.preset, truncation=strategy, **options)
    windows["truncation"] = windows.pop("keep")
    return recipe.task.from_preset(given.preset, combine=strategy, **windows, **options)


def _untrained(given, make, parts):
    found, _ = likeness.evaluate_pairs(given, make(), parts.dev, {})
    print("Before training:", found)
    return {"untrained": found}


def _cut(model, parts):
    for examples in filter(None, (parts.dev, parts.test)):
        model.cut(examples)  # Raises now, and not after hours, where a question has no token.


def _ranking(given):
    if given.objective == "ranking":
        return {"loss": MultipleNegativesRanking(given.scale, given.symmetric)}
    return {"loss": CosineRegression()}


# Answers for people


def _classes(model, few):
    texts = zip(*few.texts, strict=True) if isinstance(few.texts, tuple) else few.texts
    for text, found, label in zip(texts, model.classify(few.texts), few.labels, strict=True):
        share = found["probabilities"][found["label"]] if "label" in found else 0
        told = f"{found['label']} {share:.3f}" if "label" in found else _told(found)
        yield f"{told}  ({_right(label, few.label_names)})  {str(text)[:200]}"


def _told(found):
    return ", ".join(found["labels"]) or "none" if "labels" in found else f"{found['score']:.2f}"


def _right(label, names):
    if getattr(label, "ndim", 0):
        return ", ".join(name for name, is_true in zip(names, label, strict=True) if is_true)
    return names[label] if names else f"{label:.2f}"


def _tags(model, few):
    for found in model.tag(few.words):
        entities = [f"{e['text']} ({e['type']} {e['score']:.2f})" for e in found["entities"]]
        told = ", ".join(entities) or " ".join(f"{word}/{tag}" for word, tag in found["words"])
        yield f"{found['text']}  ->  {told}"


def _spans(model, few):
    return [f"{e.question}  {model.answer(e.question, e.context)}" for e in few]


def _choices(model, few):
    answers = model.choose(few.contexts, few.choices)
    for context, found in zip(few.contexts, answers, strict=True):
        yield f"{context}  ->  {found['choice']} ({found['probabilities'][found['index']]:.2f})"


def _hits(model, few):
    query, documents = few.texts[0][0], few.texts[1]
    yield f"nearest to {query!r}:"
    for hit in model.semantic_search(query, documents, top_k=3):
        yield f"{hit['score']:.3f}  {hit['text']}"


RECIPES = {
    "text_classification": Recipe(
        "Classify texts or pairs of texts, or score them.",
        bert_keras.TextClassifier,
        data.read_texts,
        _columns("texts", "labels"),
        scores.evaluate_texts,
        _classes,
        data=(*COLUMNS, *PAIR, *LABELS),
        model=(
            POOLING,
            Option("truncation", str, "longest_first", "How long texts are cut."),
        ),
        settings=_names_of_labels,
        training=(
            Option("label_smoothing", float, 0.0, "Share of the probability of all classes alike."),
            Option("baselines", bool, False, "Also measure the majority and a frozen encoder."),
        ),
        compile=lambda given: {"label_smoothing": given.label_smoothing},
        before=scores.baselines,
        needs=MEASURING,
        after=_thresholds,
        draw=pictures.of_texts,
    ),
    "long_text_classification": Recipe(
        "Classify documents longer than the model reads: cut them, or read them in windows.",
        bert_keras.LongTextClassifier,
        data.read_texts,
        _columns("texts", "labels"),
        scores.evaluate_texts,
        _classes,
        data=COLUMNS,
        model=(
            POOLING,
            Option("num_windows", int, 4, "The most windows that are read of a document.", 1),
            Option("stride", int, None, "Tokens between windows' beginnings; else no overlap.", 1),
            Option("keep", CUTS, "head", "Which windows stay of a document that has more."),
        ),
        settings=_names_of_labels,
        training=(
            Option(
                "strategy",
                (*CUTS, *COMBINATIONS),
                ["head_tail"],
                "Head, tail or both of --max_length tokens, or windows that are combined so.",
                is_list=True,
            ),
        ),
        cuts_all=True,
        make=_by_strategy,
        draw=pictures.of_classes,
        needs=MEASURING,
    ),
    "token_classification": Recipe(
        "Tag words: named entities, or parts of speech.",
        bert_keras.TokenClassifier,
        data.read_tags,
        _columns("words", "tags"),
        scores.evaluate_tags,
        _tags,
        data=TAGS,
        model=(Option("crf", bool, False, "Score whole sequences of tags by a random field."),),
        settings=lambda given, parts: {
            "num_classes": len(parts.further["tags"]),
            "label_names": parts.further["tags"],
        },
        draw=pictures.of_tags,
    ),
    "question_answering": Recipe(
        "Answer questions by a span of a text.",
        bert_keras.QuestionAnswering,
        data.read_questions,
        lambda given, parts: {"x": parts.train},
        scores.evaluate_questions,
        _spans,
        data=(
            Option(
                "metric",
                ("squad_v1", "squad_v2", "cmrc"),
                None,
                "Official score; by default cmrc for files named cmrc or drcd, squad_v2 where "
                "questions have no answer, else squad_v1.",
            ),
            Option("n_best", int, 20, "Answers a question in nbest_predictions.json.", 1),
        ),
        model=(
            Option("stride", int, 128, "Tokens between the beginnings of two windows.", 1),
            Option("max_question_length", int, 64, "Tokens that stay of a question.", 1),
            Option("max_answer_length", int, 30, "Tokens of the longest answer.", 1),
            Option(
                "normalization",
                ("document", "per_window"),
                "document",
                "Over what probabilities sum to 1.",
            ),
        ),
        defaults={"max_length": 384},
        check=_cut,
        cuts_all=True,
        keeps_answers=True,
    ),
    "multiple_choice": Recipe(
        "Pick the right one of several endings, answers or causes.",
        bert_keras.MultipleChoice,
        data.read_choices,
        _columns(("contexts", "choices"), "labels"),
        scores.evaluate_choices,
        _choices,
        model=(POOLING,),
    ),
    "text_embedding": Recipe(
        "Embed texts so that the cosines of their vectors tell likeness.",
        bert_keras.TextEmbedder,
        likeness.read_pairs,
        _pairs,
        likeness.evaluate_pairs,
        _hits,
        data=(
            *COLUMNS,
            *PAIR,
            Option("highest_score", float, 1.0, "In files, the score of equal meaning.", 1e-6),
        ),
        model=(
            POOLING,
            Option("objective", ("similarity", "ranking"), "similarity", "What to train for."),
        ),
        training=(
            Option("scale", float, 20.0, "What ranking multiplies cosines by."),
            Option("symmetric", bool, False, "Let positives look for their anchors too."),
        ),
        compile=_ranking,
        defaults={"max_length": None},
        before=_untrained,
        draw=pictures.of_pairs,
        needs=MEASURING,
    ),
}
