"""AdamW with groups of variables, as BERT uses it, and LAMB for large batches."""

import collections
import math
import operator
import re
import warnings
from collections.abc import Iterable
from typing import Any, Literal

import keras
from keras import ops

from bert_keras import distribution
from bert_keras.checks import check_int, check_number
from bert_keras.engine import fused_steps as fused
from bert_keras.engine.accumulation import own_variables
from bert_keras.engine.keras_internals import fused_adamw, schedule_of, values
from bert_keras.engine.train_step import after, is_distributed

# The last part of a variable's path: every bias, and the scale and shift of every norm.
NO_WEIGHT_DECAY = (r"(^|/)(\w*bias|beta|gamma)$",)


@keras.saving.register_keras_serializable(package="bert_keras")
class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay, with the same step on every backend.

    For a variable `w` with gradient `g`, after `t` updates, where `g` is first scaled so that the
    norm over all variables is at most `global_clipnorm`:

    ```
    m = beta_1 * m + (1 - beta_1) * g
    v = beta_2 * v + (1 - beta_2) * g ** 2
    rate = learning_rate * multiplier
    step = (m / (1 - beta_1 ** t)) / (sqrt(v / (1 - beta_2 ** t)) + epsilon)
    w = w - rate * (weight_decay * w + step)
    ```

    This is `torch.optim.AdamW`. `keras.optimizers.AdamW` adds its epsilon to the uncorrected
    `sqrt(v)`. BERT's own optimizer has no bias correction and relies on its warm-up instead: use
    `bias_correction=False` for that. Mosbach et al. found fine-tuning on small sets more stable
    with the correction. Other differences from Keras:

    - Gradients of embedding tables are summed over repeated tokens before they are squared, on
      TensorFlow too.
    - If several devices share a batch, gradients are added up before they are clipped.
    - Groups of variables are regular expressions over variable paths such as
      `"bert_backbone/encoder/layer_0/attention/query/kernel"`; they are saved with the optimizer.
    - With `gradient_accumulation_steps=k`, the schedule is read and the moving average of `use_ema`
      is updated once for every `k` batches. The update is that of one large batch, see
      `Task.compile`.

    Args:
        learning_rate: float, or a schedule such as `WarmupDecay`.
        weight_decay: float, the strength of the decay.
        beta_1: float, decay rate of the mean of the gradients.
        beta_2: float, decay rate of the mean of their squares.
        epsilon: float, added to the denominator. BERT uses 1e-6, torch 1e-8, Keras 1e-7.
        global_clipnorm: float, the largest norm of all gradients together, or `None`. `"auto"` is
            1.0 as in BERT, or `None` if `clipnorm` or `clipvalue` is set.
        bias_correction: bool, whether to correct `m` and `v` for starting at 0.
        exclude_from_weight_decay: sequence of regular expressions, searched in variable paths. By
            default biases, and the scale and shift of norms, as in BERT.
        learning_rate_multipliers: sequence of (regular expression, float). The first expression
            found in a variable's path sets its multiplier, which scales its rate and therefore its
            decay; the default is 1. See `layer_wise_decay`.
        **kwargs: `use_ema`, `ema_momentum`, `ema_overwrite_frequency`, `loss_scale_factor`,
            `gradient_accumulation_steps`, `clipnorm`, `clipvalue`, `name`, see
            `keras.optimizers.Optimizer`.

    Raises:
        ValueError: an argument is out of range, an expression is malformed, or options conflict.

    Example:
    ```python
    model.compile(optimizer=AdamW(WarmupDecay(3e-5, total_steps=1000)), ...)
    ```

    Reference:
        [Loshchilov and Hutter, 2019](https://arxiv.org/abs/1711.05101);
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), appendix A.2;
        [Mosbach et al., 2021](https://arxiv.org/abs/2006.04884).
    """

    # The update waits for all gradients, so on TensorFlow the step need not also wait for its
    # batch, see `engine.train_step`.
    waits_for_gradients = True
    # Whether TensorFlow has a kernel for the step.
    _has_kernel = True

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 5e-5,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        global_clipnorm: float | Literal["auto"] | None = "auto",
        bias_correction: bool = True,
        exclude_from_weight_decay: Iterable[str] = NO_WEIGHT_DECAY,
        learning_rate_multipliers: Iterable[tuple[str, float]] = (),
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "adamw")
        if global_clipnorm == "auto":
            other_limits = kwargs.get("clipnorm"), kwargs.get("clipvalue")
            global_clipnorm = 1.0 if other_limits == (None, None) else None
        super().__init__(
            learning_rate, weight_decay=weight_decay, global_clipnorm=global_clipnorm, **kwargs
        )
        self.beta_1 = check_number("beta_1", beta_1, below=1.0)
        self.beta_2 = check_number("beta_2", beta_2, below=1.0)
        self.epsilon = check_number("epsilon", epsilon)
        for name in ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "ema_momentum"):
            if getattr(self, name, None) is not None:
                check_number(name, getattr(self, name))
        if self.gradient_accumulation_steps is not None:
            check_int("gradient_accumulation_steps", self.gradient_accumulation_steps, 2)
        if self.gradient_accumulation_steps and self.ema_overwrite_frequency:
            raise ValueError(
                "`ema_overwrite_frequency` counts batches, of which `gradient_accumulation_steps` "
                "makes one update. Received both. Set only one."
            )
        self.bias_correction = bias_correction
        self._undecayed = tuple(exclude_from_weight_decay)
        self._multipliers = tuple(map(tuple, learning_rate_multipliers))
        for pattern in (*self._undecayed, *map(operator.itemgetter(0), self._multipliers)):
            try:
                re.compile(pattern)
            except (re.error, TypeError) as error:
                raise ValueError(
                    "Groups of variables must be regular expressions over paths. Received: "
                    f"{pattern!r}, which is malformed: {error}."
                ) from error

    @keras.optimizers.Optimizer.learning_rate.setter
    def learning_rate(
        self, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule
    ) -> None:
        """The current rate. It can be set to a number unless a schedule determines it."""
        schedule = keras.optimizers.schedules.LearningRateSchedule
        if schedule_of(self) and not isinstance(learning_rate, schedule):
            raise TypeError(
                "The learning rate of this optimizer is determined by a schedule. Received: "
                f"learning_rate={learning_rate!r}. For the next `fit` of a task, call "
                "`compile(learning_rate=...)`; for a rate that can be set at any time, "
                "`compile(lr_schedule='constant', warmup=0)`."
            )
        keras.optimizers.Optimizer.learning_rate.fset(self, learning_rate)

    def build(self, variables):
        """Creates two moments for each variable, and finds its groups by its path."""
        if self.built:
            return
        for variable in variables:
            if self.use_ema and variable.dtype != "float32":
                raise ValueError(
                    "`use_ema` needs weights in float32: half precision rounds away the small "
                    f"change of a step. Received: {variable.path!r} of dtype {variable.dtype}. "
                    "Make the model with dtype='mixed_bfloat16', or leave out `use_ema` and "
                    "`ema_momentum`."
                )
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        averages = iter(own_variables(self, "average") if self.use_ema else ())
        self._places, self._averages, self._groups = {}, [], []
        unused = dict(self._multipliers)
        for place, variable in enumerate(variables):
            self._places[id(variable)] = place
            is_overwritten = getattr(variable, "overwrite_with_gradient", False)
            self._averages.append(None if is_overwritten else next(averages, None))
            multiplier, decay = 1.0, self.weight_decay or 0.0
            for pattern, number in reversed(self._multipliers):
                if re.search(pattern, variable.path):
                    multiplier = float(number)
                    unused.pop(pattern, None)
            for pattern in self._undecayed:
                if re.search(pattern, variable.path):
                    decay = None
            # The multiplier of its rate, and its weight decay; `None` where it is excluded.
            self._groups.append((multiplier, decay))
        if unused:
            warnings.warn(
                f"The learning-rate multipliers of {list(unused)} have no effect, since no "
                f"trainable variable has a matching path. Paths look like {variables[0].path!r}.",
                stacklevel=2,
            )

    def apply(self, grads, trainable_variables=None):
        """Updates the variables, see `keras.optimizers.Optimizer.apply`."""
        if keras.backend.backend() == "tensorflow":
            grads = [fused.dense_gradient(gradient) for gradient in grads]
        if is_distributed():
            grads = distribution.summed(grads)
        # Without this dependency, weight decay and the step counter, which need no gradient, would
        # also run in a step that fails, for example at an id outside its table.
        with after(grads):
            super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its moments.

        `gradient` is the variable's place and its gradient, `learning_rate` the scalars of each
        group, see `_scalars`.
        """
        i, gradient = gradient
        factor, decay = self._groups[i]
        scalars = learning_rate[factor, decay or 0.0]
        momentum, velocity = self._momentums[i], self._velocities[i]
        # The fused step casts its factors to the variable's dtype: in bfloat16, 0.999 would be 1.
        on_tensorflow = keras.backend.backend() == "tensorflow"
        if self._has_kernel and on_tensorflow and variable.dtype == "float32":
            if decay:
                self.assign(variable, variable * (1 - scalars["decay"]))
            fused.tensorflow_step(
                variable,
                ops.cast(gradient, "float32") * scalars["gradient"],
                momentum.value,
                velocity.value,
                scalars,
            )
            return
        scalars = {name: ops.cast(value, momentum.dtype) for name, value in scalars.items()}
        gradient = ops.cast(gradient, momentum.dtype) * scalars["gradient"]
        m, v = ops.convert_to_tensor(momentum), ops.convert_to_tensor(velocity)
        m = m + (gradient - m) * (1 - self.beta_1)
        v = v + (ops.square(gradient) - v) * (1 - self.beta_2)
        step = scalars["correction"] * m / (ops.sqrt(v) + scalars["epsilon"])
        self.assign(momentum, m)
        self.assign(velocity, v)
        self.assign(variable, self._moved(i, ops.convert_to_tensor(variable), step, scalars))

    def _moved(self, i, variable, step, scalars):
        """Returns the new value of variable `i`."""
        return variable * (1 - scalars["decay"]) - scalars["rate"] * step

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if keras.backend.backend() == "torch":
            self._torch_update(grads, trainable_variables, learning_rate)
            return
        indices = [self._places[id(variable)] for variable in trainable_variables]
        scalars = self._scalars(dict.fromkeys(self._groups), grads, learning_rate)
        # The scalars already wait for the gradients, so whatever uses them does too.
        with after(None):
            numbered = list(zip(indices, grads, strict=True))
            super()._backend_update_step(numbered, trainable_variables, scalars)

    def _scalars(self, groups, grads, learning_rate):
        """Returns the float32 numbers that determine a step, a dict of dicts by groups."""
        correction_1 = correction_2 = ops.ones(())
        if self.bias_correction:
            updates = ops.cast(self.iterations + 1, "float32")
            correction_1 = _one_minus_power(self.beta_1, updates)
            correction_2 = ops.sqrt(_one_minus_power(self.beta_2, updates))
        excess = 1.0
        if self.global_clipnorm:
            excess = ops.maximum(fused.global_norm(grads) / self.global_clipnorm, 1.0)
        shared = {
            "beta_1": ops.convert_to_tensor(self.beta_1, "float32"),
            "beta_2": ops.convert_to_tensor(self.beta_2, "float32"),
            "zero": ops.zeros(()),
            "epsilon": self.epsilon * correction_2,
            "gradient": ops.ones(()) / excess,
            # m / c1 / (sqrt(v) / c2 + epsilon), multiplied out so that only scalars are divided.
            "correction": correction_2 / correction_1,
        }
        scalars = {}
        for factor, decay in groups:
            rate = ops.cast(learning_rate, "float32") * factor
            # TensorFlow sorts the keys if there are several devices.
            decay = decay or 0.0
            scalars[factor, decay] = {**shared, "rate": rate, "decay": rate * decay}
        return scalars

    def _torch_update(self, grads, trainable_variables, learning_rate):
        import torch

        rows = collections.defaultdict(list)
        places = [self._places[id(variable)] for variable in trainable_variables]
        momentums, velocities = values(self._momentums), values(self._velocities)
        for i, tensor, gradient in zip(places, values(trainable_variables), grads, strict=True):
            # The kernel takes tensors of one dtype, and reads them in the order of their memory.
            group = *self._groups[i], tensor.dtype
            rows[group].append((tensor, gradient.contiguous(), momentums[i], velocities[i]))
        excess = None
        if self.global_clipnorm:
            norm = torch.nn.utils.get_total_norm(grads)
            excess = (norm.float() / self.global_clipnorm).clamp(min=1.0)
        # Without bias correction: after so many updates, the correction is 1.
        updates = self.iterations + 1 if self.bias_correction else 10**9
        updates = ops.cast(ops.convert_to_tensor(updates), "float32")
        with torch.no_grad():
            for (factor, decay, _), tensors in rows.items():
                self._torch_step(
                    *map(list, zip(*tensors, strict=True)),
                    [updates] * len(tensors),
                    lr=ops.convert_to_tensor(learning_rate) * factor,
                    weight_decay=decay,
                    beta1=self.beta_1,
                    beta2=self.beta_2,
                    eps=self.epsilon,
                    grad_scale=excess,
                )

    def _torch_step(
        self, variables, gradients, momentums, velocities, updates, weight_decay, **options
    ):
        """Updates the tensors of one group in place with PyTorch's fused kernel.

        Args:
            variables, gradients, momentums, velocities: lists of tensors. `grad_scale` divides the
                gradients.
            updates: list of float32 scalars, how often each variable was updated, with this update.
            weight_decay: float, or `None` for variables that are excluded from it.
            **options: see `torch.optim.adamw.adamw`.
        """
        options |= {"amsgrad": False, "maximize": False, "weight_decay": weight_decay or 0.0}
        fused_adamw(variables, gradients, momentums, velocities, [], updates, **options)

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        """Raises `ValueError`: groups are constructor arguments, so that they are saved.

        Keras's method would have no effect, since the decay is part of the step.
        """
        raise ValueError(
            "Variables without weight decay must be chosen when the optimizer is made. Pass "
            "regular expressions over paths: "
            f"{type(self).__name__}(exclude_from_weight_decay=[...])."
        )

    def _all_reduce_sum_gradients(self, grads_and_vars):
        """Does nothing: gradients are summed already. Keras would sum them after clipping."""
        return list(grads_and_vars)

    def _clip_gradients(self, grads):
        """Leaves `global_clipnorm` to the update, which clips without another pass over memory."""
        return grads if self.global_clipnorm else super()._clip_gradients(grads)

    def _apply_weight_decay(self, variables):
        """Does nothing: the decay is part of `update_step`, which saves a pass over the weights."""

    def _get_current_learning_rate(self):
        schedule, steps = schedule_of(self), self.gradient_accumulation_steps
        if steps and schedule:
            return schedule(self.iterations * steps)
        return super()._get_current_learning_rate()

    def _update_model_variables_moving_average(self, trainable_variables):
        """Updates the averages once per update; Keras does so after each accumulated batch."""
        if not self.use_ema:
            return
        num_batches = self.variables[0]  # While `iterations` counts updates.
        is_update = (num_batches + 1) % (self.gradient_accumulation_steps or 1) == 0
        momentum = ops.where(self.iterations == 0, 0.0, self.ema_momentum)
        momentum = ops.where(is_update, momentum, 1.0)
        for variable, average in zip(trainable_variables, self._averages, strict=True):
            if average is not None:
                share = ops.cast(momentum, average.dtype)
                average.assign(average + (variable - average) * (1 - share))

    def finalize_variable_values(self, var_list):
        """Sets the weights to their averages if `use_ema` is set; `fit` calls it when it ends.

        Before the first update there are no averages, and nothing changes. Accumulated gradients
        delay it, and float16 may skip it.
        """
        if not (self.use_ema and int(ops.convert_to_numpy(self.iterations))):
            return
        super().finalize_variable_values(var_list)
        for average in self._averages:
            if average is not None:
                # On JAX both would share a buffer, which the next `fit` cannot donate twice.
                average.assign(ops.copy(average))

    def get_config(self):
        names = ("beta_1", "beta_2", "epsilon", "bias_correction")
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
            "exclude_from_weight_decay": list(self._undecayed),
            "learning_rate_multipliers": [list(pair) for pair in self._multipliers],
        }


@keras.saving.register_keras_serializable(package="bert_keras")
class Lamb(AdamW):
    """AdamW for large batches: each variable's step is scaled to the variable's own size.

    With `u = step + weight_decay * w`, where `step` is that of `AdamW`:

    ```
    w = w - rate * (norm(w) / norm(u)) * u
    ```

    where the ratio is 1 if either norm is 0, and for variables without weight decay, as in the
    authors' code. They pre-trained BERT with it in batches of 32,768; their rates grow with the
    square root of the batch size, from 6.25e-4 for 512 to 5e-3 for 32,768. The rate is the fraction
    of its norm by which a kernel moves in a step. `keras.optimizers.Lamb` applies its decay outside
    the ratio.

    Args: see `AdamW`.

    Reference:
        [You et al., 2020](https://arxiv.org/abs/1904.00962), algorithm 2.
    """

    _has_kernel = False

    def _torch_step(
        self, variables, gradients, momentums, velocities, updates, weight_decay, lr, **options
    ):
        import torch

        moments = zip(gradients, momentums, velocities, updates, strict=True)
        for variable, tensors in zip(variables, moments, strict=True):
            # A variable that moves from 0 at a rate of -1 becomes the step itself.
            step, tensors = torch.zeros_like(variable), [[tensor] for tensor in tensors]
            super()._torch_step([step], *tensors, weight_decay=None, lr=-1.0, **options)
            rate = torch.as_tensor(lr, dtype=variable.dtype, device=variable.device)
            if weight_decay is not None:
                step.add_(variable, alpha=weight_decay)
                norm, step_norm = torch.linalg.vector_norm(variable), torch.linalg.vector_norm(step)
                usable = (norm > 0) & (step_norm > 0)
                rate = rate * torch.where(usable, norm / step_norm, 1.0)
            variable.addcmul_(step, rate, value=-1)

    def _moved(self, i, variable, step, scalars):
        _, decay = self._groups[i]
        if decay is None:
            return super()._moved(i, variable, step, scalars)
        step = step + decay * variable
        weight_norm = ops.sqrt(ops.sum(ops.square(variable)))
        step_norm = ops.sqrt(ops.sum(ops.square(step)))
        usable = ops.logical_and(weight_norm > 0, step_norm > 0)
        ratio = ops.where(usable, weight_norm / ops.where(usable, step_norm, 1.0), 1.0)
        return variable - scalars["rate"] * ops.cast(ratio, variable.dtype) * step


def _one_minus_power(beta, steps):
    """Returns `1 - beta ** steps` without its rounding error in float32 for small `steps`."""
    return -ops.expm1(steps * math.log(beta)) if beta else ops.ones_like(steps)
