"""A training step by transformers' recipe: AdamW, linear warm-up and decay, clipping at 1."""

import torch
import transformers


def make_step(model, learning_rate, num_steps, epsilon=1e-8):
    """Returns a function that trains a model on a batch and returns the loss.

    Args:
        model: a model of transformers, whose call returns a `loss`.
        learning_rate: float, the rate after the warm-up, which takes a tenth of the steps.
        num_steps: int, after how many steps the rate is 0.
        epsilon: float, AdamW's.
    """
    options = {"lr": learning_rate, "eps": epsilon, "weight_decay": 0.01}
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    rates = transformers.get_linear_schedule_with_warmup(optimizer, num_steps // 10, num_steps)
    model.train()

    def step(**inputs):
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
        return loss.item()

    return step
