import numpy as np
import pytest

import bert_keras
from bert_keras.answers.span_search import _best_spans, find_spans
from bert_keras.preprocessing.question_windows import QuestionWindows

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(40))]
LENGTH = 14


def windows_of(context_lengths, stride=3):
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    contexts = [" ".join(f"w{i}" for i in range(length)) for length in context_lengths]
    return QuestionWindows(
        bert_keras.TextPreprocessor(tokenizer, max_length=LENGTH),
        ["w0 w1"] * len(contexts),
        contexts,
        stride=stride,
        max_question_length=8,
    )


def random_logits(windows, seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (2, len(windows), LENGTH)).astype("float32")
    return np.where(np.arange(LENGTH) < windows.lengths[:, None], logits, -1e9)


def softmax_of(values):
    exponentials = np.exp(np.array(values, "float64"))
    return exponentials / exponentials.sum()


def by_hand(windows, logits, max_answer_length, normalization):
    """Returns (probability, first token, last token) of all spans, and that of no answer."""
    results = []
    for question in range(len(windows.contexts)):
        rows = np.flatnonzero(windows.windows.documents == question)
        spans = [(int(windows.windows.starts[r]), int(windows.windows.lengths[r])) for r in rows]

        def context_score(w, token, spans=spans):
            start, length = spans[w]
            inside = start <= token < start + length
            return min(token - start, start + length - 1 - token) + 0.01 * length if inside else -1

        num_tokens = max(start + length for start, length in spans)
        scores = [[context_score(w, t) for w in range(len(rows))] for t in range(num_tokens)]
        best_window = [row.index(max(row)) for row in scores]
        nulls = [float(logits[:, r, 0].sum()) for r in rows]
        null_window = rows[int(np.argmin(nulls))]

        def column(w, token, rows=rows, spans=spans):
            return windows.first_columns[rows[w]] + token - spans[w][0]

        # With "document" a token has one score, wherever the span began that ends there.
        is_document = normalization == "document"
        denominators = []
        for part in logits.astype("float64"):
            if is_document:
                seen = [part[rows[w], column(w, t)] for t, w in enumerate(best_window)]
                total = np.exp(np.array([*seen, part[null_window, 0]])).sum()
                denominators.append(dict.fromkeys(rows, total))
            else:
                denominators.append({r: np.exp(part[r]).sum() for r in rows})

        def probability(places, denominators=denominators):
            return float(
                np.prod(
                    [
                        np.exp(float(part[row, c])) / d[row]
                        for part, (row, c), d in zip(logits, places, denominators, strict=True)
                    ]
                )
            )

        found = []
        for first, w in enumerate(best_window):
            begin, length = spans[w]
            for last in range(first, min(begin + length, first + max_answer_length)):
                v = best_window[last] if is_document else w
                p = probability([(rows[w], column(w, first)), (rows[v], column(v, last))])
                found.append((p, first, last))
        no_answer = min(probability([(row, 0), (row, 0)]) for row in rows)
        results.append((sorted(found, reverse=True), no_answer))
    return results


@pytest.mark.parametrize("normalization", ["document", "per_window"])
@pytest.mark.parametrize("seed", range(4))
def test_spans_and_probabilities_are_those_of_a_loop_over_all_spans(normalization, seed):
    windows = windows_of([5, 30, 9, 17])
    logits = random_logits(windows, seed)
    expected = by_hand(windows, logits, 4, normalization)
    found = find_spans(windows, *logits, size=7, max_answer_length=4, normalization=normalization)
    for best, (spans, no_answer), context in zip(found, expected, windows.contexts, strict=True):
        words = context.split()
        texts = [" ".join(words[first : last + 1]) for _, first, last in spans]
        assert [span.text for span in best.spans] == texts[:7]
        np.testing.assert_allclose(
            [span.probability for span in best.spans], [p for p, *_ in spans[:7]], rtol=1e-4
        )
        assert all(context[span.start : span.end] == span.text for span in best.spans)
        assert best.no_answer.probability == pytest.approx(no_answer, rel=1e-4)
        assert best.no_answer_score == pytest.approx(np.log(no_answer / spans[0][0]), abs=1e-4)


def test_probabilities_of_all_spans_of_a_document_sum_to_at_most_1():
    # Windows of 9 tokens, one every token: most spans cross a border.
    for seed in range(30):
        windows = windows_of([15, 3], stride=1)
        logits = random_logits(windows, seed)
        found = find_spans(
            windows, *logits, size=500, max_answer_length=9, normalization="document"
        )
        for best, num_tokens in zip(found, (15, 3), strict=True):
            assert len(best.spans) > 2 * num_tokens - 2
            total = sum(span.probability for span in best.spans) + best.no_answer.probability
            assert 0 < total <= 1 + 1e-5


def test_end_logits_are_of_the_window_where_the_end_has_the_most_context():
    # Windows of 9 tokens from 0, 3 and 6 on: token 5 has the most context in the first of them,
    # token 6 in the second.
    windows = windows_of([14])
    logits = np.zeros((2, len(windows), LENGTH), "float32")
    columns = windows.first_columns - windows.windows.starts
    logits[0, 0, columns[0] + 5] = 5.0
    logits[1, 0, columns[0] + 6] = 9.0
    logits[1, 1, columns[1] + 6] = 3.0
    found = {
        name: find_spans(windows, *logits, size=1, max_answer_length=3, normalization=name)[0]
        for name in ("document", "per_window")
    }
    ends = {name: best.spans[0].end_logit for name, best in found.items()}
    assert {best.spans[0].text for best in found.values()} == {"w5 w6"}
    assert ends == {"document": 3.0, "per_window": 9.0}


def test_document_scores_rank_by_the_sum_of_logits_as_run_squad_does():
    windows = windows_of([30])
    logits = random_logits(windows, 5)
    (best,) = find_spans(windows, *logits, size=20, max_answer_length=5, normalization="document")
    sums = [span.start_logit + span.end_logit for span in best.spans]
    assert sums == sorted(sums, reverse=True)
    null = logits[:, :, 0].sum(0).min()
    assert best.no_answer_score == pytest.approx(null - sums[0], abs=1e-4)
    assert best.no_answer.start_logit + best.no_answer.end_logit == pytest.approx(null, abs=1e-4)
    assert best.no_answer[:3] == ("", None, None)


def test_both_normalizations_agree_on_one_window_up_to_question_and_separators():
    windows = windows_of([6])
    logits = random_logits(windows, 6)
    # Question and separators get nothing, so that both sums run over the same tokens.
    logits[:, :, [1, 2, 3, 10]] = -1e9
    found = [
        find_spans(windows, *logits, size=3, max_answer_length=5, normalization=name)[0]
        for name in ("document", "per_window")
    ]
    np.testing.assert_allclose(
        [span.probability for span in found[0].spans], [span.probability for span in found[1].spans]
    )


def test_a_text_that_stands_at_several_places_is_listed_once_with_its_best():
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=LENGTH)
    windows = QuestionWindows(
        preprocessor, ["w0"], ["w1 w2 w1 w2"], stride=4, max_question_length=4
    )
    logits = np.zeros((2, 1, LENGTH), "float32")
    logits[0, 0, 5] = 2.0
    (best,) = find_spans(windows, *logits, size=9, max_answer_length=1, normalization="document")
    assert sorted(span.text for span in best.spans) == ["w1", "w2"]
    assert (best.spans[0].text, best.spans[0].start) == ("w1", 6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_logits_of_a_model_that_diverged_are_refused(wrong):
    windows = windows_of([5])
    logits = random_logits(windows, 0)
    logits[1, 0, slice(None) if wrong < 0 else 4] = wrong
    with pytest.raises(ValueError, match="training diverged"):
        find_spans(windows, *logits, size=1, max_answer_length=3, normalization="document")


def test_the_best_spans_of_windows_are_found_among_all():
    rng = np.random.default_rng(0)
    for _ in range(60):
        num_windows, length, width, size = rng.integers(1, [4, 9, 9, 12])
        scores = rng.normal(size=(2, num_windows, length))
        scores[rng.random(scores.shape) < 0.3] = -np.inf
        windows, firsts, lasts, found = _best_spans(*scores, width, size)
        for window, (start, end) in enumerate(scores.transpose(1, 0, 2)):
            spans = [
                (start[i] + end[j], i, j)
                for i in range(length)
                for j in range(i, min(length, i + width))
                if np.isfinite(start[i] + end[j])
            ]
            chosen = windows == window
            rows = zip(found[chosen], firsts[chosen], lasts[chosen], strict=True)
            assert sorted(rows) == sorted(sorted(spans)[-size:])
