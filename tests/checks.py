"""Checks that every model must pass, whatever its family or task."""

import ast
import functools
import inspect
import json
import os
import pathlib
import warnings

import keras
import numpy as np
import pytest
import scipy.special

from bert_keras.models.backbone import Backbone
from bert_keras.presets.assign import relative_path
from bert_keras.presets.families import record_of
from bert_keras.presets.formats.checkpoint import Checkpoint
from bert_keras.presets.formats.huggingface import KINDS
from bert_keras.presets.name_map import expand, transformed_back

GOLDEN = pathlib.Path(__file__).parent / "golden"
# The arguments that all backbones have, for a tiny one.
TINY = {
    "vocabulary_size": 50,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 12,
}


# Our inputs -> those of transformers.
THEIR_NAMES = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
THEIR_NAMES["padding_mask"] = "attention_mask"


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def assert_close(actual, expected, atol=1e-6):
    """Differences are at most `atol` times the largest expected magnitude, or 1 if that is more.

    Values that are sums have the rounding errors of their largest terms, also where they are small.
    """
    actual, expected = to_numpy(actual), to_numpy(expected)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol * largest)


def assert_same_structure_close(actual, expected, atol=1e-6):
    keras.tree.assert_same_structure(actual, expected)
    for a, b in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        assert_close(a, b, atol)


def gradients(function, *inputs):
    """Returns the gradients of the sum of `function(*inputs)` squared, float32 arrays."""
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
        loss = (function(*leaves) ** 2).sum()
        found = torch.autograd.grad(loss, leaves)
    elif backend == "jax":
        import jax

        found = jax.jit(jax.grad(lambda leaves: (function(*leaves) ** 2).sum()))(list(inputs))
    else:
        import tensorflow as tf

        leaves = [tf.convert_to_tensor(x) for x in inputs]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            loss = tf.reduce_sum(function(*leaves) ** 2)
        found = tape.gradient(loss, leaves)
    return [to_numpy(x) for x in found]


def compute(function, *inputs):
    """Returns `function` of tensors, on JAX as one program.

    To compile each operation by itself takes longer.
    """
    if keras.backend.backend() != "jax":
        return function(*keras.tree.map_structure(keras.ops.convert_to_tensor, inputs))
    import jax

    return jax.jit(function)(*inputs)


def assert_like(ours, plain, *inputs, atol=8e-6, value_atol=2e-6):
    """Two functions have equal values and gradients.

    Gradients are equal up to `atol` times their largest element, 70 roundings of float32.
    """
    assert_close(*(to_numpy(compute(f, *inputs)) for f in (ours, plain)), value_atol)
    pairs = zip(gradients(ours, *inputs), gradients(plain, *inputs), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol * np.abs(expected).max())


def call(model, inputs, only_shapes=False, **options):
    """Calls a model, on JAX as one program; with `only_shapes` JAX does not compile it either."""
    if keras.backend.backend() != "jax":
        return model(inputs, **options)
    import jax

    variables = model.variables

    def computed(values):
        with keras.StatelessScope(zip(variables, values, strict=True)):
            return model(inputs, **options)

    function = functools.partial(jax.eval_shape, computed) if only_shapes else jax.jit(computed)
    return function([variable.value for variable in variables])


@functools.cache
def _backbone(cls, arguments):
    return cls(**ast.literal_eval(arguments))


def make_backbones_once(monkeypatch):
    """Lets checkpoints with equal configs share a backbone, since making one takes longest.

    Its weights are NaN before a checkpoint is loaded, so that each must come from the files.
    """

    def make(checkpoint, cls, load_weights, overrides):
        backbone = _backbone(cls, repr(checkpoint._backbone_arguments(cls) | overrides))
        for weight in backbone.weights:
            weight.assign(np.full(weight.shape, np.nan))
        return backbone

    monkeypatch.setattr(Checkpoint, "backbone", make)


def perplexity(labels, logits, weights):
    """Exp of the mean negative log-probability of the labels, without positions of weight 0."""
    is_masked = np.asarray(weights) > 0
    labels, logits, weights = (np.asarray(x)[is_masked] for x in (labels, logits, weights))
    chosen = np.take_along_axis(scipy.special.log_softmax(logits, -1), labels[..., None], -1)
    return np.exp(np.average(-chosen[..., 0], weights=weights))


def check_token_metrics(results, labels, logits, weights, prefix=""):
    """Perplexity and accuracy are those of the positions with weight; returns the loss."""
    expected = perplexity(labels, logits, weights)
    assert results[f"{prefix}perplexity"] == pytest.approx(expected, rel=1e-5)
    is_right = labels == logits.argmax(-1)
    assert results[f"{prefix}accuracy"] == pytest.approx(np.average(is_right, weights=weights))
    return np.log(expected)


def check_everything_is_built(model):
    """All variables exist before the first call."""
    assert all(layer.built for layer in model._flatten_layers())


def check_config_round_trip(model):
    """`from_config` of what Keras saves gives the same config and weights, under our name."""
    again = made_again(model)
    assert len(again.weights) == len(model.weights)
    return again


def made_again(thing):
    """Returns what Keras makes of a config. Files have the registered names of classes."""
    saved = keras.saving.serialize_keras_object(thing)
    assert saved["registered_name"] == f"bert_keras>{type(thing).__name__}"
    again = keras.saving.deserialize_keras_object(json.loads(json.dumps(saved)))
    assert type(again) is type(thing)
    assert again.get_config() == thing.get_config()
    return again


def check_saved_and_reloaded(model, inputs, path):
    """A `.keras` file gives the same numbers back, without any warning."""
    expected = model.predict(inputs, verbose=0)
    model.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reloaded = keras.models.load_model(path)
    np.testing.assert_equal(reloaded.predict(inputs, verbose=0), expected)
    return reloaded


def random_inputs(batch=3, seq_len=7, seed=0, vocabulary_size=50, num_segments=2, padding_id=0):
    """Rows of random lengths, the first one full."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, seq_len + 1, batch)
    lengths[0] = seq_len
    mask = np.arange(seq_len) < lengths[:, None]
    ids = rng.integers(padding_id + 1, vocabulary_size, (batch, seq_len))
    inputs = {"token_ids": np.where(mask, ids, padding_id), "padding_mask": mask}
    if num_segments > 1:
        inputs["segment_ids"] = np.where(mask, rng.integers(0, num_segments, mask.shape), 0)
    return inputs


def inputs_of(model, rows, length, names=None):
    """Returns random inputs for any backbone or task. The first row is full, others are padded."""
    rng, backbone = np.random.default_rng(0), getattr(model, "backbone", model)
    shape = (rows, *(2,) * (model.num_input_axes - 2), length)
    mask = np.arange(length) < rng.integers(1, length + 1, (*shape[:-1], 1))
    mask[0] = True
    ids = rng.integers(5, backbone.vocabulary_size, shape)
    lengths = mask.reshape(rows, -1, length)[:, 0].sum(-1, keepdims=True)
    inputs = {
        "token_ids": np.where(mask, ids, backbone.padding_id or 0),
        "padding_mask": mask,
        "segment_ids": rng.integers(0, max(backbone.num_segments, 1), shape),
        "mask_positions": np.sort(rng.integers(0, lengths, (rows, 3)), axis=1),
    }
    names = names or (*backbone.input_names, *model.further_inputs)
    return {name: inputs[name].astype("int32") for name in names}


def check_backbone(backbone, golden, folder):
    """A `TINY` backbone of any family keeps the contract of `bert_keras.models.backbone`.

    On JAX and TensorFlow only what they compute is checked. That they read each other's files is
    shown in `tests/across_backends`.

    Args:
        backbone: the backbone.
        golden: str, name of the file with its weights' paths.
        folder: an empty folder.
    """
    inputs = random_inputs(num_segments=backbone.num_segments, padding_id=backbone.padding_id or 0)
    check_outputs(backbone, inputs)
    check_padding(backbone)
    if keras.backend.backend() != "torch":
        return
    check_everything_is_built(backbone)
    check_config_round_trip(backbone)
    check_attributes(backbone)
    check_inputs_are_refused(backbone)
    check_weight_paths(backbone, golden, folder)
    check_saved_and_reloaded(backbone, inputs, folder / "backbone.keras")


def check_task(task, inputs, folder, answers):
    """A task of any kind keeps the contract of `bert_keras.tasks.task`.

    Args:
        task: with a preprocessor, and with settings that are not the defaults.
        inputs: dict of arrays, ready inputs.
        folder: an empty folder.
        answers: dict from the name of each method that answers to a tuple of its columns.

    Returns:
        The task that was loaded from a `.keras` file, and the one from a preset.
    """
    check_everything_is_built(task)
    check_config_round_trip(task)
    check_what_trains(task, inputs)
    bare = check_adapters(task)
    check_file_format(task, folder / "task.weights.h5")
    loaded = check_saved_and_reloaded(task, inputs, folder / "task.keras")
    task.save_to_preset(folder / "preset")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        preset = type(task).from_preset(folder / "preset")
    assert settings_of_task(preset) == settings_of_task(task)
    for name, columns in answers.items():
        check_answer(task, name, columns, (loaded, preset))
        with pytest.raises(ValueError, match="no preprocessor"):
            getattr(bare, name)(*columns)
    return loaded, preset


def settings_of_task(task):
    """Returns the config without what presets keep in files of their own."""
    left_out = ("name", "backbone", "preprocessor")
    return {key: value for key, value in task.get_config().items() if key not in left_out}


def check_answer(task, name, columns, copies):
    """Copies give the same answers, and no texts have none."""
    expected = getattr(task, name)(*columns)
    for copy in copies:
        np.testing.assert_equal(getattr(copy, name)(*columns), expected)
    for empty in ([], np.array([])):
        assert len(getattr(task, name)(*[empty] * len(columns))) == 0


def check_what_trains(task, inputs):
    """Each variable is trainable or not; the pooler is exactly if the output depends on it."""
    parts = [*task.trainable_variables, *task.non_trainable_variables]
    assert sorted(map(id, parts)) == sorted(map(id, task.variables))
    if task.backbone.pooler is None:
        return
    kernel = task.backbone.pooler.dense.kernel
    value, before = to_numpy(kernel).copy(), keras.tree.flatten(task(inputs))
    before = [to_numpy(output).copy() for output in before]
    kernel.assign(np.zeros_like(value))
    after = [to_numpy(output) for output in keras.tree.flatten(task(inputs))]
    kernel.assign(value)
    is_read = any(np.abs(a - b).max() > 1e-4 for a, b in zip(after, before, strict=True))
    assert any(variable is kernel for variable in task.trainable_variables) == is_read


def check_adapters(task):
    """With `lora_rank`, adapters alone train in the backbone, and the config keeps them.

    Returns:
        The task with adapters, without a preprocessor.
    """
    changes = {"frozen": None, "lora_rank": 1, "preprocessor": None}
    adapted = type(task).from_config({**task.get_config(), **changes})
    own = {id(weight) for weight in adapted.backbone.weights}
    trained = {relative_path(v) for v in adapted.trainable_variables if id(v) in own}
    assert trained == {
        f"encoder/layer_{layer}/attention/{target}/lora_{matrix}"
        for layer in range(adapted.backbone.num_blocks)
        for target in ("query", "value")
        for matrix in "ab"
    }
    again = check_config_round_trip(adapted)
    paths = [[v.path for v in each.trainable_variables] for each in (again, adapted)]
    assert paths[0] == paths[1]
    return adapted


def check_file_format(task, path):
    """Files name the class, the backbone and the head, whose own names have golden lists."""
    import h5py

    name = type(task).__name__
    assert keras.saving.get_registered_name(type(task)) == f"bert_keras>{name}"
    task.save_weights(str(path))
    with h5py.File(path) as file:
        assert {"backbone", "head"} <= set(file)
        names = []
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
    weights = [name for name in names if not name.startswith("optimizer/")]
    assert {name.split("/")[0] for name in weights} <= {"backbone", "head"}


def check_attributes(backbone):
    """The attributes that other code reads fit the backbone's weights."""
    assert set(backbone.input_names) <= {"token_ids", "segment_ids", "padding_mask"}
    assert ("segment_ids" in backbone.input_names) == (backbone.num_segments > 1)
    table = (backbone.vocabulary_size, backbone.embedding_dim)
    assert tuple(backbone.token_embedding.embeddings.shape) == table
    for name in ("dropout", "activation", "layer_norm_epsilon", "initializer_range"):
        assert getattr(backbone, name) is not None
    # Stages go from the bottom to the top and have all weights below the norm and the pooler.
    stages = [[id(weight) for weight in stage.weights] for stage in backbone.stages]
    below = [place for stage in stages for place in stage]
    above = [layer for layer in (backbone.encoder.norm, backbone.pooler) if layer is not None]
    above = [id(weight) for layer in above for weight in layer.weights]
    # A block that layers share is one stage, and so is each layer that all blocks share.
    assert backbone.num_blocks == len({id(block) for block in backbone.encoder.blocks})
    assert len(stages) == 1 + len(backbone.encoder.shared) + backbone.num_blocks
    assert below + above == [id(weight) for weight in backbone.weights]
    for layers in backbone.adaptable.values():
        blocks = stages[-backbone.num_blocks :]
        assert all(id(layer.kernel) in block for layer, block in zip(layers, blocks, strict=True))
        assert {layer.shard_axis for layer in layers} <= {0, 1}


def check_outputs(backbone, inputs):
    """The outputs have the contract's shapes."""
    options = {"return_hidden_states": True, "return_attentions": True}
    outputs = call(backbone, inputs, only_shapes=True, **options)
    rows = inputs["token_ids"].shape
    num_layers, hidden_dim = backbone.num_layers, backbone.hidden_dim
    assert outputs["sequence_output"].shape == (*rows, hidden_dim)
    states = [tuple(x.shape) for x in outputs["hidden_states"]]
    assert states == [(*rows, hidden_dim)] * (num_layers + 1)
    attentions = [tuple(x.shape) for x in outputs["attentions"]]
    assert attentions == [(rows[0], backbone.num_heads, rows[1], rows[1])] * num_layers
    if backbone.pooler is not None:
        assert outputs["pooled_output"].shape == (rows[0], hidden_dim)


def check_padding(backbone):
    """Padding does not change an output; `hidden_states` are in order."""
    num_segments, padding_id = backbone.num_segments, backbone.padding_id or 0
    inputs = random_inputs(16, 12, num_segments=num_segments, padding_id=padding_id)
    mask = inputs["padding_mask"]
    row = int(np.flatnonzero((mask.sum(1) > 2) & ~mask[:, -1])[0])
    if "segment_ids" in inputs:
        inputs["segment_ids"][row] = 0  # As in a text without segments.
    outputs = call(backbone, inputs, return_hidden_states=True)
    assert_close(outputs["hidden_states"][-1], outputs["sequence_output"], 0)
    if keras.backend.backend() != "jax":  # It compiles each; see tests/layers/test_encoder.py.
        first = call(backbone, inputs, first_token_only=True)
        assert_close(first.pop("sequence_output"), outputs["sequence_output"][:, :1], 1e-6)
        assert_same_structure_close(first, {name: outputs[name] for name in first}, 1e-6)
    text = inputs["token_ids"][row : row + 1, mask[row]]
    alone = call(backbone, {"token_ids": text})
    names = {"sequence_output"} | ({"pooled_output"} if backbone.pooler is not None else set())
    assert set(alone) == names
    padded = to_numpy(outputs["sequence_output"])[row : row + 1, mask[row]]
    assert_close(padded, alone["sequence_output"], 1e-6)


def check_inputs_are_refused(backbone):
    """Segments without a table and too many tokens are refused before anything is computed."""
    ids = np.ones((2, backbone.max_sequence_length + 1), int)
    wrong = {"between 1 and 12 tokens": {"token_ids": ids}}
    if backbone.num_segments < 2:
        segments = {"token_ids": ids[:, :3], "segment_ids": 0 * ids[:, :3]}
        wrong["has no segments: leave them out"] = segments

    def call_with_tensors(inputs):
        backbone(keras.tree.map_structure(keras.ops.convert_to_tensor, inputs))

    for message, inputs in wrong.items():
        for call in (backbone, lambda x: backbone.predict(x, verbose=0), call_with_tensors):
            with pytest.raises(ValueError, match=message):
                call(inputs)


def check_weight_paths(backbone, golden, folder):
    """Renaming an attribute or a layer breaks every saved file. A golden list notices it.

    With `WRITE_GOLDEN=1` in the environment, the list of a new family is written.
    """
    import h5py

    path = str(folder / "model.weights.h5")
    backbone.save_weights(path)
    with h5py.File(path) as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
    found = {
        "paths": [[relative_path(v), list(v.shape)] for v in backbone.weights],
        "h5": sorted(names),
    }
    golden = GOLDEN / golden
    if not golden.exists():
        rule = f"{golden} must exist. Run the test with WRITE_GOLDEN=1, and check the names"
        assert os.environ.get("WRITE_GOLDEN"), rule
        golden.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(golden.read_text())


def transformers_outputs(reference, inputs, with_gradients=False, **options):
    """Returns what a model of transformers computes from our inputs."""
    import torch

    tensors = {
        THEIR_NAMES[name]: torch.tensor(x).long()
        for name, x in inputs.items()
        if name in THEIR_NAMES
    }
    with torch.set_grad_enabled(with_gradients):
        return reference(**tensors, **options)


def model_of_transformers(name, seed=0, **settings):
    """Returns a random model of transformers, by the name of its class, that gives attentions."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = getattr(transformers, name).config_class(**settings)
    config._attn_implementation = "eager"  # the fused one returns no attentions
    return getattr(transformers, name)(config).eval()


def perturbed(model):
    """Adds noise to a model of transformers, whose initial zeros and ones would hide mix-ups."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def check_equals_transformers(reference, inputs, folder):
    """A backbone loaded from a transformers model has its hidden states, attentions and outputs.

    Args:
        reference: the `transformers` model, with eager attention; its weights are changed.
        inputs: dict of arrays.
        folder: an empty folder.

    Returns:
        Our backbone.
    """
    perturbed(reference.eval()).save_pretrained(folder)
    backbone = Backbone.from_preset(folder)
    expected = transformers_outputs(
        reference, inputs, output_hidden_states=True, output_attentions=True
    )
    mask = inputs["padding_mask"]
    actual = call(backbone, inputs, return_hidden_states=True, return_attentions=True)
    assert_close(actual["hidden_states"][-1], actual["sequence_output"], 0)
    # All layers sum in another order than transformers: 170 roundings of float32.
    for a, b in zip(actual["hidden_states"], expected.hidden_states, strict=True):
        assert_close(to_numpy(a)[mask], b.numpy()[mask], 2e-5)
    for a, b in zip(actual["attentions"], expected.attentions, strict=True):
        assert_close(a, b.numpy(), 2e-5)
    fused = {key: to_numpy(array) for key, array in call(backbone, inputs).items()}
    last = expected.last_hidden_state.numpy()
    assert_close(fused["sequence_output"][mask], last[mask], 2e-5)
    if backbone.pooler is not None:
        assert_close(fused["pooled_output"], expected.pooler_output.numpy(), 2e-5)
    return backbone


def check_gradients(reference, inputs, folder, **options):
    """All gradients of a backbone are those of the transformers model that it is loaded from.

    Args:
        reference: the `transformers` model.
        inputs: dict of arrays.
        folder: an empty folder.
        **options: arguments of `from_preset`, such as `remat`.

    Returns:
        Dict from the paths of our weights to their gradients.
    """
    import torch

    reference.save_pretrained(folder)
    backbone = Backbone.from_preset(folder, dropout=0.0, attention_dropout=0.0, **options)
    weights = [weight for weight in backbone.weights if "/pooler/" not in weight.path]
    real = inputs["padding_mask"][..., None].astype("float32")
    scale = real * np.linspace(-1, 1, backbone.hidden_dim, dtype="float32")

    def output(*values):
        with keras.StatelessScope(zip(weights, values, strict=True)):
            return keras.ops.multiply(backbone(inputs, training=True)["sequence_output"], scale)

    found = gradients(output, *map(to_numpy, weights))
    found = dict(zip(map(relative_path, weights), found, strict=True))
    states = transformers_outputs(reference, inputs, with_gradients=True).last_hidden_state
    ((states * torch.tensor(scale)) ** 2).sum().backward()
    record, arrays = record_of(backbone), {}
    names = expand(record.rows, KINDS, record.counts, backbone)
    for path, gradient in found.items():
        name, transform = names[path]
        arrays[name] = transformed_back(gradient, transform, backbone.num_heads)
    arrays = record.tables.write(arrays, backbone) if record.tables else arrays
    for name, array in arrays.items():
        expected = reference.get_parameter(name).grad.numpy()
        if "word_embeddings" in name or "position_embeddings" in name:
            row = backbone.padding_id or 0  # PyTorch leaves it out.
            array = np.concatenate([array[:row], expected[row : row + 1], array[row + 1 :]])
        largest = max(np.abs(expected).max(), 1)
        # All layers sum in another order than transformers: 170 roundings of float32.
        np.testing.assert_allclose(array, expected, rtol=0, atol=2e-5 * largest, err_msg=name)
    return found


def check_config_is_refused(folder, config, message):
    """A config that no backbone supports is refused before weights are read."""
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"never read")
    with pytest.raises(ValueError, match=message):
        Backbone.from_preset(folder)


def padded_inputs(config, length, skipped=0, rng=None):
    """Returns four rows for a model of transformers: padded right, nowhere, left and anywhere.

    Families that count positions from the padding's id on, and skip so many, have that id at
    padding; the others have any.
    """
    rng, places = rng or np.random.default_rng(0), np.arange(length)
    mask = np.stack([places < 3, places >= 0, places > 2, rng.random(length) < 0.6])
    ids = rng.integers(skipped, config.vocab_size, mask.shape)
    inputs = {"token_ids": np.where(mask | (not skipped), ids, skipped - 1), "padding_mask": mask}
    if getattr(config, "type_vocab_size", 0) > 1:
        inputs["segment_ids"] = rng.integers(0, config.type_vocab_size, mask.shape)
    return inputs


def random_reference(family, seed, **settings):
    """Returns a tiny model of transformers and `padded_inputs` for it, of sizes the seed draws.

    Args:
        family: str, beginning of the name of its model class.
        seed: int.
        **settings: settings of its config that are not drawn.
    """
    rng = np.random.default_rng(seed)
    num_heads, longest = int(rng.integers(1, 5)), int(rng.integers(5, 15))
    skipped = settings.get("pad_token_id", 1) + 1 if family in ("Roberta", "MPNet") else 0
    sizes = {
        "vocab_size": int(rng.integers(20, 70)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "num_attention_heads": num_heads,
        "hidden_size": num_heads * int(rng.integers(3, 8)),
        "max_position_embeddings": longest + skipped,
        "initializer_range": 0.3,
    }
    width = "hidden_dim" if family == "DistilBert" else "intermediate_size"
    sizes[width] = int(rng.integers(5, 40))
    reference = model_of_transformers(f"{family}Model", seed, **sizes | settings)
    length = reference.config.max_position_embeddings - skipped
    return reference, padded_inputs(reference.config, length, skipped, rng)


def check_parity(family, seed, folder, **settings):
    """A model of transformers of random sizes loads as its family's backbone with its outputs.

    Args and settings are those of `random_reference`. Returns our backbone and the reference.
    """
    reference, inputs = random_reference(family, seed, **settings)
    backbone = check_equals_transformers(reference, inputs, folder)
    assert type(backbone).__name__ == f"{family}Backbone"
    assert backbone.max_sequence_length == inputs["token_ids"].shape[1]
    return backbone, reference


def refusals(*rows, of=None):
    """Returns a test of calls that raise errors.

    Args:
        *rows: tuples of a call, its error unless that is a `ValueError`, and the message's pattern.
        of: str, the name of a fixture that the calls take. Without it they take nothing.
    """

    @refused(*rows)
    def test(request, call):
        call(*([request.getfixturevalue(of)] if of else []))

    return test


def cases(*rows):
    """Returns a decorator of a test that runs with the values of each row for its last arguments.

    Args:
        *rows: tuples, or single values for the last argument, or objects of `pytest.param`.
    """

    def decorated(function):
        names = [*inspect.signature(function).parameters]
        first = rows[0].values if isinstance(rows[0], type(pytest.param())) else rows[0]
        num_values = len(first) if isinstance(first, tuple) else 1
        return pytest.mark.parametrize(",".join(names[-num_values:]), rows)(function)

    return decorated


def refused(*rows, error=ValueError, prefix=""):
    """Returns a decorator of a test whose call with the values of each row raises an error.

    Marks stand above it.

    Args:
        *rows: tuples of the values of the test's last arguments, its error unless that is `error`,
            and the message's pattern. The first arguments are fixtures.
        error: class of error, or a tuple of classes.
        prefix: str, what each pattern begins with, with the names of arguments in braces.
    """

    def decorated(function):
        names = [*inspect.signature(function).parameters]

        @pytest.mark.parametrize("row", rows)
        def test(request, row):
            *values, pattern = row
            raised = values.pop() if isinstance(values[-1], type) else error
            fixtures = [request.getfixturevalue(name) for name in names[: -len(values)]]
            start = prefix.format(**dict(zip(names[-len(values) :], values, strict=True)))
            with pytest.raises(raised, match=start + pattern):
                function(*fixtures, *values)

        return test

    return decorated
