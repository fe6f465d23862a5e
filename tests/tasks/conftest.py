"""Tasks that no test changes: each is made and compiled once."""

import keras
import pytest
from tiny import tiny_classifier


@pytest.fixture(scope="session")
def shared_classifier():
    keras.utils.set_random_seed(0)
    return tiny_classifier()
