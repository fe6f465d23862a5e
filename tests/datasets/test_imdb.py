"""IMDb's reviews, from their folder."""

import pytest

from bert_keras.datasets import load_imdb

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
