"""Every test starts from the same seed, and no model warning passes unseen."""

import keras
import pytest


@pytest.fixture(autouse=True)
def fixed_seed():
    keras.utils.set_random_seed(0)


def pytest_report_header():
    return f"keras {keras.__version__}, backend {keras.backend.backend()}"
