"""IMDb's reviews, from its folder or its archive."""

import io
import tarfile

import pytest

from bert_keras.datasets import load_imdb

REVIEWS = {
    "aclImdb/train/pos/0_9.txt": "Great.<br /><br />Really \x85 good.",
    "aclImdb/train/pos/10_7.txt": "Fine.",
    "aclImdb/train/neg/0_2.txt": "Bad – naïve.\n",
    "aclImdb/train/neg/10_1.txt": "Worse.",
    "aclImdb/train/unsup/0_0.txt": "Not labelled.",
    "aclImdb/train/pos/notes.txt": "Not a review.",
    "aclImdb/test/neg/2_3.txt": "Test.",
    "aclImdb/test/pos/2_8.txt": "Second test.",
    "aclImdb/README": "About.",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in REVIEWS.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return tmp_path / "folder"


def make_archive(path, reviews=REVIEWS, link=True):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in reviews.items():
            raw = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
        if link:
            member = tarfile.TarInfo("aclImdb/train/pos/99_9.txt")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    return path


def test_the_folder_its_parent_and_the_archive_give_the_reviews_in_order(folder, tmp_path):
    (tmp_path / "packed").mkdir()
    archive = make_archive(tmp_path / "packed" / "aclImdb_v1.tar.gz")
    # By their ids, with alternating labels.
    texts = ["Bad – naïve.\n", "Great.<br /><br />Really \x85 good.", "Worse.", "Fine."]
    for path in (folder, folder / "aclImdb", archive, tmp_path / "packed"):
        train = load_imdb(path, "train")
        assert train.texts == texts and train.label_names == ("negative", "positive")
        assert train.labels.tolist() == [0, 1, 0, 1] and train.labels.dtype == "int32"
    assert load_imdb(archive, "test").texts == ["Test.", "Second test."]


REVIEW = "aclImdb/train/pos/1_8.txt"
NOT_UTF8 = r"a\.tar\.gz, aclImdb/train/pos/1_8\.txt, line 1, byte 3"


@pytest.mark.parametrize(
    ("reviews", "error", "message"),
    [
        ({REVIEW: b"caf\xe9"}, ValueError, NOT_UTF8),
        ({REVIEW: "."}, FileNotFoundError, "train/neg/.* only those of the o"),
        ({"aclImdb/README": "."}, FileNotFoundError, "train/neg/.* Received: no reviews"),
    ],
)
def test_archives_with_unreadable_or_missing_reviews_are_refused(tmp_path, reviews, error, message):
    with pytest.raises(error, match=message):
        load_imdb(make_archive(tmp_path / "a.tar.gz", reviews, link=False), "train")


def test_a_truncated_archive_is_refused(tmp_path):
    path = make_archive(tmp_path / "a.tar.gz", {REVIEW: "x" * 9000})
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"a\.tar\.gz cannot be read .*EOFError.* Fetch it again"):
        load_imdb(path, "train")


@pytest.mark.parametrize(
    ("name", "split", "error", "message"),
    [
        ("", "train", FileNotFoundError, "must hold reviews named aclImdb/train/neg"),
        ("absent", "train", FileNotFoundError, "must be in a folder or an archive"),
        ("", "dev", ValueError, "`split` must be one of"),
    ],
)
def test_folders_without_reviews_and_unknown_splits_are_refused(
    tmp_path, name, split, error, message
):
    with pytest.raises(error, match=message):
        load_imdb(tmp_path / name, split)
