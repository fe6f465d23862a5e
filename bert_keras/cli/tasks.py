"""The tasks that `train` knows, one row each: its data, its model, its scores and its flags."""

from collections.abc import Callable
from typing import NamedTuple

import bert_keras
from bert_keras import datasets
from bert_keras.answers.entity_tags import SCHEMES
from bert_keras.cli import likeness, pictures, scores, training_files, verdict
from bert_keras.cli.options import LAYOUT, Option
from bert_keras.cli.text_rows import in_words
from bert_keras.training import CosineRegression, MultipleNegativesRanking

TRUNCATIONS = ("head", "tail", "head_tail")
SCORING_PACKAGES = ("sklearn", "scipy")
COMBINATIONS = ("mean", "max", "self_attention")
SAMPLE = (
    "Train on this many examples, drawn by --seed. Other sets stay whole, except long texts and "
    "questions, which take hours to measure."
)
FILES = (
    Option("data_dir", str, None, "Folder with the dataset's original files."),
    Option("train_file", str, None, "File to train on, instead of --data_dir."),
    Option("dev_file", str, None, "File to measure on; without it, a part of --train_file."),
    Option("test_file", str, None, "File to predict, and to measure on if it has labels."),
    Option("sample", int, None, SAMPLE, 1),
)
TEXT_COLUMN = (
    "Name of the text's column in files, or its number from 0, if all columns are numbers and the "
    "first row is an example instead of a header."
)
LABEL_COLUMN = (
    "Name or number of the label's column; with multi_label also several columns of 0 and 1, "
    "separated by commas."
)
COLUMNS = (
    Option("dataset", str, None, "Name of the dataset, if it does not follow from --data_dir."),
    Option("text_column", str, "text", TEXT_COLUMN),
    Option("label_column", str, "label", LABEL_COLUMN),
    *LAYOUT,
)
PAIR = (Option("pair_column", str, None, "Name or number of the second text's column."),)
PROBLEM_TYPES = ("single_label", "multi_label", "regression")
LABELS = (
    Option("problem_type", PROBLEM_TYPES, "single_label", "The kind of labels in files."),
    Option("label_separator", str, ",", "With multi_label, what separates labels."),
)
SCHEME = (
    "Count only the entities that this scheme allows. By default count as the script conlleval."
)
TAGS = (
    Option("scheme", tuple(SCHEMES), None, SCHEME),
    Option("word_column", str, None, "Column of the words, from 0, or its name; else detected."),
    Option("tag_column", str, None, "Column of the tags, from 0 (-1 is the last), or its name."),
    Option("label_names", str, None, "Names of tags that are numbers, in order.", many="list"),
)
POOLING = Option("pooling", str, None, "pooler, cls, mean or max; by default the checkpoint's own.")


class TrainableTask(NamedTuple):
    """Everything that `train` knows about a task. No other code of the command uses its name.

    Args:
        about: str, the task in one sentence.
        model_class: class of the model.
        read: function of the flags, returns `Parts`.
        read_labelled: function of the flags, a file and a trained model, returns labelled examples
            and `Parts.further`.
        fit: function of the flags and `Parts`, returns the arguments of `fit`.
        evaluate: function of flags, model, examples and `Parts.further`, returns scores, the main
            one first, none without labels, and a function that returns the answers by file name.
        answer: function of the model and some examples, returns lines for people.
        verdict: function of the scores and `Parts`, returns a `Verdict`.
        data: `Option`s besides `FILES`.
        model: `Option`s that `from_preset` takes as arguments of the same names, if given.
        settings: function of the flags and `Parts`, returns its other arguments.
        training: further `Option`s.
        compile: function of the flags, returns further arguments of `compile`.
        defaults: dict of flags with another default.
        cuts_all: bool, whether `--sample` also cuts the sets to measure on.
        before: function of flags, a function that makes models, and `Parts`; returns scores to
            compare with, by name.
        after: function of flags, model and `Parts`, returns thresholds and further scores.
        make: function of the task, flags, setting and arguments, returns the model.
        check: function of the model and `Parts`, raises if measuring would fail later.
        draw: function of the model, `Parts` and a folder, writes pictures there.
        keeps_answers: bool, whether the answers on the dev set are written too.
        needs: names of the packages that measuring needs.
    """

    about: str
    model_class: type
    read: Callable
    read_labelled: Callable
    fit: Callable
    evaluate: Callable
    answer: Callable
    verdict: Callable
    data: tuple = ()
    model: tuple = ()
    settings: Callable = lambda flags, parts: {}
    training: tuple = ()
    compile: Callable = lambda flags: {}
    defaults: dict = {}  # noqa: RUF012
    cuts_all: bool = False
    before: Callable = lambda flags, make, parts: {}
    after: Callable = lambda flags, model, parts: (None, {})
    make: Callable = lambda task, flags, setting, options: task.model_class.from_preset(
        flags.preset, **options
    )
    check: Callable = lambda model, parts: None
    draw: Callable = lambda model, parts, folder: None
    keeps_answers: bool = False
    needs: tuple = ()


def _columns(x, y):
    """Returns a function that gives `fit` these fields of the training and dev examples."""

    def of(examples):
        texts = tuple(getattr(examples, n) for n in x) if isinstance(x, tuple) else None
        return getattr(examples, x) if texts is None else texts, getattr(examples, y)

    def fit(flags, parts):
        return dict(zip("xy", of(parts.train), strict=True), validation_data=of(parts.dev))

    return fit


def _embedding_columns(flags, parts):
    if flags.objective == "ranking":
        return dict(zip("xy", likeness.true_pairs(parts.train), strict=True))
    return {"x": parts.train.texts, "y": parts.train.labels}


def _label_settings(flags, parts):
    train = parts.train
    return {
        "num_classes": max(1, len(train.label_names)),
        "label_names": train.label_names or None,
        "problem_type": train.problem_type,
    }


def _tag_settings(flags, parts):
    tags = parts.further["tags"]
    return {"num_classes": len(tags), "label_names": tags}


def _thresholds(flags, model, parts):
    if parts.train.problem_type != "multi_label":
        return None, {}
    return scores.tune_thresholds(flags, model, parts)


def _by_strategy(task, flags, setting, options):
    """Returns a classifier that reads documents with a strategy."""
    strategy = setting["strategy"]
    options.pop("problem_type")
    windows = {name: options.pop(name, None) for name in ("num_windows", "stride", "keep")}
    if strategy in TRUNCATIONS:
        return bert_keras.TextClassifier.from_preset(flags.preset, truncation=strategy, **options)
    windows["truncation"] = windows.pop("keep")
    return task.model_class.from_preset(flags.preset, combine=strategy, **windows, **options)


def _untrained(flags, make, parts):
    scores, _ = likeness.evaluate_pairs(flags, make(), parts.dev, {})
    print("Before training:", scores)
    return {"untrained": scores}


def _check_questions(model, parts):
    for examples in filter(None, (parts.dev, parts.test)):
        model.cut(examples)  # If a question has no token this raises now, not after hours.


def _embedding_loss(flags):
    if flags.objective == "ranking":
        return {"loss": MultipleNegativesRanking(flags.scale, flags.symmetric)}
    return {"loss": CosineRegression()}


# Labelled files for a trained model


def _labelled_texts(flags, path, model):
    kind = model.problem_type
    # Names of labels that are numbers are those numbers.
    names = tuple(model.label_names or map(str, range(model.num_classes)))
    names = () if kind == "regression" else names
    examples = training_files.read_text_file(flags, path, names, problem_type=kind)
    if (examples.problem_type, tuple(examples.label_names)) != (kind, names):
        raise ValueError(
            f"{path} must have the labels of the model, {kind} {list(names)}. Received: "
            f"{examples.problem_type} {list(examples.label_names)}."
        )
    return examples, {}


def _labelled_tags(flags, path, model):
    columns = training_files.tag_columns(flags)
    print(f"{path}: {datasets.tag_layout(path, **columns)}.")
    columns["label_names"] = flags.label_names
    examples = training_files.with_printed_warnings(datasets.read_conll, path, **columns)
    unknown = [tag for tag in datasets.tag_names(examples) if tag not in (model.label_names or ())]
    if unknown:
        place = datasets.find_tag(path, unknown[0], **columns)
        raise ValueError(
            f"{path}, {place}: each tag must be one of the model's, {model.label_names}. Received: "
            f"{unknown[0]!r}. Correct the file or --tag_column."
        )
    return examples, {"tags": model.label_names}


def _labelled_questions(flags, path, model):
    examples = training_files.read_question_file(path)
    metric = training_files.metric_of(flags, examples, path)
    training_files.print_unmeasured(metric, examples)
    return examples, {"metric": metric, "tune": False}


def _labelled_choices(flags, path, model):
    return datasets.read_multiple_choice(path), {}


def _labelled_pairs(flags, path, model):
    return likeness.read_pair_file(flags, path), {}


# Answers for people


def _classes(model, few):
    texts = zip(*few.texts, strict=True) if isinstance(few.texts, tuple) else few.texts
    for text, answer, label in zip(texts, model.classify(few.texts), few.labels, strict=True):
        true = pictures.label_in_words(label, few.label_names)
        yield f"{in_words(answer)}  ({true})  {str(text)[:200]}"


def _tags(model, few):
    for answer in model.tag(few.words):
        entities = [f"{e['text']} ({e['type']} {e['score']:.2f})" for e in answer["entities"]]
        words = " ".join(f"{word}/{tag}" for word, tag in answer["words"])
        yield f"{answer['text']}  ->  {', '.join(entities) or words}"


def _spans(model, few):
    return [f"{e.question}  {model.answer(e.question, e.context)}" for e in few]


def _choices(model, few):
    answers = model.choose(few.contexts, few.choices)
    return [f"{c}  ->  {in_words(answer)}" for c, answer in zip(few.contexts, answers, strict=True)]


def _hits(model, few):
    query, documents = few.texts[0][0], few.texts[1]
    yield f"nearest to {query!r}:"
    for hit in model.semantic_search(query, documents, top_k=3):
        yield f"{hit['score']:.3f}  {hit['text']}"


METRICS = ("squad_v1", "squad_v2", "cmrc")
METRIC = (
    "Official score. By default cmrc for files named cmrc or drcd, squad_v2 if questions have no "
    "answer, else squad_v1."
)
STRATEGY = "Keep head, tail or both of --max_length tokens, or combine windows in this way."
TASKS = {
    "text_classification": TrainableTask(
        "Classify texts or pairs of texts, or score them.",
        bert_keras.TextClassifier,
        training_files.read_texts,
        _labelled_texts,
        _columns("texts", "labels"),
        scores.evaluate_texts,
        _classes,
        verdict.of_texts,
        data=(*COLUMNS, *PAIR, *LABELS),
        model=(POOLING, Option("truncation", str, "longest_first", "How to shorten long texts.")),
        settings=_label_settings,
        training=(
            Option("label_smoothing", float, 0.0, "Probability to distribute over all classes."),
            Option("baselines", bool, False, "Also measure the majority and a frozen encoder."),
        ),
        compile=lambda flags: {"label_smoothing": flags.label_smoothing},
        before=scores.baselines,
        needs=SCORING_PACKAGES,
        after=_thresholds,
        draw=pictures.of_texts,
    ),
    "long_text_classification": TrainableTask(
        "Classify documents longer than the model reads: shorten them, or read them in windows.",
        bert_keras.LongTextClassifier,
        training_files.read_texts,
        _labelled_texts,
        _columns("texts", "labels"),
        scores.evaluate_texts,
        _classes,
        verdict.of_texts,
        data=COLUMNS,
        model=(
            POOLING,
            Option("num_windows", int, 4, "Most windows to read in a document.", 1),
            Option("stride", int, None, "Tokens between two windows; by default no overlap.", 1),
            Option("keep", TRUNCATIONS, "head", "Which windows to keep in longer documents."),
        ),
        settings=_label_settings,
        training=(
            Option(
                "strategy", (*TRUNCATIONS, *COMBINATIONS), ["head_tail"], STRATEGY, many="distinct"
            ),
        ),
        cuts_all=True,
        make=_by_strategy,
        draw=pictures.of_classes,
        needs=SCORING_PACKAGES,
    ),
    "token_classification": TrainableTask(
        "Tag words: named entities, or parts of speech.",
        bert_keras.TokenClassifier,
        training_files.read_tags,
        _labelled_tags,
        _columns("words", "tags"),
        scores.evaluate_tags,
        _tags,
        verdict.of_tags,
        data=TAGS,
        model=(Option("crf", bool, False, "Score sequences of tags with a random field."),),
        settings=_tag_settings,
        draw=pictures.of_tags,
    ),
    "question_answering": TrainableTask(
        "Answer questions with a span of a text.",
        bert_keras.QuestionAnswering,
        training_files.read_questions,
        _labelled_questions,
        lambda flags, parts: {"x": parts.train},
        scores.evaluate_questions,
        _spans,
        verdict.of_questions,
        data=(
            Option("metric", METRICS, None, METRIC),
            Option("n_best", int, 20, "Answers to a question in nbest_predictions.json.", 1),
        ),
        model=(
            Option("stride", int, 128, "Tokens between the beginnings of two windows.", 1),
            Option("max_question_length", int, 64, "Most tokens to keep of a question.", 1),
            Option("max_answer_length", int, 30, "Most tokens in an answer.", 1),
            Option(
                "normalization",
                ("document", "per_window"),
                "document",
                "What probabilities sum to 1 over.",
            ),
        ),
        defaults={"max_length": 384},
        check=_check_questions,
        cuts_all=True,
        keeps_answers=True,
    ),
    "multiple_choice": TrainableTask(
        "Pick the right one of several endings, answers or causes.",
        bert_keras.MultipleChoice,
        training_files.read_choices,
        _labelled_choices,
        _columns(("contexts", "choices"), "labels"),
        scores.evaluate_choices,
        _choices,
        verdict.of_choices,
        model=(POOLING,),
    ),
    "text_embedding": TrainableTask(
        "Embed texts so that the cosine of two vectors is the likeness of their texts.",
        bert_keras.TextEmbedder,
        likeness.read_pairs,
        _labelled_pairs,
        _embedding_columns,
        likeness.evaluate_pairs,
        _hits,
        verdict.of_pairs,
        data=(
            *COLUMNS,
            *PAIR,
            Option("highest_score", float, 1.0, "The score of equal meaning in files.", 1e-6),
        ),
        model=(
            POOLING,
            Option("objective", ("similarity", "ranking"), "similarity", "What to train for."),
        ),
        training=(
            Option("scale", float, 20.0, "Factor of the cosines in ranking."),
            Option("symmetric", bool, False, "Also rank the anchors for each positive."),
        ),
        compile=_embedding_loss,
        defaults={"max_length": None},
        before=_untrained,
        draw=pictures.of_pairs,
        needs=SCORING_PACKAGES,
    ),
}
