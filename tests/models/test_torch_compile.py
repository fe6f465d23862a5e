"""`torch.compile` gets a model as one graph. Each break would cost a compilation and a call."""

import keras
import pytest
from tiny import ready_inputs, tiny_backbone, tiny_classifier

pytestmark = pytest.mark.once  # PyTorch has these


def test_a_model_is_one_graph_for_all_lengths():
    import torch

    classifier = tiny_classifier(tiny_backbone(num_layers=1), num_classes=3)
    graphs = []

    def count(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    classifier(ready_inputs(4, 8))  # Keras 3.16 compiles again what was not called before.
    # `fullgraph` raises if the graph breaks.
    compiled = torch.compile(classifier, backend=count, fullgraph=True, dynamic=True)
    for length in (8, 12):
        inputs = ready_inputs(4, length)
        x = {name: keras.ops.convert_to_tensor(array, "int32") for name, array in inputs.items()}
        torch.testing.assert_close(compiled(x), classifier(x), atol=1e-6, rtol=1e-5)
    assert len(graphs) == 1
    # With dropout.
    assert torch.isfinite(compiled(x, training=True)).all()
    assert len(graphs) == 2
