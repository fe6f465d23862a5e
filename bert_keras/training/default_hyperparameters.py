"""How long and at which rate `fit` trains if the user chooses neither.

The paper fine-tunes for 3 epochs at 5e-5 (its grid is 2 to 4 epochs, 2e-5 to 5e-5), with at least
2,500 examples and an encoder 768 wide or more. With 200 examples that is 21 steps, in which a new
head learns little. So a short run is made longer, and a narrow encoder gets a higher rate in it.
Rare targets need the most steps: few words are part of an entity, a question has one answer among
all spans, and a text has few of many labels:

```
epochs = clip(LEAST_STEPS / steps per epoch, 3, MOST_EPOCHS)  # LEAST_STEPS_OF_RARE if rare
rate   = 5e-5 * clip(ENOUGH_STEPS / steps, 1, min((768 / hidden_dim)², MOST_RATE_FACTOR))
```

From 1,000 steps on, and for encoders at least 768 wide, the rate is the paper's. The measurements
are in docs/en/guides/few_examples.md.

Reference:
    [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), appendix A.3;
    [Mosbach et al., 2021](https://arxiv.org/abs/2006.04884): small data sets need more epochs;
    [Turc et al., 2019](https://arxiv.org/abs/1908.08962): rates of up to 3e-4 for small models.
"""

import math

import keras
import numpy as np
from numpy.typing import ArrayLike

EPOCHS, RATE = 3, 5e-5
LEAST_STEPS, LEAST_STEPS_OF_RARE, MOST_EPOCHS = 70, 300, 30
ENOUGH_STEPS, MOST_RATE_FACTOR = 1000, 10


def default_epochs(num_batches: float, has_imbalanced_targets: bool = False) -> int:
    """Returns the number of epochs of a run with this many steps in an epoch.

    Args:
        num_batches: steps in an epoch.
        has_imbalanced_targets: see `Task.has_imbalanced_targets`.

    Example:
        >>> [default_epochs(steps) for steps in (2, 7, 20, 75)]
        [30, 10, 4, 3]
        >>> [default_epochs(steps, has_imbalanced_targets=True) for steps in (2, 7, 20, 75)]
        [30, 30, 15, 4]
    """
    least = LEAST_STEPS_OF_RARE if has_imbalanced_targets else LEAST_STEPS
    return max(EPOCHS, min(MOST_EPOCHS, math.ceil(least / num_batches)))


def default_rate(num_steps: int, hidden_dim: int) -> float:
    """Returns the peak rate of a run of this many steps, for an encoder of this width.

    Example:
        >>> [default_rate(steps, 384) for steps in (200, 500, 1000)]
        [0.0002, 0.0001, 5e-05]
        >>> default_rate(200, 768)
        5e-05
    """
    most = max(1.0, min((768 / hidden_dim) ** 2, MOST_RATE_FACTOR))
    return RATE * min(max(ENOUGH_STEPS / max(1, num_steps), 1.0), most)


def bias_of_new(head: keras.layers.Layer) -> keras.Variable | None:
    """Returns the bias of a head's last layer, or `None` if it has none or was trained."""
    bias = getattr(getattr(head, "dense", None), "bias", None)
    return None if bias is None or keras.ops.convert_to_numpy(bias).any() else bias


def start_at_label_frequencies(head: keras.layers.Layer, labels: ArrayLike) -> None:
    """Sets the bias of a new head to `log(p / (1 - p))`, for the share p of texts with each label.

    The head then begins by predicting these shares. From a bias of 0, which predicts one half, a
    short run would only learn that labels are rare. A frozen or trained head is not changed.

    Args:
        head: layer whose `dense`, if any, returns a logit for each label.
        labels: zeros and ones, `(num_texts, num_labels)`.

    Reference:
        [Lin et al., 2017](https://arxiv.org/abs/1708.02002), section 4.1, "Initialization".
    """
    bias = bias_of_new(head)
    if bias is None or not bias.trainable:
        return
    share = (np.sum(labels, axis=0) + 1) / (len(labels) + 2)
    bias.assign(np.log(share / (1 - share)))


def describe_run(epochs: int, num_steps: int, rate: float, is_longer: bool) -> str:
    """Returns one line that says how a run differs from the paper's recipe.

    Args:
        is_longer: whether the default chose more epochs than the paper, not only a higher rate.
    """
    reason = f"{RATE:g} would be too low for so few steps. `learning_rate` changes this."
    if is_longer:
        reason = (
            f"{EPOCHS} epochs at {RATE:g} would be too short. "
            "`epochs` and `learning_rate` change this."
        )
    run = "1 epoch" if epochs == 1 else f"{epochs} epochs"
    steps = "1 step" if num_steps == 1 else f"{num_steps} steps"
    return f"Training for {run}, {steps}, at a peak rate of {rate:.2g}, since {reason}"
