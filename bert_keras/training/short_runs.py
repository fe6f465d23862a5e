"""How long, and at which rate, a run trains for which the user has chosen neither."""

import math

# The paper's recipe: of its grid, the setting for most data sets.
EPOCHS, RATE = 3, 5e-5
# Below this number of steps, a run is made longer, up to a number of epochs.
LEAST_STEPS, MOST_EPOCHS = 200, 30
# From this number of steps on, the rate is the paper's; below it, it grows up to a factor.
ENOUGH_STEPS = 1000


def default_epochs(num_batches: int) -> int:
    """Returns the number of epochs of a run with this number of batches in an epoch."""
    return max(EPOCHS, min(MOST_EPOCHS, math.ceil(LEAST_STEPS / num_batches)))


def default_rate(num_steps: int, hidden_dim: int) -> float:
    """Returns the peak rate of a run of this number of steps, for an encoder of this width."""
    return RATE if num_steps >= ENOUGH_STEPS else 2e-4


def in_words(epochs: int, num_steps: int, rate: float) -> str:
    """Returns one line that says how a run differs from the paper's recipe."""
    return (
        f"Training for {epochs} epochs, {num_steps} steps, at a peak rate of {rate:.2g}, since "
        f"{EPOCHS} epochs at {RATE:g} would be too short. `epochs` and `learning_rate` change this."
    )
