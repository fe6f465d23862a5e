"""A byte-pair tokenizer, whose layout is `<s> A </s></s> B </s>`."""

import pytest
from small_tokenizers import byte_pair_tokenizer

TEXTS = ["The old man and the sea.", "A ship sails, and the young woman came.", "Hemingway's", ""]


@pytest.fixture(scope="session")
def byte_pair():
    return byte_pair_tokenizer(TEXTS * 3)
