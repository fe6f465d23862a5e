"""Learning-rate schedules with warm-up."""

import math

import keras
from keras import ops

from bert_keras.checks import check_choice, check_int, check_number, is_int, is_number
from bert_keras.types import LrSchedule, Tensor

LR_SCHEDULES = ("linear", "cosine", "constant")


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
        if not (is_number(warmup) and 0 <= warmup < limit):
            raise ValueError(
                f"`warmup` must be at least 0 and below {limit}: a float is a fraction of the "
                f"{total_steps} steps, an int a number of steps. Received: {warmup!r}."
            )
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
