import numpy as np
import pytest

from bert_keras.answers.windows import document_windows


def starts_of(length, num_windows, truncation="longest_first", window_length=4, stride=4):
    windows = document_windows([length], window_length, stride, num_windows, truncation)
    return windows.starts.tolist()


@pytest.mark.parametrize("truncation", ["longest_first", "tail", "head_tail"])
@pytest.mark.parametrize("stride", [1, 2, 4, 9])
def test_enough_windows_cover_every_token_and_all_are_full(truncation, stride):
    lengths = np.arange(30)
    windows = document_windows(lengths, 4, stride, 30, truncation)
    for document, length in enumerate(lengths):
        own = windows.documents == document
        starts, sizes = windows.starts[own], windows.lengths[own]
        covered = {token for s, n in zip(starts, sizes, strict=True) for token in range(s, s + n)}
        assert covered == set(range(length))
        assert (sizes == min(length, 4)).all()
        assert (np.diff(starts) > 0).all()
        assert len(starts) == 1 + max(0, -(-(length - 4) // min(stride, 4)))


def test_the_last_window_ends_with_the_document():
    assert starts_of(9, 5) == [0, 4, 5]
    assert starts_of(8, 5) == [0, 4]
    assert starts_of(9, 9, stride=3) == [0, 3, 5]


def test_the_truncation_says_which_windows_stay():
    # All windows begin at 0, 4, 8, 12, 16 and 17.
    assert starts_of(21, 3) == starts_of(21, 3, "head") == [0, 4, 8]
    assert starts_of(21, 3, "only_first") == [0, 4, 8]
    assert starts_of(21, 3, "tail") == [12, 16, 17]
    assert starts_of(21, 3, "head_tail") == [0, 4, 17]
    assert starts_of(21, 4, "head_tail") == [0, 4, 16, 17]
    assert starts_of(21, 1, "tail") == [17]
    assert starts_of(21, 1, "head_tail") == [0]


def test_documents_do_not_touch_one_another():
    lengths = [21, 3, 0, 9]
    together = document_windows(lengths, 4, 4, 3, "head_tail")
    assert together.documents.tolist() == [0, 0, 0, 1, 2, 3, 3, 3]
    for document, length in enumerate(lengths):
        own = together.documents == document
        assert together.starts[own].tolist() == starts_of(length, 3, "head_tail")


def test_windows_but_the_last_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    words = [f"w{number}" for number in range(23)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    rows = tokenizer(
        " ".join(words), max_length=8, stride=2, truncation=True, return_overflowing_tokens=True
    )["input_ids"]
    windows = document_windows([len(words)], 6, 4, 99)
    expected = [[token - 5 for token in row[1:-1]] for row in rows]
    ours = [list(range(s, s + n)) for s, n in zip(windows.starts, windows.lengths, strict=True)]
    assert len(ours) == len(expected) > 3
    assert ours[:-1] == expected[:-1]
    assert ours[-1] == list(range(17, 23)) and ours[-1][-len(expected[-1]) :] == expected[-1]


def test_impossible_windows_are_refused():
    with pytest.raises(ValueError, match="room for a token"):
        document_windows([3], 0, 1, 2)
    with pytest.raises(ValueError, match="stride"):
        document_windows([3], 4, 0, 2)
