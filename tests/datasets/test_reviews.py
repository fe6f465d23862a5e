"""Reviews of products and films, from the files of their authors."""

import collections
import hashlib
import pathlib

import pytest

from bert_keras.datasets import count_shared_texts, load_imdb, load_sentiment_sentences
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


def test_2979_of_the_3000_sentences_are_different_and_unusual_separators_split_none():
    train, test = load_sentiment_sentences(FOLDER)
    texts = train.texts + test.texts
    assert len({normalize_text(text) for text in texts}) == 2979
    assert any("\x85" in text for text in texts)


def test_each_site_keeps_its_share():
    _, test = load_sentiment_sentences(FOLDER)
    texts = set(test.texts)
    for name in SENTIMENT_SENTENCES_FILES:
        lines = (FOLDER / name).read_text(encoding="utf-8").rstrip("\n").split("\n")
        of_site = sum(line.split("\t")[0].strip() in texts for line in lines)
        # Sentences that two sites share count for both here.
        assert 200 <= of_site <= 204


def test_a_wrong_label_is_reported_by_file_and_line(tmp_path):
    for name in SENTIMENT_SENTENCES_FILES:
        (tmp_path / name).write_text("Good.\t1\nBad.\t2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"amazon_cells_labelled\.txt, line 2: .*Received: '2'"):
        load_sentiment_sentences(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="amazon_cells_labelled"):
        load_sentiment_sentences(tmp_path)


REVIEWS = {
    "aclImdb/train/pos/0_9.txt": "Great.<br /><br />Really \x85 good.",
    "aclImdb/train/pos/10_7.txt": "Fine.",
    "aclImdb/train/neg/0_2.txt": "Bad – naïve.\n",
    "aclImdb/train/neg/10_1.txt": "Worse.",
    "aclImdb/train/unsup/0_0.txt": "Not labelled.",
    "aclImdb/train/pos/notes.txt": "Not a review.",
    "aclImdb/README": "About.",
}


def test_the_folder_and_its_parent_give_the_reviews_in_order(write, tmp_path):
    for name, text in REVIEWS.items():
        write(name, text)
    # By their ids, with alternating labels.
    texts = ["Bad – naïve.\n", "Great.<br /><br />Really \x85 good.", "Worse.", "Fine."]
    for path in (tmp_path, tmp_path / "aclImdb"):
        train = load_imdb(path, "train")
        assert train.texts == texts and train.label_names == ("negative", "positive")
        assert train.labels.tolist() == [0, 1, 0, 1] and train.labels.dtype == "int32"


@pytest.mark.parametrize(
    ("name", "split", "error", "message"),
    [
        ("neg/1_2.txt", "train", ValueError, r"neg.1_2\.txt, line 1, byte 3: 0xe9 is not UTF-8"),
        ("pos/1_2.txt", "train", FileNotFoundError, "must hold reviews named aclImdb/train/neg"),
        (None, "train", FileNotFoundError, "must be in a folder.* Unpack"),
        (None, "dev", ValueError, "`split` must be one of"),
    ],
)
def test_unreadable_or_missing_reviews_and_unknown_splits_are_refused(
    write, tmp_path, name, split, error, message
):
    if name is not None:
        write("aclImdb/train/pos/1_8.txt", "good")
        write(f"aclImdb/train/{name}", b"caf\xe9")
    with pytest.raises(error, match=message):
        load_imdb(tmp_path / "aclImdb", split)
