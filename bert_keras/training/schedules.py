"""How long and at which learning rates a run trains: by default, over its steps, and over layers.

The paper fine-tunes for 3 epochs at 5e-5 (its grid is 2 to 4 epochs, 2e-5 to 5e-5), with at least
2,500 examples and an encoder 768 wide or more. With 200 examples that is 21 steps, in which a new
head learns little. So where the user chooses neither, a short run is made longer, and a narrow
encoder gets a higher rate in it. Rare targets need the most steps: few words are part of an entity,
a question has one answer among all spans, and a text has few of many labels:

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
import posixpath
import re

import keras
from keras import ops

from bert_keras.checks import check_choice, check_int, check_number, is_int
from bert_keras.engine.variable_paths import relative_path
from bert_keras.types import LrSchedule, Tensor

LR_SCHEDULES = ("linear", "cosine", "constant")
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


def describe_run(epochs: int, num_steps: int, rate: float) -> str:
    """Returns one line that says how a run differs from the paper's recipe."""
    run = "1 epoch" if epochs == 1 else f"{epochs} epochs"
    steps = "1 step" if num_steps == 1 else f"{num_steps} steps"
    return (
        f"Training for {run}, {steps}, at a peak rate of {rate:.2g}, since the paper's {EPOCHS} "
        f"epochs at {RATE:g} are for longer runs. `epochs` and `learning_rate` change this."
    )


@keras.saving.register_keras_serializable(package="bert_keras")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly from 0 to the peak, then decays until the end of training.

    With `w` warm-up steps out of `n` and the peak rate `p`:

    ```
    rate(t) = p * t / w                if t < w
    rate(t) = p * shape(1 - x)         otherwise, with x = min(1, (t - w) / (n - w))
    ```

    where `shape(r)` is `r` for `"linear"`, `(1 - cos(pi * r)) / 2` for `"cosine"` and 1 for
    `"constant"`. After `n` steps the rate stays
    at its last value. Step 0 is the first batch and has rate 0, as in BERT's own code.

    The decay begins where the warm-up ends, as in transformers, so the rate has no jump.
    google-research/bert decays over all `n` steps and replaces the first `w` values by the warm-up:
    there the rate drops from `p` to `p * (1 - w / n)` at step `w`, and is that fraction of ours
    from then on.

    Steps are batches, even with `gradient_accumulation_steps`.

    Args:
        peak_learning_rate: float, the highest rate. The paper's range for fine-tuning is
            2e-5 to 5e-5.
        total_steps: int, the number of batches of the whole run, `epochs * batches_per_epoch`.
        warmup: float, a fraction of `total_steps`, at least 0.0 and below 1.0, rounded to whole
            steps; or int, a number of steps below `total_steps`.
        lr_schedule: `"linear"`, `"cosine"` or `"constant"`.

    Raises:
        ValueError: an argument is outside its range.

    Example:
    ```python
    schedule = WarmupDecay(3e-5, total_steps=1000, warmup=0.1)
    float(schedule(50)), float(schedule(100)), float(schedule(550))  # 1.5e-5, 3e-5, 1.5e-5
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), appendix A.2;
        `optimization.py` of google-research/bert.
    """

    def __init__(
        self,
        peak_learning_rate: float,
        total_steps: int,
        warmup: float = 0.1,
        lr_schedule: LrSchedule = "linear",
    ) -> None:
        self.peak_learning_rate = check_number("peak_learning_rate", peak_learning_rate)
        self.total_steps = check_int("total_steps", total_steps)
        self.warmup = warmup
        self.lr_schedule = check_choice("lr_schedule", lr_schedule, LR_SCHEDULES)
        limit = total_steps if is_int(warmup) else 1
        advice = f"A float is a fraction of the {total_steps} steps, an int a number of steps."
        check_number("warmup", warmup, below=limit, advice=advice)
        steps = warmup if is_int(warmup) else round(warmup * total_steps)
        self.warmup_steps = min(steps, total_steps - 1)

    def __call__(self, step: Tensor) -> Tensor:
        """Returns the rate of batch `step`, counted from 0: a float32 scalar tensor."""
        step = ops.cast(step, "float32")
        rising = step / max(1, self.warmup_steps)
        decay_steps = self.total_steps - self.warmup_steps
        remaining = ops.clip((self.total_steps - step) / decay_steps, 0.0, 1.0)
        if self.lr_schedule == "constant":
            remaining = ops.ones_like(remaining)
        elif self.lr_schedule == "cosine":
            remaining = 0.5 * (1.0 - ops.cos(math.pi * remaining))
        return self.peak_learning_rate * ops.where(step < self.warmup_steps, rising, remaining)

    def get_config(self):
        names = ("peak_learning_rate", "total_steps", "warmup", "lr_schedule")
        return {name: getattr(self, name) for name in names}


def layer_wise_decay(
    backbone: keras.layers.Layer, rate: float, head: float = 1.0
) -> list[tuple[str, float]]:
    """Returns learning-rate multipliers that fall with the distance from the head.

    Lower layers hold general knowledge and need smaller steps: of `n` stages (the embeddings, what
    all blocks share, then each block), stage `i`, counted from 0, has `rate ** (n - i)` times the
    learning rate. What lies above them in the backbone, such as a pooler, has the multiplier 1.
    Weights are found by their paths within the backbone, whatever its name is.

    Args:
        backbone: a `Backbone`, or any layer with `stages`.
        rate: float, above 0 and at most 1; Sun et al. found 0.95 best.
        head: float, multiplier of all weights outside the backbone.

    Returns:
        List of (pattern, multiplier), the `learning_rate_multipliers` of `AdamW`.

    Raises:
        ValueError: `rate` or `head` is out of range.

    Example:
    ```python
    AdamW(2e-5, learning_rate_multipliers=layer_wise_decay(backbone, rate=0.95, head=5.0))
    ```

    Reference:
        [Sun et al., 2019](https://arxiv.org/abs/1905.05583), section 5.3.4. The top block has the
        multiplier 1 there, `rate` here, as in the code of
        [BEiT](https://arxiv.org/abs/2106.08254), and `rate ** 2` in that of
        [ELECTRA](https://arxiv.org/abs/2003.10555).
    """
    check_number("rate", rate, above=0, most=1)
    check_number("head", head)
    folders = [
        posixpath.commonpath([relative_path(weight).rpartition("/")[0] for weight in stage.weights])
        for stage in backbone.stages
    ]
    multipliers = [
        (rf"^[^/]+/{re.escape(folder)}/", rate ** (len(folders) - i))
        for i, folder in enumerate(folders)
    ]
    # The pooler has no row of its own: a row without a trainable weight causes a warning.
    parts = dict.fromkeys(relative_path(weight).partition("/")[0] for weight in backbone.weights)
    return [*multipliers, (rf"^(?![^/]+/({'|'.join(map(re.escape, parts))})/)", head)]
