"""For each export PyTorch lists its operators and those of ONNX again, which takes a second."""

import functools

import keras
import pytest


@pytest.fixture(autouse=True, scope="session")
def operators_listed_once():
    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "torch":
            from torch._export.utils import _collect_all_valid_cia_ops_for_namespace
            from torch.onnx._internal.exporter._registration import ONNXRegistry

            once = functools.cache(ONNXRegistry.from_torchlib)
            patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(once))
            operators = "torch._export.utils._collect_all_valid_cia_ops_for_namespace"
            patch.setattr(operators, functools.cache(_collect_all_valid_cia_ops_for_namespace))
        yield
