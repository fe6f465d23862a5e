import numpy as np
import pytest
from checks import (
    TINY,
    assert_close,
    check_backbone,
    check_gradients,
    check_parity,
    random_inputs,
    random_reference,
    refused,
    to_numpy,
)

import bert_keras
from bert_keras.presets.assign import relative_path
from bert_keras.training.schedules import layer_wise_decay

pytestmark = pytest.mark.once


def tiny_backbone(**overrides):
    return bert_keras.AlbertBackbone(**{**TINY, "embedding_dim": 6, **overrides})


@pytest.mark.each_backend
def test_it_keeps_the_contract(tmp_path):
    sizes = {"num_layers": 6, "num_groups": 2, "num_inner_layers": 2}
    check_backbone(tiny_backbone(**sizes), "albert_backbone.json", tmp_path)


def test_layers_are_divided_into_groups_in_floats_as_in_the_checkpoints():
    # With integers, 9 * 14 // 18, it would be in the next group.
    blocks = tiny_backbone(num_layers=18, num_groups=14).encoder.blocks
    assert blocks[9].name == "group_6_layer_0"


@refused(
    ({"num_layers": 3, "num_inner_layers": 2}, "a multiple of `num_inner_layers`"),
    ({"num_inner_layers": 3}, "`num_inner_layers` must be an int from 1 to 2"),
    ({"num_groups": 3}, "`num_groups` must be an int from 1 to 2"),
    ({"num_groups": 0}, "`num_groups` must be an int from 1 to 2"),
    ({"embedding_dim": None}, "`embedding_dim` must be an int"),
)
def test_layers_that_cannot_be_divided_into_groups_are_refused(sizes):
    tiny_backbone(**sizes)


def test_a_shared_block_counts_once():
    backbone = tiny_backbone(num_layers=6, num_groups=2)
    top = r"^[^/]+/encoder/group_1_layer_0/"
    assert layer_wise_decay(backbone, 0.5)[2] == (top, 0.5)
    assert len(layer_wise_decay(backbone, 0.5)) == 4
    task = bert_keras.TextClassifier(backbone, frozen=1)
    frozen = {relative_path(weight) for weight in task.non_trainable_variables}
    trained = {relative_path(weight) for weight in task.trainable_variables}
    assert any("group_0" in path for path in frozen) and any("group_1" in path for path in trained)
    assert not any("group_1" in path for path in frozen)
    assert not any("group_0" in path or "embeddings" in path for path in trained)
    with pytest.raises(ValueError, match=r"an int from 0 to 2\..*encoder layers"):
        bert_keras.TextClassifier(backbone, frozen=3)
    with pytest.raises(ValueError, match="from 0 to 1, such as"):
        bert_keras.TextClassifier(backbone, lora_rank=2, lora_layers=[2])


def test_a_shared_block_has_one_adapter_which_trains_and_merges(reloaded):
    backbone = tiny_backbone(num_layers=4, initializer_range=0.5)
    task = bert_keras.TextClassifier(backbone, lora_rank=2)
    task.compile(learning_rate=0.1)
    assert len(backbone.adapter_weights) == 4
    inputs = random_inputs()
    before = to_numpy(task(inputs)), task.head.get_weights()
    task.fit(inputs, np.array([0, 1, 0]), verbose=0, epochs=3)
    expected = to_numpy(task(inputs))
    again = reloaded(task)
    np.testing.assert_array_equal(to_numpy(again(inputs)), expected)
    task.merge_lora()
    assert_close(task(inputs), expected, 1e-5)
    task.head.set_weights(before[1])
    assert np.abs(to_numpy(task(inputs)) - before[0]).max() > 1e-3


@pytest.mark.each_backend
def test_gradients_of_blocks_computed_again_equal_transformers(tmp_path):
    reference, inputs = random_reference("Albert", 0, num_hidden_groups=1)
    check_gradients(reference, inputs, tmp_path, remat=True)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_equal_transformers_and_an_export_has_the_same_weights(seed, tmp_path):
    sizes = {
        "num_hidden_layers": (3, 4, 5, 7)[seed],
        "num_hidden_groups": (1, 2, 1, 3)[seed],
        "inner_group_num": (1, 1, 2, 2)[seed],
        # Equal widths in the first case: there is a projection all the same.
        "embedding_size": (12, 5, 20, 29)[seed],
    }
    options = {"hidden_size": 12, "num_attention_heads": 3} if not seed else {}
    options |= {"hidden_act": ("gelu_new", "gelu", "relu", "silu")[seed], **sizes}
    backbone, reference = check_parity("Albert", seed, tmp_path / "theirs", **options)
    backbone.export_to_huggingface(tmp_path / "ours")
    again = type(reference).from_pretrained(tmp_path / "ours")
    assert {name: getattr(again.config, name) for name in sizes} == sizes
    for key, value in reference.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key].numpy(), value.numpy(), err_msg=key)
