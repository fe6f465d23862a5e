"""For each export PyTorch lists the operators of ONNX again, which takes a second."""

import functools

import keras
import pytest


@pytest.fixture(autouse=True, scope="session")
def operators_listed_once():
    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "torch":
            from torch.onnx._internal.exporter._registration import ONNXRegistry

            once = functools.cache(ONNXRegistry.from_torchlib)
            patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(once))
        yield
