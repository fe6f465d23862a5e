"""A tiny task with LoRA adapters that are not at 0, for the tests."""

import keras
import numpy as np
from tiny import VOCABULARY, tiny_backbone, tiny_classifier

from bert_keras.presets.assign import relative_path

TEXTS = ["a b c", "d e", "h a g", "b c", "a", "c d e", "e f g", "f g"]
LABELS = [0, 1, 1, 0, 1, 0, 0, 1]
# 4 texts of one length: each backend compiles one shape.
READY = {"token_ids": np.arange(5, 21).reshape(4, 4) % len(VOCABULARY)}
READY_LABELS = [0, 1, 1, 0]


def array(variable):
    return keras.ops.convert_to_numpy(variable).copy()


def by_path(variables):
    return {relative_path(variable): array(variable) for variable in variables}


def assert_equal(actual, expected, atol=0.0):
    assert actual.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_allclose(actual[path], value, rtol=0, atol=atol, err_msg=path)


def adapted_task(seed=0, num_layers=2, dropout=0.0, **options):
    """A task whose adapters are not at 0, so that what they do can be seen."""
    keras.utils.set_random_seed(seed)
    backbone = tiny_backbone(num_layers=num_layers, dropout=dropout)
    task = tiny_classifier(backbone, **{"lora_rank": 2, "lora_alpha": 8, **options})
    noise = np.random.default_rng(seed)
    for weight in task.backbone.adapter_weights:
        weight.assign(noise.normal(size=weight.shape) * 0.3)
    return task


def outputs(task, **options):
    return array(task(READY, **options))


def fit(task, learning_rate=1e-2, **options):
    task.compile(learning_rate=learning_rate, weight_decay=0.1)
    task.fit(READY, READY_LABELS, batch_size=4, **{"epochs": 1, "verbose": 0, **options})
