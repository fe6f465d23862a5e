"""The best spans of contexts, and how likely there is none, from the logits of windows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..checks import as_texts, check_pairs
from ..preprocessing.question_windows import QuestionWindows
from ..preprocessing.windows import document_positions, max_context
from .answerer import Answerer, Field, Option
from .classes import log_sum_exp

# Scores of spans computed at once, which bounds the memory: 16 MB.
_SCORES_AT_ONCE = 2**22


class Span(NamedTuple):
    """A candidate answer.

    Attributes:
        text: str, `context[start:end]`; `""` for "no answer".
        start: int, its first character in the context; `None` for "no answer".
        end: int, the character after its last; `None` for "no answer".
        probability: float.
        start_logit: float, the model's logit of its first token; of `[CLS]` for "no answer".
        end_logit: float, the model's logit of its last token, likewise; `find_spans` says of which
            window.
    """

    text: str
    start: int | None
    end: int | None
    probability: float
    start_logit: float
    end_logit: float


class NBest(NamedTuple):
    """The best answers to one question.

    Attributes:
        spans: list of `Span`, the best first, of different texts; at least one.
        no_answer: `Span` without text, how likely it is that there is no answer.
        no_answer_score: float, `log P(no answer) - log P(best span)`, the "null odds" of Google's
            run_squad.py, whose end logit is of the same window as the start's.
    """

    spans: list[Span]
    no_answer: Span
    no_answer_score: float


def has_no_answer(best: NBest, threshold: float | None) -> bool:
    """Returns whether an `NBest` says "no answer" at a threshold; without one it never does."""
    return threshold is not None and best.no_answer_score > threshold


def find_spans(
    questions: QuestionWindows,
    start_logits: NDArray[Any],
    end_logits: NDArray[Any],
    *,
    size: int,
    max_answer_length: int,
) -> list[NBest]:
    """Returns the best spans of each question from the logits of its windows.

    With `S` and `E` the softmax of start and end logits, a span from token i to token j has the
    probability `S[i] E[j]`, and "no answer" has `S[0] E[0]` at `[CLS]`. The softmax runs over all
    windows of the document: each token of the context once, in the window where it has the most
    context, and `[CLS]` once, of the window that most believes in an answer. Probabilities of all
    spans of a document and of "no answer" sum to at most 1. Spans are ranked by
    `start_logit + end_logit`, as in run_squad.py.

    A span counts in the window where its first token has the most context, so each counts once. Its
    end logit is of the window where the last token has the most context, so that it is a term of
    the sum by which it is divided; in run_squad.py it is of the same window as the start. The two
    windows differ for spans that cross the border between two windows' parts. All spans of up to
    `max_answer_length` tokens are compared; run_squad.py compares those between the 20 best starts
    and the 20 best ends of each window. "No answer" takes the score of the window that least
    believes in it: one window with an answer is enough.

    Args:
        questions: `ContextWindows`, or an object with the same attributes.
        start_logits: float `(num_windows, length)`, far below 0 at padding.
        end_logits: float `(num_windows, length)`, likewise.
        size: int, the number of spans per question.
        max_answer_length: int, tokens of the longest answer.

    Returns:
        List of `NBest`, one per question.

    Raises:
        ValueError: a logit is NaN or infinite, or all logits of a window are minus infinity.
    """
    windows, length = questions.windows, start_logits.shape[1]
    positions = document_positions(windows, questions.first_columns, length)
    may_start = np.zeros(positions.shape, bool)
    may_start[positions >= 0] = max_context(windows)
    logits = np.stack([start_logits, end_logits]).astype(np.float32)
    # Minus infinity may be padding, but no window is padding alone.
    if not (logits.max(axis=-1) > -np.inf).all() or np.isposinf(logits).any():
        raise ValueError(
            "The model's logits must be numbers. Received NaN or infinity, as from a model whose "
            "training diverged: train it again at a lower learning rate, or in float32 or bfloat16 "
            "where it was float16."
        )
    # Each question's first window.
    firsts = np.flatnonzero(np.diff(windows.documents, prepend=-1))

    def least_null(scores):
        """Returns for each question the window that least believes in "no answer"."""
        return np.lexsort((scores[:, :, 0].sum(0), windows.documents))[firsts]

    # A window of which every token counts elsewhere adds nothing.
    norms = log_sum_exp(np.where(may_start, logits, -1e9))[..., 0]
    chosen = least_null(logits)
    norms[:, chosen] = np.logaddexp(norms[:, chosen], logits[:, chosen, 0])
    norms = np.logaddexp.reduceat(norms, firsts, axis=1)[:, windows.documents]
    logits = _of_most_context(logits, may_start, positions, windows)
    scores = logits - norms[:, :, None]
    no_answer = least_null(scores)
    # Texts repeat at different places, and only the best of each is kept.
    found = _best_spans(
        np.where(may_start, scores[0], -np.inf),
        np.where(positions >= 0, scores[1], -np.inf),
        max_answer_length,
        2 * size + 10,
    )
    null_scores = scores[:, no_answer, 0].sum(0)
    null_logits = logits[:, no_answer, 0]
    return _collect(questions, logits, positions, found, null_scores, null_logits, size)


def _of_most_context(logits, counts_here, positions, windows):
    """Returns logits in which each token of a context has those of its window of most context.

    Args:
        logits: float `(2, num_windows, length)`.
        counts_here: bool `(num_windows, length)`, whether a token has its most context there.
        positions: int64 `(num_windows, length)`, tokens of the context; -1 for all others.
        windows: `Windows`.

    Returns:
        float `(2, num_windows, length)`; special tokens, question and padding keep theirs.
    """
    ends = np.zeros(windows.documents[-1] + 1, np.int64)
    np.maximum.at(ends, windows.documents, windows.starts + windows.lengths)
    places = positions + (np.cumsum(ends) - ends)[windows.documents][:, None]
    chosen = np.zeros((2, ends.sum()), logits.dtype)
    chosen[:, places[counts_here]] = logits[:, counts_here]
    inside = positions >= 0
    logits = logits.copy()
    logits[:, inside] = chosen[:, places[inside]]
    return logits


def _best_spans(start_scores, end_scores, max_answer_length, size):
    """Returns the best spans of each window, in no order.

    Args:
        start_scores: float `(num_windows, length)`, -inf where no span may start.
        end_scores: float `(num_windows, length)`, -inf where none may end.
        max_answer_length: int, tokens of the longest span.
        size: int, the number of spans per window.

    Returns:
        Windows, first columns, last columns and scores of all spans found: four arrays
        `(num_spans,)`.
    """
    length = start_scores.shape[1]
    width = min(max_answer_length, length)
    ends = np.pad(end_scores, ((0, 0), (0, width - 1)), constant_values=-np.inf)
    ends = np.lib.stride_tricks.sliding_window_view(ends, width, axis=1)
    at_once, found = max(1, _SCORES_AT_ONCE // (length * width)), []
    for begin in range(0, len(ends), at_once):
        part = slice(begin, begin + at_once)
        scores = start_scores[part, :, None] + ends[part]
        scores = scores.reshape(len(scores), -1)
        kept = min(size, scores.shape[1])
        best = np.argpartition(scores, -kept, axis=1)[:, -kept:]
        scores = np.take_along_axis(scores, best, 1)
        windows, ranks = np.nonzero(np.isfinite(scores))
        firsts, offsets = np.divmod(best[windows, ranks], width)
        found.append((begin + windows, firsts, firsts + offsets, scores[windows, ranks]))
    return [np.concatenate(arrays) for arrays in zip(*found, strict=True)]


def _collect(questions, logits, positions, found, null_scores, null_logits, size):
    """Returns an `NBest` per question, whose spans are the best of each text.

    Args:
        questions: `ContextWindows`.
        logits: float `(2, num_windows, length)`.
        positions: int64 `(num_windows, length)`, tokens of the context; -1 for all others.
        found: what `_best_spans` returned.
        null_scores: float `(num_questions,)`, log-probabilities of "no answer".
        null_logits: float `(2, num_questions)`.
        size: int, the number of spans per question.
    """
    windows, firsts, lasts, scores = found
    owners = questions.windows.documents[windows]
    order = np.lexsort((lasts, firsts, windows, -scores, owners))
    windows, firsts, lasts, scores, owners = (a[order] for a in (*found, owners))
    columns = [
        positions[windows, firsts].tolist(),
        positions[windows, lasts].tolist(),
        np.exp(scores).tolist(),
        logits[0, windows, firsts].tolist(),
        logits[1, windows, lasts].tolist(),
    ]
    bounds = np.searchsorted(owners, np.arange(len(null_scores) + 1))
    margins = (null_scores - scores[bounds[:-1]]).tolist()
    nulls = np.stack([np.exp(null_scores), *null_logits], axis=1).tolist()
    bounds = bounds.tolist()
    results = []
    for question, context in enumerate(questions.contexts):
        spans, offsets = {}, questions.offsets[question]
        for row in range(bounds[question], bounds[question + 1]):
            first, last, *numbers = (column[row] for column in columns)
            begin, end = int(offsets[first, 0]), int(offsets[last, 1])
            spans.setdefault(context[begin:end], (begin, end, *numbers))
            if len(spans) == size:
                break
        best = [Span(text, *span) for text, span in spans.items()]
        no_answer = Span("", None, None, *nulls[question])
        results.append(NBest(best, no_answer, margins[question]))
    return results


class SpanAnswerer(Answerer):
    """Spans of contexts that answer questions.

    Its settings are those of `QuestionAnswering`.
    """

    method = "answer"
    setting_names = ("stride", "max_question_length", "max_answer_length", "no_answer_threshold")
    fields = (Field("question"), Field("context"))
    options = (
        Option("top_k", int, 1, "Number of answers.", 1),
        Option("max_answer_length", int, None, "Most tokens of an answer, if not the task's.", 1),
        Option("no_answer", bool, None, "Whether to say 'no answer' always, or never."),
    )
    about = "Answer each question with a part of its context."
    example = '"Who lived in London?" "Ada Lovelace lived in London."'
    tag, does = "question-answering", "finds answers in texts"
    call = "answer('What is it?', 'It is a text.')"

    def columns(self, *columns):
        """Returns questions and contexts; a str is the context of all questions."""
        (questions,), is_one = super().columns(columns[0])
        contexts = columns[1]
        contexts = [contexts] * len(questions) if isinstance(contexts, str) else contexts
        return super().columns(questions, contexts)[0], is_one

    def encode(self, texts):
        questions, contexts = (as_texts(column) for column in texts)
        check_pairs(questions, contexts)
        rows = self.windows(questions, contexts)
        rows.check_has_text()
        return rows

    def windows(self, questions, contexts):
        """Returns the `QuestionWindows` of questions and contexts, two lists of str."""
        sizes = {name: self.settings[name] for name in ("stride", "max_question_length")}
        return QuestionWindows(self.packer, questions, contexts, **sizes)

    def answer(self, rows, batches, questions, contexts):
        threshold, arrays = self.settings["no_answer_threshold"], rows.collect(batches)
        if self.no_answer is not None:
            threshold = -np.inf if self.no_answer else None
        names, answers = ("answer", "start", "end", "probability"), []
        for best in self.n_best(rows, arrays):
            first = [best.no_answer] if has_no_answer(best, threshold) else []
            spans = [*first, *best.spans][: self.top_k]
            answers.append([dict(zip(names, span[:4], strict=True)) for span in spans])
        return [found[0] for found in answers] if self.top_k == 1 else answers

    def n_best(self, rows, arrays):
        """Returns an `NBest` of `top_k` spans for each question."""
        return find_spans(
            rows,
            arrays["start_logits"],
            arrays["end_logits"],
            size=self.top_k,
            max_answer_length=self.max_answer_length or self.settings["max_answer_length"],
        )
