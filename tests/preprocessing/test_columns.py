"""Columns of arrays that grow on disk and survive being cut off anywhere."""

import itertools
import shutil

import numpy as np
import pytest

from bert_keras.corpora.append_only_arrays import Columns

pytestmark = pytest.mark.once

DTYPES = {"ids": np.uint16, "ends": np.int64, "none": bool}
PARTS = [
    ({"ids": [1, 2, 3], "ends": [3], "none": []}, {"texts": 1}),
    ({"ids": [], "ends": [], "none": []}, {}),
    ({"ids": [4, 5], "ends": [4, 5], "none": []}, {"texts": 2, "tokens": 2}),
]


def extend(folder, count=None):
    """Adds at most `count` missing parts; returns the columns as another process sees them."""
    columns = Columns(folder, DTYPES)
    missing = itertools.islice(PARTS, columns.num_parts, None)
    for _ in itertools.islice(columns.extend(missing), count):
        pass
    return Columns(folder, DTYPES)


def test_all_parts_are_in_one_mapped_file_per_column(tmp_path):
    columns = extend(tmp_path)
    assert columns.is_whole and columns.num_parts == 3
    assert columns.counts == {"texts": 3, "tokens": 2}
    assert columns.open("ids").tolist() == [1, 2, 3, 4, 5]
    assert columns.open("ends").tolist() == [3, 4, 5] and not columns.open("ends").flags.writeable
    assert len(columns.open("none")) == 0


def test_anything_that_was_cut_off_is_written_again(tmp_path):
    whole = tmp_path / "whole"
    assert not extend(whole, 1).is_whole and not extend(whole, 1).is_whole
    extend(whole)
    files = {path.name: path.read_bytes() for path in whole.iterdir()}
    beginnings = set()
    for name, content in files.items():
        for size in range(0, len(content), 6):
            shutil.copytree(whole, tmp_path / "cut")
            (tmp_path / "cut" / name).write_bytes(content[:size])
            beginnings.add(Columns(tmp_path / "cut", DTYPES).num_parts)
            columns = extend(tmp_path / "cut")
            assert columns.is_whole and columns.counts == {"texts": 3, "tokens": 2}
            for path in (tmp_path / "cut").glob("*.bin"):
                assert path.read_bytes() == files[path.name]
            shutil.rmtree(tmp_path / "cut")
    assert beginnings == {0, 1, 2, 3}


def test_parts_after_a_damaged_line_of_the_journal_are_written_again(tmp_path):
    extend(tmp_path)
    whole = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join([whole[0], b"\x00{", *whole[1:], b""]))
    assert Columns(tmp_path, DTYPES).num_parts == 1
    assert extend(tmp_path).open("ids").tolist() == [1, 2, 3, 4, 5]
