"""The learning-rate schedules against values by hand and those of transformers."""

import numpy as np
import pytest
import torch
import transformers
from checks import cases, made_again, to_numpy

from bert_keras.training.schedules import WarmupDecay

pytestmark = pytest.mark.once


def rates(schedule, steps):
    return np.array([float(to_numpy(schedule(step))) for step in steps])


def transformers_rates(make, num_steps, peak=1.0, **arguments):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    scheduler = make(optimizer, **arguments)
    values = []
    for _ in range(num_steps):
        values.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return np.array(values)


def test_a_rate_stays_at_its_end():
    # Transformers' cosine rises again.
    for decay in ("linear", "cosine"):
        schedule = WarmupDecay(1.0, 20, lr_schedule=decay)
        np.testing.assert_allclose(rates(schedule, [20, 30, 40]), 0.0, atol=1e-6)


@pytest.mark.parametrize("warmup", [0, pytest.param(3, marks=pytest.mark.each_backend), 7])
def test_each_decay_equals_transformers(warmup):
    length = {"num_training_steps": 20}
    for name, ours, theirs in [
        ("linear_schedule", {}, length),
        ("cosine_schedule", {"lr_schedule": "cosine"}, length),
        ("constant_schedule", {"lr_schedule": "constant"}, {}),
    ]:
        schedule = made_again(WarmupDecay(5e-5, total_steps=20, warmup=warmup, **ours))
        make = getattr(transformers, f"get_{name}_with_warmup")
        expected = transformers_rates(make, 21, peak=5e-5, num_warmup_steps=warmup, **theirs)
        np.testing.assert_allclose(rates(schedule, range(21)), expected, rtol=1e-5, atol=1e-11)


@cases((0.1, 30, 3), (0.29, 100, 29), (0.1, 4, 0), (0.99, 10, 9), (0.0, 5, 0), (5, 30, 5))
def test_warmup_is_a_fraction_or_a_number_of_steps(warmup, total_steps, expected):
    assert WarmupDecay(1.0, total_steps, warmup=warmup).warmup_steps == expected


@cases(
    *(("total_steps", 0), ("total_steps", 2.5), ("warmup", 10), ("warmup", 1.0)),
    *(("warmup", -1), ("warmup", "a tenth"), ("lr_schedule", "exponential")),
    ("peak_learning_rate", -1.0),
)
def test_impossible_settings_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        WarmupDecay(**{"peak_learning_rate": 1.0, "total_steps": 10, name: value})
