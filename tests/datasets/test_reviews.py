"""Reviews of products and films, from the files of their authors."""

import collections
import hashlib
import pathlib

import pytest

from bert_keras.datasets import count_shared_texts, load_sentiment_sentences
from bert_keras.datasets.reviews import SENTIMENT_SENTENCES_FILES
from bert_keras.datasets.split import normalize_text

FOLDER = pathlib.Path(__file__).parents[2] / "examples/data/sentiment_labelled_sentences"


def test_the_committed_files_are_the_published_ones():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in SENTIMENT_SENTENCES_FILES:
        # Git may give Windows users other line ends.
        content = (FOLDER / name).read_bytes().replace(b"\r\n", b"\n")
        assert f"| {name} | `{hashlib.sha256(content).hexdigest()}` |" in readme


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_split_has_2400_and_600_sentences_and_shares_none(seed):
    train, test = load_sentiment_sentences(FOLDER, seed=seed)
    assert (len(train), len(test)) == (2400, 600)
    assert collections.Counter(train.labels.tolist()) == {0: 1200, 1: 1200}
    assert collections.Counter(test.labels.tolist()) == {0: 300, 1: 300}
    assert count_shared_texts(train, test) == 0
    assert train.label_names == ("negative", "positive")


def test_2979_sentences_are_different_separators_split_none_and_each_site_keeps_its_share():
    train, test = load_sentiment_sentences(FOLDER)
    texts = train.texts + test.texts
    assert len({normalize_text(text) for text in texts}) == 2979
    assert any("\x85" in text for text in texts)
    texts = set(test.texts)
    for name in SENTIMENT_SENTENCES_FILES:
        lines = (FOLDER / name).read_text(encoding="utf-8").rstrip("\n").split("\n")
        of_site = sum(line.split("\t")[0].strip() in texts for line in lines)
        # Sentences that two sites share count for both here.
        assert 200 <= of_site <= 204


def test_a_missing_file_and_a_wrong_label_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="amazon_cells_labelled"):
        load_sentiment_sentences(tmp_path)
    for name in SENTIMENT_SENTENCES_FILES:
        (tmp_path / name).write_text("Good.\t1\nBad.\t2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"amazon_cells_labelled\.txt, line 2: .*Received: '2'"):
        load_sentiment_sentences(tmp_path)
