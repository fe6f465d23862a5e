"""`torch.compile` gets a model as one graph. Each break would cost a compilation and a call."""

import keras
import numpy as np
import pytest
from tiny import tiny_classifier

pytestmark = pytest.mark.once  # PyTorch has these


def inputs(batch, length):
    token_ids = np.random.default_rng(0).integers(5, 13, (batch, length)).astype("int32")
    padding_mask = np.ones_like(token_ids)
    padding_mask[0, length // 2 :] = 0
    return {"token_ids": token_ids, "padding_mask": padding_mask}


def as_tensors(arrays):
    return {name: keras.ops.convert_to_tensor(array) for name, array in arrays.items()}


def test_a_model_is_one_graph_for_all_lengths():
    import torch

    classifier = tiny_classifier(num_classes=3)
    graphs = []

    def count(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    classifier(as_tensors(inputs(4, 8)))  # Keras 3.16 compiles again what was not called before.
    # `fullgraph` raises if the graph breaks.
    compiled = torch.compile(classifier, backend=count, fullgraph=True, dynamic=True)
    for length in (8, 12):
        x = as_tensors(inputs(4, length))
        torch.testing.assert_close(compiled(x), classifier(x), atol=1e-6, rtol=1e-5)
    assert len(graphs) == 1
    # With dropout.
    assert torch.isfinite(compiled(x, training=True)).all()
    assert len(graphs) == 2
