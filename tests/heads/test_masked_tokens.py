"""The head of masked language models."""

import keras
import numpy as np
import pytest
from checks import assert_close, to_numpy

from bert_keras.heads.masked_tokens import MaskedLMHead, gather_positions

pytestmark = pytest.mark.once


def head_and_table(width):
    head = MaskedLMHead(7, 4, activation="relu", embedding_dim=width, initializer_range=0.5)
    head.build()
    rng = np.random.default_rng(0)
    for variable in head.weights:
        variable.assign(rng.normal(size=variable.shape))
    table = keras.layers.ReversibleEmbedding(7, width)
    table.build()
    return head, table


@pytest.mark.parametrize("width", [4, 2])
def test_logits_follow_the_formula_for_a_table_of_any_width(width, outputs):
    head, table = head_and_table(width)
    bias, *weights = map(to_numpy, head.weights)  # The table is not among them.
    kernel, inner_bias, gamma, beta = weights
    x = np.maximum(outputs["sequence_output"] @ kernel + inner_bias, 0)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * gamma + beta
    expected = x @ to_numpy(table.embeddings).T + bias
    assert_close(head(outputs, token_embedding=table), expected, 1e-5)
    positions = np.array([[3, 0], [4, 4]])
    found = head(outputs, token_embedding=table, mask_positions=positions)
    assert_close(found, expected[np.arange(2)[:, None], positions], 1e-5)
    assert len(head.weights) == 5


def test_positions_are_gathered_row_by_row():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    assert_close(gather_positions(x, np.array([[2], [0]])), x[[0, 1], [2, 0]][:, None])
