"""AdamW and LAMB equal torch.optim.AdamW and NumPy on every backend."""

import itertools

import keras
import numpy as np
import pytest
import torch
from checks import assert_same_structure_close, cases, made_again, refusals, to_numpy
from keras import ops
from tied_model import TOKENS, make_tied_model

import bert_keras
from bert_keras.training.optimizer import AdamW, Lamb
from bert_keras.training.schedules import WarmupDecay, layer_wise_decay

pytestmark = pytest.mark.once

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


def random_arrays(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    while True:
        yield [scale * rng.normal(size=shape).astype("float32") for shape in SHAPES]


VALUES = next(random_arrays(0))
ZEROS = [np.zeros(shape, "float32") for shape in SHAPES]


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


def make_variables():
    return [Scoped(path, value).variable for path, value in zip(PATHS, VALUES, strict=True)]


def make_gradients(num_steps, scale=1.0):
    return [*itertools.islice(random_arrays(1, scale), num_steps)]


def train(optimizer, gradients, variables=None):
    """Applies the gradients of each step to variables that begin at `VALUES`; returns them."""
    variables = make_variables() if variables is None else variables
    optimizer.build(variables)
    if keras.backend.backend() == "jax":
        train_on_jax(optimizer, gradients, variables)
        gradients = []
    with torch.no_grad():  # It has no effect on the other backends.
        for step in gradients:
            # A view of another order, as gradients of transposed weights may be.
            optimizer.apply([ops.convert_to_tensor(np.array(x, order="F")) for x in step])
    return [np.array(to_numpy(variable)) for variable in variables]


def train_on_jax(optimizer, gradients, variables):
    """Applies the gradients in one program: to compile each operation takes longer."""
    import jax

    apply = jax.jit(optimizer.stateless_apply)
    groups = variables, optimizer.variables
    values, state = ([variable.value for variable in group] for group in groups)
    for step in gradients:
        values, state = apply(state, step, values)
    for group, new in zip(groups, (values, state), strict=True):
        for variable, value in zip(group, new, strict=True):
            variable.assign(value)


def torch_adamw(values, undecayed, rate=1.0):
    """Returns parameters and the torch.optim.AdamW of them, one group per parameter."""
    parameters = [torch.nn.Parameter(torch.tensor(value)) for value in values]
    decays = [0.0 if i in undecayed else 0.01 for i in range(len(values))]
    groups = [{"params": [p], "weight_decay": x} for p, x in zip(parameters, decays, strict=True)]
    return parameters, torch.optim.AdamW(groups, lr=rate, eps=1e-6)


def train_torch(gradients, rates, factors):
    """The same by torch.optim.AdamW."""
    parameters, optimizer = torch_adamw(VALUES, UNDECAYED)
    for step_gradients, rate in zip(gradients, rates, strict=True):
        for i, (parameter, gradient) in enumerate(zip(parameters, step_gradients, strict=True)):
            parameter.grad = torch.tensor(gradient)
            optimizer.param_groups[i]["lr"] = rate * factors[i]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters]


def train_by_original_bert(gradients, rate):
    """The formula of AdamW's docstring in float64, without clipping and correction of the bias."""
    weights = [value.astype("float64") for value in VALUES]
    moments = [[np.zeros_like(weight), np.zeros_like(weight)] for weight in weights]
    for step in gradients:
        for i, (weight, (m, v), g) in enumerate(zip(weights, moments, step, strict=True)):
            m += 0.1 * (g - m)
            v += 0.001 * (np.square(g, dtype="float64") - v)
            decay = 0 if i in UNDECAYED else 0.01
            weight -= rate * (decay * weight + m / (np.sqrt(v) + 1e-6))
    return weights


def assert_all_close(actual, expected, atol=4e-6, rtol=4e-6):
    """Each of twenty steps rounds its weights and moments to float32, by 6e-8 at most."""
    for path, a, e in zip(PATHS, actual, expected, strict=True):
        np.testing.assert_allclose(a, e, atol=atol, rtol=rtol, err_msg=path)


@pytest.mark.each_backend
@pytest.mark.parametrize(
    ("scale", "factors"),
    [(0.01, [1.0] * 9), (10.0, [0.9**3, 0.81, 0.81, 0.81, 0.9, 0.9, 1.0, 2.0, 2.0])],
    ids=["unclipped", "clipped, with rates by layer"],
)
def test_twenty_steps_equal_torch(scale, factors):
    gradients = make_gradients(20, scale=scale)
    schedule = WarmupDecay(1e-2, total_steps=20, warmup=5)
    rates = [float(to_numpy(schedule(step))) for step in range(20)]
    multipliers = layer_wise_decay(tiny_backbone(), rate=0.9, head=2.0) if scale > 1 else ()
    ours = train(AdamW(schedule, learning_rate_multipliers=multipliers), gradients)
    assert_all_close(ours, train_torch(gradients, rates, factors))


def test_without_bias_correction_steps_equal_those_of_the_original_bert():
    gradients = make_gradients(10)
    optimizer = AdamW(1e-3, global_clipnorm=None, bias_correction=False)
    assert_all_close(train(optimizer, gradients), train_by_original_bert(gradients, 1e-3))


def test_variables_whose_paths_are_excluded_do_not_decay():
    excluded = [r"layer_0/", "^head"]
    optimizer = AdamW(0.1, weight_decay=0.5, exclude_from_weight_decay=excluded)
    factors = [1.0 if "layer_0/" in x or x.startswith("head") else 0.95 for x in PATHS]
    expected = [value * factor for value, factor in zip(VALUES, factors, strict=True)]
    assert_all_close(train(optimizer, [ZEROS]), expected, atol=0)


def test_the_first_matching_multiplier_is_used_and_one_without_matches_gets_a_warning():
    optimizer = AdamW(1.0, learning_rate_multipliers=[("kernel", 0.0), ("head", 1.0)])
    after = train(optimizer, make_gradients(1))
    np.testing.assert_array_equal(after[7], VALUES[7])
    assert np.all(after[8] != VALUES[8])
    with pytest.warns(UserWarning, match="layer_7"):
        AdamW(1.0, learning_rate_multipliers=[("layer_7/", 0.5)]).build(make_variables())


@pytest.mark.each_backend
def test_lamb_equals_its_formula_with_all_options():
    multipliers = [("embeddings/", 0.25), ("head/", 3.0)]
    optimizer = Lamb(1e-2, learning_rate_multipliers=multipliers)
    gradients = make_gradients(4, scale=3.0)
    after = train(optimizer, gradients)
    weights = [value.astype("float64") for value in VALUES]
    moments = [[np.zeros(value.shape), np.zeros(value.shape)] for value in weights]
    for t, step_gradients in enumerate(gradients, 1):
        norm = np.sqrt(sum(np.sum(np.square(g)) for g in step_gradients))
        assert norm > 1  # It is clipped.
        for i, (w, (m, v), g) in enumerate(zip(weights, moments, step_gradients, strict=True)):
            g = g.astype("float64") / norm
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6)
            if i not in UNDECAYED:
                step += 0.01 * w
                step *= np.linalg.norm(w) / np.linalg.norm(step)
            w -= 1e-2 * {0: 0.25, 7: 3.0, 8: 3.0}.get(i, 1.0) * step
    assert_all_close(after, weights, rtol=1e-5)


def test_lamb_without_decay_equals_keras():
    gradients = make_gradients(5)
    ours = Lamb(1e-2, weight_decay=0.0, global_clipnorm=None, exclude_from_weight_decay=())
    theirs = keras.optimizers.Lamb(1e-2, epsilon=1e-6)
    assert_all_close(train(ours, gradients), train(theirs, gradients))


def test_lamb_survives_a_zero_variable():
    variables = make_variables()
    variables[1].assign(np.zeros(SHAPES[1]))
    (gradients,) = make_gradients(1)
    after = train(Lamb(1e-2, global_clipnorm=None), [gradients], variables)
    step = gradients[1] / (np.abs(gradients[1]) + 1e-6)
    np.testing.assert_allclose(after[1], -1e-2 * step, rtol=1e-5, atol=1e-6)
    after = train(Lamb(1e-2), make_gradients(2), variables)
    assert all(np.isfinite(value).all() for value in after)


@cases(pytest.param(AdamW, True, marks=pytest.mark.each_backend), (Lamb, False))
def test_accumulation_equals_the_big_batch(make, use_ema):
    small, big, gradients = make_variables(), make_variables(), make_gradients(12)
    means = [
        [np.mean(three, axis=0) for three in zip(*gradients[i : i + 3], strict=True)]
        for i in range(0, 12, 3)
    ]
    options = {"use_ema": use_ema, "ema_momentum": 0.8}
    schedule = WarmupDecay(1e-2, total_steps=12, warmup=3)
    accumulated = make(schedule, gradient_accumulation_steps=3, **options)
    at_once = make(WarmupDecay(1e-2, total_steps=4, warmup=1), **options)
    after = train(accumulated, gradients, small)
    assert_all_close(after, train(at_once, means, big))
    assert np.abs(after[0] - VALUES[0]).max() > 1e-3
    if use_ema:
        accumulated.finalize_variable_values(small)
        at_once.finalize_variable_values(big)
        assert_all_close(map(to_numpy, small), map(to_numpy, big))


def test_without_an_update_the_weights_are_unchanged():
    optimizer, variables = (
        AdamW(1e-2, use_ema=True, gradient_accumulation_steps=3),
        make_variables(),
    )
    train(optimizer, [], variables)
    optimizer.finalize_variable_values(variables)
    assert_same_structure_close(variables, VALUES, 0)


def half(name="kernel"):
    return keras.Variable(np.ones(3), dtype="bfloat16", name=name)


test_impossible_settings_are_refused = refusals(
    (lambda: AdamW(exclude_from_weight_decay=["("]), "regular expression"),
    (lambda: AdamW(exclude_from_weight_decay=[3]), "regular expression"),
    (lambda: AdamW(use_ema=True).build([half()]), "mixed_bfloat16"),
    (lambda: AdamW().exclude_from_weight_decay(var_names=["kernel"]), "exclude_from_weight_decay="),
    (
        lambda: AdamW(use_ema=True, ema_overwrite_frequency=2, gradient_accumulation_steps=2),
        "ema_overwrite_frequency",
    ),
    *(
        (lambda x=x: layer_wise_decay(tiny_backbone(), x), "`rate`")
        for x in (0.0, 1.5, float("nan"), "0.9")
    ),
    (lambda: layer_wise_decay(tiny_backbone(), 0.9, head=-1.0), "`head`"),
)


@pytest.mark.parametrize("make", [AdamW, Lamb])
def test_a_config_restores_the_optimizer_under_its_registered_name(make):
    optimizer = make(
        WarmupDecay(1e-3, 10),
        weight_decay=0.3,
        bias_correction=False,
        exclude_from_weight_decay=["a+"],
        learning_rate_multipliers=layer_wise_decay(tiny_backbone(), 0.5),
        gradient_accumulation_steps=2,
    )
    made_again(optimizer)


# In a model


def fitted(optimizer, epochs=1, batch_size=2, model=None, **options):
    """Fits a tied model; returns its weights."""
    model = model or make_tied_model(optimizer, **options)
    model.fit(TOKENS, TOKENS, batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0)
    return model.get_weights()


def train_tied_by_torch(num_steps, rate, batches):
    """The same model and training in plain torch."""
    values = make_tied_model("sgd").get_weights()
    (table, kernel, bias), optimizer = torch_adamw(values, [2], rate)
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


@pytest.mark.each_backend
def test_fit_with_repeated_tokens_and_a_tied_table_equals_torch():
    expected = train_tied_by_torch(20, 1e-3, [[0, 1], [2, 3]])
    assert_same_structure_close(fitted(AdamW(1e-3), epochs=10), expected)


@pytest.mark.each_backend
@pytest.mark.eager
def test_fit_ends_with_the_averaged_weights():
    plain, average = make_tied_model(AdamW(1e-2)), None
    for _ in range(3):
        weights = fitted(None, batch_size=4, model=plain)
        average = [(a + w) / 2 for a, w in zip(average or weights, weights, strict=True)]
    found = fitted(AdamW(1e-2, use_ema=True, ema_momentum=0.5), epochs=3, batch_size=4)
    assert_same_structure_close(found, average)


@pytest.mark.each_backend
def test_weights_in_bfloat16_move_by_the_rate():
    # If `beta_2` were rounded to 1, the squares would stay 0 and the step would be endless.
    variable = half()
    AdamW(2.0**-6, weight_decay=0.0).apply([ops.full((3,), 0.5, "bfloat16")], [variable])
    np.testing.assert_allclose(to_numpy(variable), 1 - 2.0**-6, rtol=2**-8)


@pytest.mark.parametrize("make", [AdamW, Lamb])
def test_another_kind_of_clipping_replaces_the_default(make):
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
        steps = [[zeros + np.float32(x) for zeros in ZEROS] for x in (0.1, second)]
        after.append(train(AdamW(1e-2, clipvalue=0.5), steps))
    assert_all_close(*after)
