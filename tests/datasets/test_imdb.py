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


def make_folder(tmp_path):
    for name, text in REVIEWS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


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


def test_reviews_are_in_the_order_of_their_ids_with_alternating_labels(tmp_path):
    train = load_imdb(make_folder(tmp_path), "train")
    assert train.texts == [
        "Bad – naïve.\n",
        "Great.<br /><br />Really \x85 good.",
        "Worse.",
        "Fine.",
    ]
    assert train.labels.tolist() == [0, 1, 0, 1] and train.labels.dtype == "int32"
    assert train.label_names == ("negative", "positive")


def test_the_folder_its_parent_and_the_archive_give_the_same_reviews(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "packed").mkdir()
    folder = make_folder(tmp_path / "folder")
    archive = make_archive(tmp_path / "packed" / "aclImdb_v1.tar.gz")
    expected = load_imdb(folder, "train")
    for path in (folder / "aclImdb", archive, tmp_path / "packed"):
        found = load_imdb(path, "train")
        assert found.texts == expected.texts and (found.labels == expected.labels).all()
    assert load_imdb(archive, "test").texts == ["Test.", "Second test."]


@pytest.mark.parametrize(
    ("reviews", "error", "message"),
    [
        (
            {"aclImdb/train/pos/1_8.txt": b"caf\xe9"},
            ValueError,
            r"a\.tar\.gz, aclImdb/train/pos/1_8\.txt, line 1, byte 3",
        ),
        ({"aclImdb/train/pos/1_8.txt": "."}, FileNotFoundError, "train/neg/.* only those of the o"),
        ({"aclImdb/README": "."}, FileNotFoundError, "train/neg/.* Received: no reviews"),
    ],
)
def test_archives_with_unreadable_or_missing_reviews_are_refused(tmp_path, reviews, error, message):
    with pytest.raises(error, match=message):
        load_imdb(make_archive(tmp_path / "a.tar.gz", reviews, link=False), "train")


def test_a_truncated_archive_is_refused(tmp_path):
    path = make_archive(tmp_path / "a.tar.gz", {"aclImdb/train/pos/1_8.txt": "x" * 9000})
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"a\.tar\.gz cannot be read .*EOFError.* Fetch it again"):
        load_imdb(path, "train")


def test_places_without_reviews_and_other_splits_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="must hold reviews named aclImdb/train/neg"):
        load_imdb(tmp_path, "train")
    with pytest.raises(FileNotFoundError, match="There is no file or folder"):
        load_imdb(tmp_path / "absent", "train")
    with pytest.raises(ValueError, match="`split` must be one of"):
        load_imdb(tmp_path, "dev")
