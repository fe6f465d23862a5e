"""Answering questions by a span of a text: extractive question answering."""

import types
from collections.abc import Sequence
from typing import Any, Unpack

import keras
import numpy as np

from bert_keras.answers import span_search
from bert_keras.answers.span_search import NBest, SpanAnswerer
from bert_keras.checks import (
    check_int,
    check_number,
    check_shape,
    raise_at_first,
    refuse_smoothing,
)
from bert_keras.heads.span import SpanHead
from bert_keras.inputs import PADDING_MASK, TOKEN_IDS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.metrics.spans import squad_v2_scores
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.batching import buckets_of
from bert_keras.preprocessing.collate import split_pairs
from bert_keras.preprocessing.question_windows import OUTPUTS, QuestionWindows
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import families
from bert_keras.tasks import question_examples
from bert_keras.tasks.encoded_labels import check_outputs, take_weights
from bert_keras.tasks.task import Task
from bert_keras.tasks.user_columns import normalize_columns
from bert_keras.tasks.validation import head_for
from bert_keras.training.losses import SpanCrossentropy
from bert_keras.types import AnswerOptions, Labels, PredictOptions, TaskOptions, Texts


@keras.saving.register_keras_serializable(package="bert_keras")
class QuestionAnswering(Task):
    """Answers a question by a span of a context, or finds that there is no answer.

    Section 4.2 of the paper: a dense layer gives each token two logits, and the probability that
    the answer runs from token i to token j is `softmax(start)[i] * softmax(end)[j]`. The loss is
    the mean of the two cross-entropies. If there is no answer, `[CLS]` is the label of both, as in
    section 4.3. Unlike in Google's run_squad.py and in transformers, padding has no share in the
    softmax.

    Contexts of any length are read in windows that overlap. Answers are found through the
    tokenizer's offsets and are always slices of the given context, with its spelling and spaces.
    Examples whose answer is not found at its position are left out of training, with a warning that
    counts them.

    | what | form |
    |---|---|
    | raw x | `(questions, contexts)`, two columns of str; or a list of `QuestionExample` |
    | raw y | column of `(text, start character)`, `None` for no answer, or lists of answers |
    | ready x | the dict of arrays of `bert_keras.inputs` |
    | ready y | dict or tuple of `start_logits`, `end_logits`: int `(batch,)`, positions |
    | output | dict `start_logits`, `end_logits`, float32 `(batch, seq_len)`, -1e9 at padding |

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only. Its `max_length` is
            that of a window; BERT's recipe has 384.
        stride: int, tokens between the beginnings of two windows.
        max_question_length: int, tokens kept of a question, at most half of the window.
        max_answer_length: int, tokens of the longest answer that is returned.
        no_answer_threshold: float, or `None` to answer always, as in SQuAD 1.1. A question has no
            answer if `log P(no answer) - log P(best span)` is above it; see
            `tune_no_answer_threshold`.
        dropout: float, rate before the dense layer; `None` takes the family's, which is 0 for BERT.
        mask_padding: bool; `False` counts padding in the softmax, to compare the loss with that of
            run_squad.py or transformers.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    qa = bert_keras.QuestionAnswering.from_preset("minilm_l6_en_uncased", max_length=384)
    examples, mismatches = bert_keras.datasets.read_squad("train-v1.1.json")
    qa.fit(examples, epochs=2)
    qa.answer("In what country is Normandy?", "Normandy is a region of France.")
    # {"answer": "France", "start": 24, "end": 30, "probability": 0.97}
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), sections 4.2 and 4.3.
    """

    answerers = (SpanAnswerer,)
    form = "questions"
    has_classes = False
    label_kind = types.MappingProxyType(dict.fromkeys(OUTPUTS, LabelKind("places")))
    has_imbalanced_targets = True
    labels_advice = (
        "Pass (text, start character) for each question, or None for no answer; for ready inputs a "
        "dict of start_logits and end_logits."
    )

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        stride: int = 128,
        max_question_length: int = 64,
        max_answer_length: int = 30,
        no_answer_threshold: float | None = None,
        dropout: float | None = None,
        mask_padding: bool = True,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        self.stride = check_int("stride", stride)
        self.max_question_length = check_int("max_question_length", max_question_length)
        self.max_answer_length = check_int("max_answer_length", max_answer_length)
        self.no_answer_threshold = _checked_threshold(no_answer_threshold)
        options = families.head_options(backbone, self)
        family_dropout = options.pop("dropout", 0.0)
        self.dropout = family_dropout if dropout is None else dropout
        self.mask_padding = mask_padding
        options |= {"dropout": self.dropout, "mask_padding": mask_padding}
        self.head = head_for(self, SpanHead, "layer_norm_epsilon", **options)

    def call(self, inputs, training=None):
        outputs = self.backbone_outputs(inputs, training=training)
        start, end = self.head(outputs, padding_mask=inputs.get(PADDING_MASK), training=training)
        return {"start_logits": start, "end_logits": end}

    def default_loss(self, label_smoothing):
        """Returns the mean of the cross-entropies of start and end."""
        rule = "Labels of spans are not smoothed: answers have no positions in padding or question"
        refuse_smoothing(label_smoothing, rule)
        return {name: SpanCrossentropy(reduction="mean_with_sample_weight") for name in OUTPUTS}

    def default_metrics(self):
        """Returns the accuracy of starts and of ends, a dict of lists by output."""
        return {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for name in OUTPUTS
        }

    def encode_labels(self, labels):
        """Returns the labels of ready inputs as a dict, checked.

        Args:
            labels: dict of `start_logits` and `end_logits`, or a tuple of both: int `(batch,)`.

        Returns:
            Dict of two int32 arrays `(batch,)`.

        Raises:
            ValueError: an output has no labels, a position is negative, or a span ends before it
                starts.
        """
        if isinstance(labels, tuple) and len(labels) == 2:
            labels = dict(zip(OUTPUTS, labels, strict=True))
        check_outputs(labels, OUTPUTS, "Or pass a tuple of both.")
        start, end = (np.asarray(labels[name]) for name in OUTPUTS)
        check_shape("Starts", start, ("num_examples",), "iu")
        check_shape("Ends", end, start.shape, "iu", "Starts have this shape.")
        spans = list(zip(start.tolist(), end.tolist(), strict=True))
        rule = "A span (start, end) must start at 0 or later and end where it starts or later"
        raise_at_first((start < 0) | (end < start), spans, rule)
        return {"start_logits": start.astype("int32"), "end_logits": end.astype("int32")}

    def encode_ready_labels(self, labels, inputs):
        """Returns the labels of ready inputs, which must be positions of tokens."""
        labels = self.encode_labels(labels)
        exists = np.asarray(inputs.get(PADDING_MASK, np.ones_like(inputs[TOKEN_IDS]))) != 0
        rows, last = np.arange(len(exists)), exists.shape[1] - 1
        for name, positions in labels.items():
            inside = (positions <= last) & exists[rows, np.minimum(positions, last)]
            rule = f"The labels '{name}' must be positions of tokens among the {last + 1} columns"
            advice = "If a window does not hold the answer, both labels are 0."
            raise_at_first(~inside, positions, rule, advice)
        return labels

    # From text to windows

    def cut(self, x: Any) -> QuestionWindows:
        """Returns the windows over questions and contexts, a `QuestionWindows`.

        Args:
            x: see the class.

        Raises:
            TypeError, ValueError: texts do not fit, are blank, or there is no preprocessor.
        """
        return self.answerer().encode(self._questions_of(x))

    def _questions_of(self, x):
        """Returns questions and contexts, two lists of str; both empty for an empty `x`."""
        questions, contexts = split_pairs(normalize_columns(self, x).x)
        if contexts is None and questions:
            raise ValueError(
                "A question needs a context. Received one column of text: pass "
                "(questions, contexts)."
            )
        return questions, contexts or []

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns questions and contexts as rows of windows, see `Task`.

        Examples whose answer has no tokens, or whose question or context has no text, are left out
        of training, with a warning.
        """
        if not training:
            return self.cut(x)
        questions, contexts = self._questions_of(x)
        starts, ends, unusable = question_examples.read_answers(contexts, y)
        usable = np.array([i for i in range(len(questions)) if i not in unusable], np.int64)
        if not len(usable):
            question_examples.report(unusable, len(questions))
        texts = ([column[i] for i in usable] for column in (questions, contexts))
        windows = self.answerer().windows(*texts)
        first, last = _answer_tokens(windows, starts[usable], ends[usable])
        columns = windows.columns_of(first, last)
        documents = windows.windows.documents
        is_kept = starts[usable] < 0
        is_kept[documents[columns[0] > 0]] = True
        is_kept[list(windows.without_text)] = False
        question_examples.report(unusable | {*usable[~is_kept].tolist()}, len(questions))
        rows = np.flatnonzero(is_kept[documents])
        sample_weight = take_weights(sample_weight, usable[documents[rows]])
        labels = {name: column[rows] for name, column in zip(OUTPUTS, columns, strict=True)}
        rows = windows.take(rows)
        # Without `mask_padding` results depend on the padded length.
        rows.buckets = None if self.mask_padding else buckets_of(rows.max_length)
        return rows.labelled(labels, sample_weight)

    # From windows to answers

    def n_best(self, x: Any, size: int = 20, **options: Unpack[PredictOptions]) -> list[NBest]:
        """Returns the best spans for each question, and how likely there is no answer.

        Args:
            x: see the class.
            size: int, how many spans per question.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            List of `bert_keras.answers.span_search.NBest`, one per question.

        Raises:
            TypeError, ValueError: texts do not fit, are blank, or have no token.
        """
        self.check_options(options, self.n_best)
        answerer = self.answerer("answer", top_k=check_int("size", size))
        columns = self._questions_of(x)
        if not columns[0]:
            return []
        rows = self.cut(columns)
        return answerer.n_best(rows, rows.collect(self.predict_rows(rows, **options)))

    def answer(
        self,
        question: str | Texts,
        context: str | Texts,
        top_k: int = 1,
        **options: Unpack[AnswerOptions],
    ) -> Any:
        """Returns the best answers to questions.

        Args:
            question: a str or a column of str.
            context: a str, for all questions, or a column of as many.
            top_k: int, how many answers per question.
            max_answer_length: int, tokens of the longest answer, instead of the task's.
            no_answer: bool, whether "no answer" always comes first, or never, instead of what
                `no_answer_threshold` says.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For `top_k=1` a dict `{"answer": str, "start": int, "end": int, "probability": float}`,
            start and end in characters of the context; for more, a list of up to `top_k` such
            dicts, the best first. For a column of questions, a list of these. "No answer" has the
            text `""`, and `None` as start and end.

        Raises:
            TypeError, ValueError: texts do not fit, or are blank.
        """
        return self.ask("answer", question, context, top_k=top_k, **options)

    def has_no_answer(self, best: NBest) -> bool:
        """Returns whether an `NBest` says "no answer" at this task's threshold."""
        return span_search.has_no_answer(best, self.no_answer_threshold)

    def tune_no_answer_threshold(
        self,
        x: Any,
        y: Labels | None = None,
        found: Sequence[NBest] | None = None,
        **options: Unpack[PredictOptions],
    ) -> dict[str, float]:
        """Finds, and sets, the threshold that scores best on examples not trained on.

        The score it returns is an upper bound for these very examples; see `squad_v2_scores`,
        whose threshold this is. There is one exception: if nothing beats answering "no answer" to
        every question, the official script returns 0.0; here the threshold then lies below all
        scores, so that every question gets "no answer".

        Args:
            x: see the class.
            y: see the class; all right answers count.
            found: what `n_best(x)` returned, or `None` to compute it.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            Dict with `threshold` and `f1`, a percentage.

        Raises:
            ValueError: an example is neither answered nor impossible, or the examples do not have
                both kinds of questions.
        """
        self.check_options(options, self.tune_no_answer_threshold)
        answers = question_examples.right_answers(x, y)
        if all(answers) or not any(answers):
            raise ValueError(
                "A threshold is tuned on questions with and without answers. Received: "
                f"{sum(map(bool, answers))} of {len(answers)} questions with an answer."
            )
        found = self.n_best(x, 1, **options) if found is None else found
        no_answer_scores = {i: best.no_answer_score for i, best in enumerate(found)}
        scores = squad_v2_scores(
            dict(enumerate(answers)),
            {i: best.spans[0].text for i, best in enumerate(found)},
            no_answer_scores,
        )
        threshold, best = scores["best_f1_thresh"], scores["best_f1"]
        if best == 100.0 * scores["NoAns_total"] / scores["total"]:
            threshold = min(no_answer_scores.values()) - 1.0
        self.no_answer_threshold = threshold = float(threshold)
        return {"threshold": threshold, "f1": best}


def _answer_tokens(windows, starts, ends):
    """Returns the first and the last token of each question's answer; -1 for no answer."""
    tokens = np.full((2, len(starts)), -1, np.int64)
    rows = np.flatnonzero(starts >= 0)
    covered = np.stack(windows.tokens_of(rows, starts[rows], ends[rows]))
    tokens[:, rows] = np.where(covered[0] <= covered[1], covered, -1)
    return tokens


def _checked_threshold(threshold):
    if threshold is None:
        return None
    if isinstance(threshold, (float, np.floating)) and np.isinf(threshold):
        return float(threshold)
    advice = "None answers always."
    return float(check_number("no_answer_threshold", threshold, least=-np.inf, advice=advice))
