"""Arrays that grow on disk part by part; after a kill they resume after the last complete part."""

import collections
import contextlib
import json
import os

import numpy as np

JOURNAL_FILE = "journal.jsonl"
# The attributes that each line of the journal holds, as they are after its part.
_JOURNALED = ("lengths", "counts", "num_parts", "is_whole")


class Columns:
    """Arrays in a folder, one file each, and a journal with a line for each complete part.

    They are read as memory maps, so memory holds only counts, however long they are.

    Args:
        folder: str, made if needed.
        dtypes: dict from the name of a column to its dtype.

    Attributes:
        lengths: dict from the name of a column to its number of rows.
        counts: `collections.Counter`, the sums of all parts' counts.
        num_parts: int, the number of complete parts.
        is_whole: bool, whether all parts are there, so that no more will follow.
    """

    def __init__(self, folder, dtypes):
        self.folder, self.dtypes = folder, {name: np.dtype(dtypes[name]) for name in dtypes}
        self.lengths, self.counts = dict.fromkeys(dtypes, 0), collections.Counter()
        self.num_parts, self.is_whole = 0, False
        os.makedirs(folder, exist_ok=True)
        for name in (*map(_file, dtypes), JOURNAL_FILE):
            open(self._path(name), "ab").close()
        sizes = {name: os.path.getsize(self._path(_file(name))) for name in dtypes}
        self._journal_size = 0
        with open(self._path(JOURNAL_FILE), "rb") as lines:
            for line in lines:
                state = _parsed(line)
                # After a crash of the machine, files may be shorter than the journal says.
                if not state or any(sizes[name] < self._num_bytes(name, state) for name in sizes):
                    break
                vars(self).update({name: state[name] for name in _JOURNALED})
                self.counts = collections.Counter(state["counts"])
                self._journal_size += len(line)

    def extend(self, parts):
        """Appends parts and yields after each. After the last one the columns are whole.

        Args:
            parts: iterable of `(arrays, counts)`: a dict, name of a column -> its rows, and a dict
                of ints to add to `counts`.
        """
        with contextlib.ExitStack() as opened:

            def opened_at(name, size):
                file = opened.enter_context(open(self._path(name), "r+b"))
                file.truncate(size)
                file.seek(size)
                return file

            journal = opened_at(JOURNAL_FILE, self._journal_size)
            sizes = {name: self._num_bytes(name, vars(self)) for name in self.dtypes}
            files = {name: opened_at(_file(name), sizes[name]) for name in sizes}
            for arrays, counts in parts:
                for name, file in files.items():
                    file.write(np.ascontiguousarray(arrays[name], self.dtypes[name]))
                    file.flush()
                    self.lengths[name] += len(arrays[name])
                self.counts.update(counts)
                self.num_parts += 1
                self._write_journal(journal)
                yield
            self.is_whole = True
            self._write_journal(journal)

    def open(self, name):
        """Returns a column as a read-only memory map."""
        length, dtype = self.lengths[name], self.dtypes[name]
        if not length:
            return np.empty(0, dtype)
        return np.memmap(self._path(_file(name)), dtype, "r", shape=(length,))

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _num_bytes(self, name, state):
        return state["lengths"][name] * self.dtypes[name].itemsize

    def _write_journal(self, journal):
        line = json.dumps({name: getattr(self, name) for name in _JOURNALED}) + "\n"
        journal.write(line.encode())
        journal.flush()


def _file(name):
    return f"{name}.bin"


def _parsed(line):
    """Returns a line of the journal as a dict, `None` if it is incomplete."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
