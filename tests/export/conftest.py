"""PyTorch lists the operators of ONNX anew for each export, which takes a second."""

import functools

import keras
import pytest


@pytest.fixture(autouse=True, scope="session")
def operators_are_listed_once():
    if keras.backend.backend() != "torch":
        yield
        return
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", functools.cache(ONNXRegistry.from_torchlib))
        yield
