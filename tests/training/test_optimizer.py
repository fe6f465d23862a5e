"""AdamW and LAMB: equal to torch.optim.AdamW and to NumPy, whatever the backend."""

import warnings

import keras
import numpy as np
import pytest
import torch
from keras import ops
from tied_model import TOKENS, Tied, make_tied_model

import bert_keras
from bert_keras.training.optimizer import AdamW, Lamb
from bert_keras.training.schedules import WarmupDecay
from bert_keras.training.stages import layer_wise_decay

PATHS = (
    "bert_backbone/embeddings/token_embedding/embeddings",
    "bert_backbone/encoder/layer_0/attention/query/kernel",
    "bert_backbone/encoder/layer_0/attention/query/bias",
    "bert_backbone/encoder/layer_0/attention_norm/gamma",
    "bert_backbone/encoder/layer_1/attention/query/kernel",
    "bert_backbone/encoder/layer_1/attention_norm/beta",
    "bert_backbone/pooler/dense/kernel",
    "head/dense/kernel",
    "head/dense/bias",
)
SHAPES = ((7, 4), (4, 4), (4,), (4,), (4, 4), (4,), (4, 4), (4, 2), (2,))
UNDECAYED = (2, 3, 5, 8)


def tiny_backbone(**options):
    return bert_keras.BertBackbone(10, 2, 2, 8, 16, **options)


class Scoped(keras.layers.Layer):
    """Holds one variable under a given path."""

    def __init__(self, path, value):
        scopes, _, name = path.rpartition("/")
        super().__init__(name=scopes.replace("/", "-"))
        self.variable = self.add_weight(shape=value.shape, name=name)
        self.variable.assign(value)
        self.variable._path = path


def make_variables(seed=0):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=shape).astype("float32") for shape in SHAPES]
    return [Scoped(path, value).variable for path, value in zip(PATHS, values, strict=True)], values


def make_gradients(num_steps, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    return [
        [scale * rng.normal(size=shape).astype("float32") for shape in SHAPES]
        for _ in range(num_steps)
    ]


def train(optimizer, variables, gradients, history=None):
    """Applies the gradients of each step; appends the weights after each to `history`."""
    if not optimizer.built:
        optimizer.build(variables)
    step = {"jax": compiled_by_jax, "torch": without_graph}.get(keras.backend.backend(), plain)
    step = step(optimizer, variables)
    for gradients_of_step in gradients:
        weights = step([ops.convert_to_tensor(np.array(g)) for g in gradients_of_step])
        weights = [np.array(ops.convert_to_numpy(weight)) for weight in weights]
        if history is not None:
            history.append(weights)
    return weights


def plain(optimizer, variables):
    def step(gradients):
        optimizer.apply(gradients)
        return variables

    return step


def without_graph(optimizer, variables):
    return torch.no_grad()(plain(optimizer, variables))


def compiled_by_jax(optimizer, variables):
    import jax

    update = jax.jit(optimizer.stateless_apply)

    def step(gradients):
        weights, state = update(
            [v.value for v in optimizer.variables], gradients, [v.value for v in variables]
        )
        for variable, value in zip(variables + optimizer.variables, weights + state, strict=True):
            variable.assign(value)
        return weights

    return step


def train_torch(values, gradients, rates, factors=None, frozen=lambda step, i: False, **arguments):
    """The same by torch.optim.AdamW, one group a variable; a frozen one has no gradient."""
    parameters = [torch.nn.Parameter(torch.tensor(value)) for value in values]
    factors = factors or [1.0] * len(values)
    groups = [
        {"params": [p], "weight_decay": 0.0 if i in UNDECAYED else 0.01}
        for i, p in enumerate(parameters)
    ]
    arguments = {"eps": 1e-6, **arguments}
    optimizer = torch.optim.AdamW(groups, lr=1.0, **arguments)
    for step, (step_gradients, rate) in enumerate(zip(gradients, rates, strict=True)):
        for i, (parameter, gradient) in enumerate(zip(parameters, step_gradients, strict=True)):
            parameter.grad = None if frozen(step, i) else torch.tensor(gradient)
            optimizer.param_groups[i]["lr"] = rate * factors[i]
        norm = torch.linalg.norm(
            torch.stack([p.grad.norm() for p in parameters if p.grad is not None])
        )
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad /= max(1.0, float(norm))
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters]


def train_numpy(values, gradients, rate, correct):
    """The formula of AdamW's docstring in float64, without clipping."""
    weights = [value.astype("float64") for value in values]
    m = [np.zeros_like(weight) for weight in weights]
    v = [np.zeros_like(weight) for weight in weights]
    for t, step in enumerate(gradients, start=1):
        for i, g in enumerate(step):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * np.square(g, dtype="float64")
            c1, c2 = (1 - 0.9**t, 1 - 0.999**t) if correct else (1, 1)
            decay = 0 if i in UNDECAYED else 0.01
            update = (m[i] / c1) / (np.sqrt(v[i] / c2) + 1e-6)
            weights[i] = weights[i] - rate * (decay * weights[i] + update)
    return weights


def assert_all_close(actual, expected, atol=1e-6):
    for path, a, e in zip(PATHS, actual, expected, strict=True):
        np.testing.assert_allclose(a, e, atol=atol, rtol=1e-6, err_msg=path)


@pytest.mark.parametrize("scale", [0.01, 10.0], ids=["unclipped", "clipped"])
def test_twenty_steps_equal_torch(scale):
    variables, values = make_variables()
    gradients = make_gradients(20, scale=scale)
    schedule = WarmupDecay(1e-2, total_steps=20, warmup=5)
    rates = [float(ops.convert_to_numpy(schedule(step))) for step in range(20)]
    ours = train(AdamW(schedule), variables, gradients)
    assert_all_close(ours, train_torch(values, gradients, rates))


@pytest.mark.parametrize("correct", [True, False], ids=["corrected", "original BERT"])
def test_steps_equal_the_formula_in_numpy(correct):
    variables, values = make_variables()
    gradients = make_gradients(10)
    optimizer = AdamW(1e-3, global_clipnorm=None, bias_correction=correct)
    ours = train(optimizer, variables, gradients)
    assert_all_close(ours, train_numpy(values, gradients, 1e-3, correct))


def test_only_kernels_and_embeddings_decay():
    variables, values = make_variables()
    zeros = [[np.zeros(shape, "float32") for shape in SHAPES]]
    after = train(AdamW(0.1, weight_decay=0.5), variables, zeros)
    for i, (value, new) in enumerate(zip(values, after, strict=True)):
        np.testing.assert_allclose(new, value if i in UNDECAYED else value * 0.95, rtol=1e-6)


def test_decay_groups_are_regular_expressions_over_paths():
    variables, values = make_variables()
    optimizer = AdamW(0.1, weight_decay=0.5, exclude_from_weight_decay=[r"layer_0/", "^head"])
    zeros = [[np.zeros(shape, "float32") for shape in SHAPES]]
    after = train(optimizer, variables, zeros)
    for path, value, new in zip(PATHS, values, after, strict=True):
        kept = "layer_0/" in path or path.startswith("head")
        np.testing.assert_allclose(new, value if kept else value * 0.95, rtol=1e-6)


def test_layer_wise_decay_gives_the_stated_ratios():
    variables, values = make_variables()
    multipliers = layer_wise_decay(tiny_backbone(), rate=0.5, head=3.0)
    optimizer = AdamW(1e-2, weight_decay=0.0, epsilon=1e-12, learning_rate_multipliers=multipliers)
    after = train(optimizer, variables, [[np.full(s, 0.1, "float32") for s in SHAPES]])
    steps = [np.mean(old - new) / 1e-2 for old, new in zip(values, after, strict=True)]
    # Embeddings, two layers, pooler, head; the first step of Adam is 1 in every coordinate.
    expected = [0.125, 0.25, 0.25, 0.25, 0.5, 0.5, 1.0, 3.0, 3.0]
    np.testing.assert_allclose(steps, expected, rtol=1e-3)


def test_layer_wise_decay_equals_torch_with_a_group_for_each_variable():
    variables, values = make_variables()
    gradients = make_gradients(8)
    multipliers = layer_wise_decay(tiny_backbone(), rate=0.9, head=2.0)
    factors = [0.9**3, 0.81, 0.81, 0.81, 0.9, 0.9, 1.0, 2.0, 2.0]
    ours = train(AdamW(1e-2, learning_rate_multipliers=multipliers), variables, gradients)
    assert_all_close(ours, train_torch(values, gradients, [1e-2] * 8, factors))


def test_the_first_multiplier_found_counts():
    variables, values = make_variables()
    optimizer = AdamW(1.0, learning_rate_multipliers=[("kernel", 0.0), ("head", 1.0)])
    after = train(optimizer, variables, make_gradients(1))
    np.testing.assert_array_equal(after[7], values[7])
    assert np.all(after[8] != values[8])


def test_a_multiplier_that_matches_nothing_is_reported():
    variables, _ = make_variables()
    with pytest.warns(UserWarning, match="layer_7"):
        AdamW(1.0, learning_rate_multipliers=[("layer_7/", 0.5)]).build(variables)


def test_frozen_variables_keep_their_bits_and_thaw_as_in_torch():
    variables, values = make_variables()
    gradients = make_gradients(9)
    optimizer = AdamW(1e-2)
    optimizer.build(variables)
    optimizer.freeze("layer_0/", "embeddings/")
    after_three = train(optimizer, variables, gradients[:3])
    for i in range(4):
        np.testing.assert_array_equal(after_three[i], values[i])
    assert optimizer.frozen_paths == list(PATHS[:4])
    optimizer.unfreeze("layer_0/")
    after_six = train(optimizer, variables, gradients[3:6])
    np.testing.assert_array_equal(after_six[0], values[0])
    optimizer.unfreeze("embeddings/")
    optimizer.freeze("head")
    ours = train(optimizer, variables, gradients[6:])
    for i in (7, 8):
        np.testing.assert_array_equal(ours[i], after_six[i])

    def frozen(step, i):
        return (i == 0 and step < 6) or (i in (1, 2, 3) and step < 3) or (i >= 7 and step >= 6)

    assert_all_close(ours, train_torch(values, gradients, [1e-2] * 9, frozen=frozen))


def test_gradients_accumulated_while_frozen_are_forgotten():
    variables, values = make_variables()
    others, _ = make_variables()
    first, second, third, fourth = make_gradients(4)
    optimizer = AdamW(1e-2, global_clipnorm=None, gradient_accumulation_steps=2)
    optimizer.build(variables)
    optimizer.freeze("embeddings/")
    after = train(optimizer, variables, [first, second, third])
    np.testing.assert_array_equal(after[0], values[0])
    optimizer.unfreeze("embeddings/")
    after = train(optimizer, variables, [fourth])
    # Of the second update only its second half.
    plain = AdamW(1e-2, global_clipnorm=None)
    alone = train(plain, others, [[gradient / 2 for gradient in fourth]])
    np.testing.assert_allclose(after[0], alone[0], rtol=1e-5, atol=1e-6)


def test_freezing_needs_a_built_optimizer_and_a_known_path():
    with pytest.raises(ValueError, match="must be built"):
        AdamW().freeze("head")
    variables, _ = make_variables()
    optimizer = AdamW()
    optimizer.build(variables)
    with pytest.raises(ValueError, match="layer_9"):
        optimizer.freeze("layer_9/")


def test_lamb_scales_each_step_to_its_variable():
    variables, values = make_variables()
    gradients = make_gradients(1)
    after = train(Lamb(1e-2, global_clipnorm=None), variables, gradients)
    for i, (value, gradient, new) in enumerate(zip(values, gradients[0], after, strict=True)):
        step = gradient / (np.abs(gradient) + 1e-6)
        if i not in UNDECAYED:
            step = step + 0.01 * value
            step *= np.linalg.norm(value) / np.linalg.norm(step)
        np.testing.assert_allclose(new, value - 1e-2 * step, rtol=1e-5, atol=1e-6)


def test_lamb_equals_its_formula_with_all_options():
    variables, weights = make_variables()
    multipliers = [("embeddings/", 0.25), ("head/", 3.0)]
    optimizer = Lamb(1e-2, weight_decay=0.1, learning_rate_multipliers=multipliers)
    optimizer.build(variables)
    optimizer.freeze("pooler")
    gradients = make_gradients(4, scale=3.0)
    after = train(optimizer, variables, gradients)
    weights = [value.astype("float64") for value in weights]
    moments = [[np.zeros(value.shape), np.zeros(value.shape)] for value in weights]
    for t, parts in enumerate(gradients, 1):
        norm = np.sqrt(sum(np.sum(np.square(g)) for i, g in enumerate(parts) if i != 6))
        assert norm > 1  # It is clipped.
        for i, (w, (m, v), g) in enumerate(zip(weights, moments, parts, strict=True)):
            if i == 6:
                continue
            g = g.astype("float64") / norm
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6)
            if i not in UNDECAYED:
                step += 0.1 * w
                step *= np.linalg.norm(w) / np.linalg.norm(step)
            w -= 1e-2 * {0: 0.25, 7: 3.0, 8: 3.0}.get(i, 1.0) * step
    for new, expected in zip(after, weights, strict=True):
        np.testing.assert_allclose(new, expected, rtol=1e-5, atol=1e-6)


def test_lamb_without_decay_equals_keras():
    variables, _ = make_variables()
    others, _ = make_variables()
    gradients = make_gradients(5)
    ours = Lamb(1e-2, weight_decay=0.0, global_clipnorm=None, exclude_from_weight_decay=())
    theirs = keras.optimizers.Lamb(1e-2, epsilon=1e-6)
    assert_all_close(train(ours, variables, gradients), train(theirs, others, gradients))


def test_lamb_survives_a_zero_variable():
    variables, _ = make_variables()
    variables[1].assign(np.zeros(SHAPES[1]))
    (gradients,) = make_gradients(1)
    after = train(Lamb(1e-2, global_clipnorm=None), variables, [gradients])
    step = gradients[1] / (np.abs(gradients[1]) + 1e-6)
    np.testing.assert_allclose(after[1], -1e-2 * step, rtol=1e-5, atol=1e-6)
    after = train(Lamb(1e-2), variables, make_gradients(2))
    assert all(np.isfinite(value).all() for value in after)


@pytest.mark.parametrize("make", [AdamW, Lamb])
@pytest.mark.parametrize("use_ema", [False, True])
def test_accumulation_equals_the_big_batch(make, use_ema):
    small, values = make_variables()
    big, _ = make_variables()
    gradients = make_gradients(12)
    summed = [
        [np.mean(parts, axis=0) for parts in zip(*gradients[i : i + 3], strict=True)]
        for i in range(0, 12, 3)
    ]
    arguments = {"use_ema": use_ema, "ema_momentum": 0.8}
    accumulated = make(
        WarmupDecay(1e-2, total_steps=12, warmup=3), gradient_accumulation_steps=3, **arguments
    )
    at_once = make(WarmupDecay(1e-2, total_steps=4, warmup=1), **arguments)
    after_small = train(accumulated, small, gradients)
    assert_all_close(after_small, train(at_once, big, summed))
    assert np.abs(after_small[0] - values[0]).max() > 1e-3
    if use_ema:
        accumulated.finalize_variable_values(small)
        at_once.finalize_variable_values(big)
        assert_all_close(
            [ops.convert_to_numpy(v) for v in small], [ops.convert_to_numpy(v) for v in big]
        )


def test_the_moving_average_is_the_one_by_hand():
    variables, _ = make_variables()
    optimizer = AdamW(1e-2, use_ema=True, ema_momentum=0.9)
    history = []
    train(optimizer, variables, make_gradients(6), history)
    optimizer.finalize_variable_values(variables)
    average = history[0]
    for weights in history[1:]:
        average = [0.9 * a + 0.1 * w for a, w in zip(average, weights, strict=True)]
    assert_all_close([ops.convert_to_numpy(variable) for variable in variables], average)


def test_without_an_update_there_is_no_average_and_the_weights_stay():
    variables, values = make_variables()
    optimizer = AdamW(1e-2, use_ema=True, gradient_accumulation_steps=3)
    optimizer.build(variables)
    optimizer.finalize_variable_values(variables)
    for variable, value in zip(variables, values, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), value)


def test_overwriting_by_the_average_and_accumulation_exclude_each_other():
    with pytest.raises(ValueError, match="ema_overwrite_frequency"):
        AdamW(1e-3, use_ema=True, ema_overwrite_frequency=2, gradient_accumulation_steps=2)


@pytest.mark.parametrize("pattern", ["(", 3])
def test_a_malformed_pattern_is_refused(pattern):
    with pytest.raises(ValueError, match="regular expression"):
        AdamW(exclude_from_weight_decay=[pattern])


def test_config_round_trip_under_the_registered_name():
    for make, name in ((AdamW, "AdamW"), (Lamb, "Lamb")):
        optimizer = make(
            WarmupDecay(1e-3, 10),
            weight_decay=0.3,
            bias_correction=False,
            exclude_from_weight_decay=["a+"],
            learning_rate_multipliers=layer_wise_decay(tiny_backbone(), 0.5),
            gradient_accumulation_steps=2,
        )
        config = keras.optimizers.serialize(optimizer)
        assert config["registered_name"] == f"bert_keras>{name}"
        restored = keras.optimizers.deserialize(config)
        assert type(restored) is make
        assert restored.get_config() == optimizer.get_config()


# In a model


def train_tied_by_torch(num_steps, rate, batches):
    """The same model and training in plain torch."""
    rng = np.random.default_rng(3)
    shapes = [(7, 4), (4, 4), (4,)]
    table, kernel, bias = (
        torch.nn.Parameter(torch.tensor(rng.normal(size=shape, scale=0.5).astype("float32")))
        for shape in shapes
    )
    optimizer = torch.optim.AdamW(
        [
            {"params": [table, kernel], "weight_decay": 0.01},
            {"params": [bias], "weight_decay": 0.0},
        ],
        lr=rate,
        eps=1e-6,
    )
    tokens = torch.tensor(TOKENS)
    for step in range(num_steps):
        batch = tokens[batches[step % len(batches)]]
        logits = torch.tanh(table[batch] @ kernel + bias) @ table.T
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 7), batch.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([table, kernel, bias], 1.0)
        optimizer.step()
    return [p.detach().numpy() for p in (table, kernel, bias)]


def test_fit_with_repeated_tokens_and_a_tied_table_equals_torch():
    model = make_tied_model(AdamW(1e-3))
    model.fit(TOKENS, TOKENS, batch_size=2, epochs=10, shuffle=False, verbose=0)
    expected = train_tied_by_torch(20, 1e-3, [[0, 1], [2, 3]])
    for ours, theirs in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.once
@pytest.mark.xla
def test_without_compilation_it_is_the_same():
    weights = []
    for jit_compile in ("auto", False):
        model = make_tied_model(AdamW(1e-2), jit_compile=jit_compile)
        model.fit(TOKENS, TOKENS, batch_size=2, epochs=2, shuffle=False, verbose=0)
        weights.append(model.get_weights())
    for first, second in zip(*weights, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.once
def test_accumulation_in_fit_equals_the_big_batch():
    accumulated = make_tied_model(AdamW(1e-2, gradient_accumulation_steps=2))
    at_once = make_tied_model(AdamW(1e-2))
    accumulated.fit(TOKENS, TOKENS, batch_size=2, epochs=6, shuffle=False, verbose=0)
    at_once.fit(TOKENS, TOKENS, batch_size=4, epochs=6, shuffle=False, verbose=0)
    for first, second in zip(accumulated.get_weights(), at_once.get_weights(), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)


def test_fit_ends_with_the_averaged_weights():
    model = make_tied_model(AdamW(1e-2, use_ema=True, ema_momentum=0.5))
    plain = make_tied_model(AdamW(1e-2))
    average = None
    for _ in range(3):
        plain.fit(TOKENS, TOKENS, batch_size=4, shuffle=False, verbose=0)
        weights = plain.get_weights()
        average = (
            weights
            if average is None
            else [0.5 * a + 0.5 * w for a, w in zip(average, weights, strict=True)]
        )
    model.fit(TOKENS, TOKENS, batch_size=4, epochs=3, shuffle=False, verbose=0)
    for ours, expected in zip(model.get_weights(), average, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_freezing_between_epochs_is_seen_by_the_compiled_step():
    optimizer = AdamW(1e-2)
    model = make_tied_model(optimizer)
    model.fit(TOKENS, TOKENS, epochs=1, verbose=0)
    before = model.get_weights()
    optimizer.freeze("token_embedding")
    model.fit(TOKENS, TOKENS, epochs=2, verbose=0)
    after = model.get_weights()
    np.testing.assert_array_equal(after[0], before[0])
    assert np.all(after[1] != before[1])


def test_an_average_of_what_is_frozen_is_the_same_bit_for_bit():
    optimizer = AdamW(1e-2, use_ema=True, ema_momentum=0.9)
    model = make_tied_model(optimizer)
    optimizer.build(model.trainable_variables)
    optimizer.freeze("token_embedding")
    before = model.get_weights()
    model.fit(TOKENS, TOKENS, epochs=5, verbose=0)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert np.all(model.get_weights()[1] != before[1])


def test_weights_in_bfloat16_move_by_the_rate():
    # A `beta_2` that is rounded to 1 would leave the squares at 0, and the step would be endless.
    variable = keras.Variable(np.ones(3), dtype="bfloat16", name="kernel")
    AdamW(2.0**-6, weight_decay=0.0).apply([keras.ops.full((3,), 0.5, "bfloat16")], [variable])
    np.testing.assert_allclose(keras.ops.convert_to_numpy(variable), 1 - 2.0**-6, rtol=2**-8)


def test_averages_need_float32():
    variable = keras.Variable(np.ones(3), dtype="bfloat16", name="kernel")
    with pytest.raises(ValueError, match="mixed_bfloat16"):
        AdamW(use_ema=True).build([variable])


def test_keras_own_way_to_leave_variables_out_is_refused():
    with pytest.raises(ValueError, match="exclude_from_weight_decay="):
        AdamW().exclude_from_weight_decay(var_names=["kernel"])


def test_loss_scaling_wraps_it():
    plain = make_tied_model(AdamW(1e-2))
    scaled = make_tied_model(keras.optimizers.LossScaleOptimizer(AdamW(1e-2), initial_scale=8.0))
    for model in (plain, scaled):
        model.fit(TOKENS, TOKENS, epochs=3, shuffle=False, verbose=0)
    for first, second in zip(plain.get_weights(), scaled.get_weights(), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)


def test_saved_in_the_middle_it_continues_bit_for_bit(tmp_path):
    def make():
        return AdamW(
            WarmupDecay(1e-2, total_steps=12, warmup=4, decay="cosine"),
            learning_rate_multipliers=[("dense", 0.5)],
            use_ema=True,
        )

    def save_and_load(model):
        model.save(tmp_path / "half.keras")
        return keras.saving.load_model(tmp_path / "half.keras", custom_objects={"Tied": Tied})

    interrupted, straight = make_tied_model(make()), make_tied_model(make())
    arguments = {"batch_size": 2, "shuffle": False, "verbose": 0}
    for model in (interrupted, straight):
        model.fit(TOKENS, TOKENS, epochs=3, **arguments)
        model.optimizer.freeze("dense/bias")
    interrupted = save_and_load(interrupted)
    assert int(ops.convert_to_numpy(interrupted.optimizer.iterations)) == 6
    for model in (interrupted, straight):
        model.fit(TOKENS, TOKENS, epochs=3, **arguments)
    for first, second in zip(interrupted.get_weights(), straight.get_weights(), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (bert_keras.TextClassifier, {}),
        (bert_keras.TextClassifier, {"frozen": "embeddings"}),
        (bert_keras.TokenClassifier, {"num_classes": 2}),
        (bert_keras.Pretraining, {}),
    ],
)
def test_layer_wise_decay_finds_the_parts_of_a_backbone_of_any_name(task, options):
    backbone = tiny_backbone(name="encoder_of_mine")
    model = task(backbone, **options)
    optimizer = AdamW(learning_rate_multipliers=layer_wise_decay(backbone, 0.5, head=3.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if options.get("frozen") else "error")
        optimizer.build(model.trainable_variables)
    parts = {"embeddings": 0.125, "encoder/layer_0": 0.25, "encoder/layer_1": 0.5, "pooler": 1.0}
    factors = {f"encoder_of_mine/{part}/": factor for part, factor in parts.items()}
    for path, factor in zip(optimizer._paths, optimizer._factors, strict=True):
        part = next((part for part in factors if path.startswith(part)), None)
        assert factor == factors.get(part, 3.0), path
        assert part or "/head/" in path


@pytest.mark.parametrize("make", [AdamW, Lamb])
def test_other_clippings_take_the_place_of_the_default(make):
    assert make().global_clipnorm == 1.0
    for options in ({"clipnorm": 0.5}, {"clipvalue": 0.5}):
        optimizer = make(**options)
        assert optimizer.global_clipnorm is None
        again = make.from_config(optimizer.get_config())
        assert again.get_config() == optimizer.get_config()
    assert make.from_config(make(global_clipnorm=None).get_config()).global_clipnorm is None
    with pytest.raises(ValueError, match="Only one"):
        make(clipnorm=0.5, global_clipnorm=1.0)


def test_clipping_by_value_clips_each_coordinate():
    after = []
    for second in (0.5, 7.0):
        steps = [[np.full(s, x, "float32") for s in SHAPES] for x in (0.1, second)]
        after.append(train(AdamW(1e-2, clipvalue=0.5), make_variables()[0], steps))
    assert_all_close(*after)
