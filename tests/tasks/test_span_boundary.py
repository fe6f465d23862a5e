import keras
import numpy as np
import pytest
import scipy.special
from checks import check_task, check_token_metrics, to_numpy
from tiny import VOCABULARY, tiny_task

from bert_keras.heads.span_border import spans_of

pytestmark = pytest.mark.once

POSITIONS = np.array([[1, 2, 3, 7, 9, 10], [4, 6, 7, 8, 0, 0]], "int32")


def tiny_model(**options):
    return tiny_task("SpanBoundary", **options)


def batch():
    rng = np.random.default_rng(0)
    inputs = {
        "token_ids": rng.integers(5, len(VOCABULARY), (2, 12)).astype("int32"),
        "padding_mask": np.ones((2, 12), "int32"),
        "mask_positions": POSITIONS,
    }
    labels = rng.integers(5, len(VOCABULARY), POSITIONS.shape).astype("int32")
    return inputs, labels, (POSITIONS > 0).astype("float32")


def test_it_keeps_the_contract_of_tasks_and_its_masking(tmp_path):
    model = tiny_model(masking={"rate": 0.3, "strategy": "spans"})
    answers = {"fill_mask": (["a [MASK] [MASK] b"],)}
    for copy in check_task(model, batch()[0], tmp_path, answers):
        assert copy.masking.get_config() == model.masking.get_config()
    assert tiny_model().masking.strategy == "spans"


def boundary_logits(model, states, positions=POSITIONS):
    """Returns the head's logits of a backbone's output."""
    outputs, table = {"sequence_output": states}, model.backbone.token_embedding
    return to_numpy(
        model.head.span_boundary(outputs, token_embedding=table, mask_positions=positions)
    )


def test_positions_next_to_each_other_are_one_span():
    first, last = map(to_numpy, spans_of(keras.ops.convert_to_tensor(POSITIONS)))
    assert first.tolist() == [[1, 1, 1, 7, 9, 9], [4, 6, 6, 6, 0, 0]]
    assert last.tolist() == [[3, 3, 3, 7, 10, 10], [4, 8, 8, 8, 0, 0]]


def test_the_head_is_its_formula():
    model = tiny_model()
    head, table = model.head.span_boundary, model.backbone.token_embedding
    for weight in head.weights:
        weight.assign(np.random.default_rng(len(weight.path)).normal(size=weight.shape) * 0.5)
    states = np.random.default_rng(1).normal(size=(2, 12, 16)).astype("float32")
    logits = boundary_logits(model, states)

    def block(x, dense, norm):
        x = x @ to_numpy(dense.kernel) + to_numpy(dense.bias)
        x = x * (1 + scipy.special.erf(x / np.sqrt(2))) / 2
        x = (x - x.mean()) / np.sqrt(x.var() + head.layer_norm_epsilon)
        return x * to_numpy(norm.gamma) + to_numpy(norm.beta)

    spans = {1: (0, 4), 2: (0, 4), 3: (0, 4), 7: (6, 8), 9: (8, 11), 10: (8, 11)}
    for place, (position, (before, after)) in enumerate(spans.items()):
        row = to_numpy(head.place_embedding.embeddings)[position - before - 1]
        x = np.concatenate([states[0, before], states[0, after], row])
        x = block(block(x, head.hidden, head.hidden_norm), head.dense, head.layer_norm)
        expected = x @ to_numpy(table.embeddings).T + to_numpy(head.bias)
        np.testing.assert_allclose(logits[0, place], expected, atol=1e-4)


def test_places_beyond_the_last_have_its_vector():
    model = tiny_model(preprocessor=None)
    positions = np.arange(1, 21)[None]
    states = np.zeros((1, 22, 16), "float32")
    logits = boundary_logits(model, states, positions)
    assert np.ptp(logits[0, 14:], axis=0).max() == 0
    assert np.ptp(logits[0, :15], axis=0).max() > 0


@pytest.mark.each_backend
@pytest.mark.eager
def test_the_loss_is_the_mean_of_both_outputs():
    model, (inputs, labels, weights) = tiny_model(), batch()
    options = {"sample_weight": weights, "verbose": 0, "return_dict": True}
    results = model.evaluate(inputs, labels, **options)
    outputs = model.predict(inputs, verbose=0)
    assert set(outputs) == {"masked_lm", "span_boundary"}
    losses = [
        check_token_metrics(results, labels, logits, weights, prefix=f"{name}_")
        for name, logits in outputs.items()
    ]
    assert results["loss"] == pytest.approx(sum(losses), rel=1e-5)


def test_without_positions_there_are_no_spans():
    inputs, _, _ = batch()
    del inputs["mask_positions"]
    with pytest.raises(ValueError, match="needs the input 'mask_positions'"):
        tiny_model()(inputs)
