import numpy as np
import pytest

import bert_keras
from bert_keras.answers.span_search import find_spans
from bert_keras.preprocessing.question_windows import QuestionWindows

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(40))]
LENGTH = 14


def windows_of(*contexts, question="w0 w1", stride=3):
    """Windows of contexts, each a text or a number of words."""
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    return QuestionWindows(
        bert_keras.TextPreprocessor(tokenizer, max_length=LENGTH),
        [question] * len(contexts),
        [x if isinstance(x, str) else " ".join(VOCABULARY[5 : 5 + x]) for x in contexts],
        stride=stride,
        max_question_length=8,
    )


def best_spans(windows, logits, size, max_answer_length):
    return find_spans(windows, *logits, size=size, max_answer_length=max_answer_length)


def random_logits(windows, seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (2, len(windows), LENGTH)).astype("float32")
    return np.where(np.arange(LENGTH) < windows.lengths[:, None], logits, -1e9)


def by_hand(windows, logits, max_answer_length):
    """Returns (probability, first token, last token) of all spans, and that of no answer."""
    logits, cut = logits.astype("float64"), windows.windows
    for question in range(len(windows.contexts)):
        rows = np.flatnonzero(cut.documents == question)
        ends = cut.starts[rows] + cut.lengths[rows]
        # Of each token in each window: its logits, and how much context it has there.
        tokens = np.full((2, len(rows), ends.max()), -np.inf)
        context = np.full(tokens.shape[1:], -1.0)
        for w, row in enumerate(rows):
            places, length = np.arange(cut.lengths[row]), cut.lengths[row]
            tokens[:, w, cut.starts[row] + places] = logits[
                :, row, windows.first_columns[row] + places
            ]
            context[w, cut.starts[row] + places] = (
                np.minimum(places, length - 1 - places) + 0.01 * length
            )
        best, nulls = context.argmax(0), logits[:, rows, 0]
        # A token has one score, whichever window a span is in.
        tokens[:] = tokens[:, best, np.arange(len(best))][:, None]
        totals = np.exp(tokens).sum(-1) + np.exp(nulls[:, [nulls.sum(0).argmin()]])
        starts, stops = np.exp(tokens) / totals[..., None]
        found = [
            (starts[w, first] * stops[w, last], first, last)
            for first, w in enumerate(best)
            for last in range(first, min(ends[w], first + max_answer_length))
        ]
        yield sorted(found, reverse=True), (np.exp(nulls) / totals).prod(0).min()


@pytest.mark.parametrize(("size", "longest"), [(7, 4), (1, 3), (40, 7), (7, 20)])
def test_spans_and_probabilities_are_those_of_a_loop_over_all_spans(size, longest):
    windows = windows_of(5, 30, 9, 17)
    logits = random_logits(windows, longest)
    expected = by_hand(windows, logits, longest)
    found = best_spans(windows, logits, size, longest)
    for best, (spans, no_answer), context in zip(found, expected, windows.contexts, strict=True):
        words = context.split()
        texts = [" ".join(words[first : last + 1]) for _, first, last in spans]
        assert [span.text for span in best.spans] == texts[:size]
        probabilities = [span.probability for span in best.spans]
        np.testing.assert_allclose(probabilities, [p for p, *_ in spans[:size]], rtol=1e-4)
        assert all(context[span.start : span.end] == span.text for span in best.spans)
        assert best.no_answer.probability == pytest.approx(no_answer, rel=1e-4)
        assert best.no_answer_score == pytest.approx(np.log(no_answer / spans[0][0]), abs=1e-4)


def test_document_scores_rank_by_the_sum_of_logits_as_run_squad_does():
    windows = windows_of(30)
    logits = random_logits(windows, 5)
    (best,) = best_spans(windows, logits, 20, 5)
    sums = [span.start_logit + span.end_logit for span in best.spans]
    assert sums == sorted(sums, reverse=True)
    null = logits[:, :, 0].sum(0).min()
    assert best.no_answer_score == pytest.approx(null - sums[0], abs=1e-4)
    assert best.no_answer.start_logit + best.no_answer.end_logit == pytest.approx(null, abs=1e-4)
    assert best.no_answer[:3] == ("", None, None)


def test_a_text_that_occurs_several_times_is_listed_once_with_its_best_span():
    windows = windows_of("w1 w2 w1 w2", question="w0", stride=4)
    logits = np.zeros((2, 1, LENGTH), "float32")
    logits[0, 0, 5] = 2.0
    (best,) = best_spans(windows, logits, 9, 1)
    assert sorted(span.text for span in best.spans) == ["w1", "w2"]
    assert (best.spans[0].text, best.spans[0].start) == ("w1", 6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_logits_of_a_diverged_model_are_refused(wrong):
    windows = windows_of(5)
    logits = random_logits(windows, 0)
    logits[1, 0, slice(None) if wrong < 0 else 4] = wrong
    with pytest.raises(ValueError, match="training diverged"):
        best_spans(windows, logits, 1, 3)
