"""A BERT of transformers, which the tests of every format write and read."""

import pytest
from checks import make_backbones_once
from foreign import bert_of_transformers


@pytest.fixture(scope="session")
def reference():
    """A tiny `BertForPreTraining` with random weights."""
    return bert_of_transformers()


@pytest.fixture
def shared_backbones(monkeypatch):
    """Checkpoints with equal configs share a backbone: to make one takes longest."""
    make_backbones_once(monkeypatch)
