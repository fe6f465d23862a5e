"""A BERT of transformers, which the tests of every format write and read."""

import pytest
from foreign import bert_of_transformers


@pytest.fixture(scope="session")
def reference():
    """A tiny `BertForPreTraining` with random weights."""
    return bert_of_transformers()
