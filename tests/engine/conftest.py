"""Files and texts for the tests of the engine."""

import zipfile

import pytest


@pytest.fixture
def changed_archive():
    """Returns a function that copies an archive and changes the content of its members."""

    def change(path, function):
        changed = path.with_stem("changed")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
            for name in old.namelist():
                new.writestr(name, function(name, old.read(name)))
        return changed

    return change
