"""BERT's recipe of fine-tuning: the arguments of `compile`, and the optimizer of each run."""

import random
import re
from collections.abc import Mapping

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import (
    check_choice,
    check_int,
    check_number,
    refuse_options,
    refuse_smoothing,
)
from bert_keras.engine.accumulation import why_unequal
from bert_keras.engine.keras_internals import schedule_of
from bert_keras.engine.train_step import device_scope, inner_optimizer, is_distributed
from bert_keras.signatures import check_arguments
from bert_keras.training.averages import steps_done
from bert_keras.training.callbacks import RefuseOtherWeights
from bert_keras.training.losses import CrossReplicaLoss, OneHotLoss, SparseCrossentropy
from bert_keras.training.optimizer import AdamW, Lamb
from bert_keras.training.random_state import PerProcessRng, RestoreState, as_json
from bert_keras.training.schedules import (
    EPOCHS,
    LR_SCHEDULES,
    RATE,
    WarmupDecay,
    default_epochs,
    default_rate,
    describe_run,
    layer_wise_decay,
)

# The optimizers that the recipe makes.
OPTIMIZERS = {"auto": AdamW, "lamb": Lamb}
# Losses of Keras that take probabilities by default.
PROBABILITY_LOSSES = {
    name: getattr(keras.losses, name.title().replace("_", ""))
    for name in (
        "binary_crossentropy",
        "binary_focal_crossentropy",
        "categorical_crossentropy",
        "categorical_focal_crossentropy",
        "sparse_categorical_crossentropy",
    )
}
# Losses of one-hot labels, and those of scores. `str`: when a loss is checked, only names of losses
# of scores are left, see `_as_loss_of_logits`.
ONE_HOT_LOSSES = (keras.losses.CategoricalCrossentropy, keras.losses.CategoricalFocalCrossentropy)
SCORE_LOSSES = (str, keras.losses.BinaryCrossentropy, keras.losses.BinaryFocalCrossentropy)
# The arguments of `Task.compile` that configure the optimizer.
DEFAULTS = {
    "learning_rate": None,  # See `training.schedules`.
    "weight_decay": 0.01,
    "warmup": 0.1,
    "lr_schedule": "linear",
    "layerwise_lr_decay": 1.0,
    "head_lr_multiplier": 1.0,
    "ema_momentum": None,
    "gradient_accumulation_steps": None,
}


class TrainingConfig:
    """The arguments of `compile`; makes the optimizer of each run of `fit`.

    Args:
        optimizer: `"auto"` or `"lamb"`, which the recipe makes, or an optimizer, which it leaves as
            it is.
        loss: `"auto"` for the task's own, or a loss.
        label_smoothing: float, for the task's own loss.
        metrics: metrics, see `keras.Model.compile`.
        weighted_metrics: `"auto"` for the task's own, or metrics.
        **kwargs: values for names of `DEFAULTS`, and further arguments of `keras.Model.compile`.

    Attributes:
        makes_optimizer: bool, whether the recipe makes the optimizer.
        has_schedule: bool, whether the recipe sets the rate, rather than the user or a callback.
        uses_task_loss: bool, whether the loss is the task's own.
        ignores_weight_0: bool, whether rows of weight 0 count neither in the loss nor in the
            metrics.
        label_smoothing: float.
        seed: int, for the order of examples in the present run, or `None` before the first run.
        bucket_window: int or `None`, see `BucketedBatches`.
        options: dict, the optimizer's arguments, see `DEFAULTS`.
        num_epochs: int, epochs that the run was started for; `None` with `steps_per_epoch`, since
            its epochs need not be whole.
        chose_epochs: bool, whether the recipe chose that number.
        keras_arguments: dict, further arguments of `keras.Model.compile`.
        task_settings: list, the task's constructor arguments at the last `compile`, or `None`.

    Raises:
        ValueError: an argument would have no effect.
    """

    def __init__(
        self,
        optimizer="auto",
        loss="auto",
        label_smoothing=0.0,
        metrics=None,
        weighted_metrics="auto",
        **kwargs,
    ):
        self.makes_optimizer = isinstance(optimizer, str) and optimizer in OPTIMIZERS
        self.optimizer = optimizer if self.makes_optimizer else None
        options = {name: kwargs.pop(name) for name in DEFAULTS if name in kwargs}
        self.options = {**DEFAULTS, **options}
        self._check(optimizer)
        loss = keras.tree.map_structure(_as_loss_of_logits, loss)
        self._loss, self.label_smoothing = loss, label_smoothing
        self._metrics, self._weighted_metrics = metrics, weighted_metrics
        is_constant = self.options["lr_schedule"] == "constant" and self.options["warmup"] == 0
        self.has_schedule = self.makes_optimizer and not is_constant
        self.uses_task_loss = isinstance(loss, str) and loss == "auto"
        self.ignores_weight_0 = self.uses_task_loss and not metrics
        check_arguments(kwargs, keras.Model.compile, DEFAULTS)
        self.keras_arguments = kwargs
        self.seed = self.bucket_window = self.num_epochs = self._random_state = None
        self.task_settings = None
        self.chose_epochs = False

    def _check(self, optimizer):
        options = self.options
        check_choice("lr_schedule", options["lr_schedule"], LR_SCHEDULES)
        unused = {name: value for name, value in options.items() if value != DEFAULTS[name]}
        if not self.makes_optimizer:
            rule = f"{sorted(unused)} are for optimizer='auto' or 'lamb', not for {optimizer!r}"
            advice = "Set them in that optimizer, such as bert_keras.AdamW, or leave it out."
            refuse_options(rule, unused, advice)
        is_instance = isinstance(optimizer, keras.optimizers.Optimizer)
        rate = optimizer.learning_rate if is_instance else options["learning_rate"]
        if rate is not None:
            rate = float(keras.ops.convert_to_numpy(rate)) if is_instance else rate
            check_number("learning_rate", rate)

    def check_takes_probabilities(self):
        """Raises `ValueError` if the loss takes class indices, not a probability per class."""
        if isinstance(self._loss, keras.losses.SparseCategoricalCrossentropy):
            raise ValueError(
                f"The labels of {type(self._loss).__name__} must be classes, (num_examples,). "
                "Received rows with a probability per class. Compile without `loss`, or with "
                "'categorical_crossentropy'."
            )

    def arguments(self, task):
        """Returns the arguments of `keras.Model.compile` except the optimizer, a dict."""
        loss = self._loss
        if self.uses_task_loss:
            loss = task.default_loss(self.label_smoothing)
        elif isinstance(loss, SCORE_LOSSES) and isinstance(
            task.default_loss(0.0), SparseCrossentropy
        ):
            raise ValueError(
                "This task's labels are class indices, and its outputs have one score per class. "
                f"Received: loss={loss!r}, whose labels have the shape of the scores. Leave it out "
                "for cross-entropy, which of two classes is binary cross-entropy; to predict "
                "numbers, use problem_type='regression'."
            )
        else:
            refuse_smoothing(
                self.label_smoothing, "`label_smoothing` is for loss='auto'", "Set it in your loss."
            )
            if isinstance(loss, ONE_HOT_LOSSES):
                loss = OneHotLoss(loss)
        if self.options["gradient_accumulation_steps"] and (reason := why_unequal(task, loss)):
            raise ValueError(
                "With `gradient_accumulation_steps`, several batches must make the update of one "
                f"large batch. {reason}. Leave it out. To accumulate anyway, pass an optimizer "
                "with its own `gradient_accumulation_steps`, such as bert_keras.AdamW(2e-5, "
                "gradient_accumulation_steps=4)."
            )
        share = distribution.shard_of(task) if is_distributed(task) else None
        if share and share.has_own_losses:
            loss = _averaged_over_devices(loss, share, task)
        weights = self.keras_arguments.get("loss_weights") or task.default_loss_weights()
        arguments = {**self.keras_arguments, "loss_weights": weights}
        return {**arguments, "loss": loss, **self._metrics_for(task)}

    def _metrics_for(self, task):
        """Returns `metrics` and `weighted_metrics`, which read labels as `LabelKind.adapt` says."""
        is_auto = isinstance(self._weighted_metrics, str) and self._weighted_metrics == "auto"
        weighted = task.default_metrics() if is_auto else self._weighted_metrics
        by_argument = {"metrics": self._metrics, "weighted_metrics": weighted}
        kinds = task.label_kind
        if kinds is None:  # A custom task: metrics get labels and outputs unchanged.
            own_names = {m.name for m in keras.tree.flatten(weighted or [])} if is_auto else ()
            if isinstance(by_argument["metrics"], (list, tuple)):
                by_argument["metrics"] = [m for m in by_argument["metrics"] if m not in own_names]
            return by_argument
        kinds = kinds if isinstance(kinds, Mapping) else {None: kinds}
        found = {argument: {name: [] for name in kinds} for argument in by_argument}
        for argument, metrics in by_argument.items():
            is_weighted = argument == "weighted_metrics"
            for output, values in _by_output(metrics, kinds).items():
                kind = kinds.get(output)
                own = _by_output(weighted, kinds).get(output) if is_auto else None
                # A metric by name is the task's own, for which padding does not count.
                own_names = {} if is_weighted else {m.name for m in keras.tree.flatten(own or [])}
                for metric in keras.tree.flatten(values):
                    if isinstance(metric, str) and metric in own_names:
                        continue
                    adapted = metric if kind is None else kind.adapt(metric, is_weighted)
                    # Keras passes weights, and with them the padding, to weighted metrics only.
                    skips_padding = adapted is not metric and getattr(kind, "per_token", False)
                    goal = "weighted_metrics" if skips_padding else argument
                    found[goal].setdefault(output, []).append(adapted)
        return {name: x.get(None, x) for name, x in found.items()}

    def make_optimizer(self, task, total_steps=None):
        """Returns a new optimizer; until `fit` knows the number of steps, its rate is constant."""
        options, averages = self.options, {}
        if options["ema_momentum"] is not None:
            averages = {"use_ema": True, "ema_momentum": options["ema_momentum"]}
        multipliers = list(task.learning_rate_multipliers)
        decay, head = options["layerwise_lr_decay"], options["head_lr_multiplier"]
        if (decay, head) != (1.0, 1.0):
            paths = [variable.path for variable in task.trainable_variables]
            multipliers += [
                (pattern, factor)
                for pattern, factor in layer_wise_decay(task.backbone, decay, head)
                if any(re.search(pattern, path) for path in paths)
            ]
        rate = self.peak_rate(task, total_steps)
        if total_steps is not None and self.has_schedule:
            rate = WarmupDecay(rate, total_steps, options["warmup"], options["lr_schedule"])
        with device_scope(task):
            return OPTIMIZERS[self.optimizer](
                rate,
                weight_decay=options["weight_decay"],
                learning_rate_multipliers=multipliers,
                gradient_accumulation_steps=options["gradient_accumulation_steps"],
                **averages,
            )

    def _may_choose(self, task):
        """Whether epochs and rate may depend on the steps, see `training.schedules`."""
        return self.optimizer == "auto" and self.has_schedule and task.is_fine_tuned

    def peak_rate(self, task, total_steps=None):
        """Returns the highest rate of a run; that of the paper until its number of steps is known.

        Args:
            task: a `Task`.
            total_steps: int, number of batches of the run, or `None`.
        """
        options = self.options
        if options["learning_rate"] is not None:
            return options["learning_rate"]
        if total_steps is None or not self._may_choose(task):
            return RATE
        num_updates = total_steps // (options["gradient_accumulation_steps"] or 1)
        return default_rate(num_updates, task.backbone.hidden_dim)

    def fresh_optimizer(self, task):
        """Returns a new optimizer with the settings of the task's present one."""
        if self.makes_optimizer:
            return self.make_optimizer(task)
        return task.optimizer.from_config(task.optimizer.get_config())

    def begin(
        self, task, data, batches, epochs, initial_epoch, steps_per_epoch, bucket_window, callbacks
    ):
        """Starts a run, or goes on with one: its seed, epochs, head, optimizer and callbacks.

        Args:
            task: a compiled `Task`.
            data: the examples with their `labels`, or a dataset.
            batches: something with as many entries as an epoch has batches.
            epochs: int, or `None` for the number that suits so many batches, see `default_epochs`.
            initial_epoch, steps_per_epoch: see `keras.Model.fit`.
            bucket_window: int or `None`, see `BucketedBatches`.
            callbacks: a list, one callback, or `None`.

        Returns:
            The number of epochs, the callbacks, and a line that says how the run differs from the
            paper's recipe, or `None`.

        Raises:
            ValueError: the number of batches is unknown, or a callback would set the rate that the
                recipe's schedule sets.
        """
        if epochs is not None:
            check_int("epochs", epochs, 0)
        check_int("initial_epoch", initial_epoch, 0)
        steps = _num_steps(batches, steps_per_epoch) if self.has_schedule else None
        if initial_epoch == 0:
            self.chose_epochs = epochs is None and not steps_per_epoch
            chosen = 1 if self.chose_epochs else epochs
            if self.chose_epochs and self._may_choose(task):
                accumulated = self.options["gradient_accumulation_steps"] or 1
                are_rare = task.has_imbalanced_targets or task.label_per_token
                chosen = default_epochs(steps / accumulated, are_rare)
            self._random_state, self.num_epochs = None, None if steps_per_epoch else chosen
        if initial_epoch == 0 or self.seed is None:
            self.seed = random.getrandbits(31)
            if is_distributed(task):
                self.seed = distribution.broadcast_from_rank0(self.seed)
        if bucket_window is not None or initial_epoch == 0:
            self.bucket_window = bucket_window
        if epochs is None:
            epochs = self.num_epochs or 1
        if epochs > initial_epoch == 0:
            task.prepare_head(data)
        note = self._start(task, steps, epochs, initial_epoch)
        callbacks = keras.tree.flatten(callbacks or [])  # As Keras does.
        if self.has_schedule:
            _check_callbacks(callbacks)
        state, self._random_state = self._random_state, None
        before = [] if state is None else [RestoreState(state, steps_per_epoch is not None)]
        after = [PerProcessRng()] if is_distributed(task) else []
        return epochs, [*before, *callbacks, RefuseOtherWeights(), *after], note

    def _start(self, task, steps, epochs, initial_epoch):
        """Makes the optimizer of a new run, or stretches the schedule of a continued run.

        Args:
            task, epochs, initial_epoch: see `begin`.
            steps: int, the number of batches in an epoch.

        Returns:
            A line that says how the run differs from the paper's recipe, or `None`.
        """
        if is_distributed(task) and distribution.shard_of(task).has_own_losses:
            _check_sums_gradients(task)
        if not self.makes_optimizer:
            return None
        optimizer = inner_optimizer(task)
        schedule = schedule_of(optimizer)
        if schedule is None:
            # A rate set on the optimizer, `optimizer.learning_rate = x`, counts as the user's.
            rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
            if rate != np.float32(self.peak_rate(task)):
                self.options = {**self.options, "learning_rate": rate}
        # The last step of the schedule; 0 if `fit` has not made one yet.
        last_step = getattr(schedule, "total_steps", 0)
        if initial_epoch == 0 or steps_done(optimizer) == 0:
            total_steps = None if steps is None else max(1, steps * (epochs - initial_epoch))
            optimizer = self.make_optimizer(task, total_steps)
            task.compile_with(optimizer, keeps_losses=not is_distributed(task))
            peak = self.peak_rate(task, total_steps)
            is_faster = self.options["learning_rate"] is None and peak != RATE
            if is_faster or (self.chose_epochs and epochs > EPOCHS):
                return describe_run(epochs, total_steps, peak)
        elif self.has_schedule and last_step < steps * epochs:
            peak = getattr(schedule, "peak_learning_rate", self.peak_rate(task))
            shape = self.options["warmup"], self.options["lr_schedule"]
            optimizer.learning_rate = WarmupDecay(peak, steps * epochs, *shape)
            task.train_function = None  # The old one holds the old schedule.
        return None

    def get_config(self, task):
        """Returns what `from_config` needs, without the backend's own choices."""
        arguments = self.keras_arguments
        compiled = {
            "loss": self._loss,
            "label_smoothing": self.label_smoothing,
            "metrics": self._metrics,
            "weighted_metrics": self._weighted_metrics,
            **{name: value for name, value in arguments.items() if name != "jit_compile"},
        }
        return {
            "recipe": {"optimizer": self.optimizer, **self.options},
            "arguments": keras.saving.serialize_keras_object(compiled),
            "optimizer": keras.saving.serialize_keras_object(task.optimizer),
            "has_optimizer_state": task.optimizer.built,
            "shuffle_seed": self.seed,
            "bucket_window": self.bucket_window,
            "num_epochs": self.num_epochs,
            "random_state": self._random_state or as_json(task),
        }

    @classmethod
    def from_config(cls, config):
        """Returns the recipe of a config, which continues its run, and the optimizer.

        Args:
            config: dict, see `get_config`.
        """
        options, optimizer = dict(config["recipe"]), config["optimizer"]
        optimizer = keras.saving.deserialize_keras_object(optimizer)
        arguments = keras.saving.deserialize_keras_object(config["arguments"])
        recipe = cls(options.pop("optimizer") or optimizer, **options, **arguments)
        recipe.seed, recipe.bucket_window = config["shuffle_seed"], config["bucket_window"]
        recipe.num_epochs, recipe._random_state = config["num_epochs"], config["random_state"]
        return recipe, optimizer


def _as_loss_of_logits(loss):
    """Turns the name of a Keras loss into a loss of logits, since a task's outputs are logits.

    Raises:
        ValueError: a loss object takes probabilities.
    """
    if isinstance(loss, str) and loss in PROBABILITY_LOSSES:
        return PROBABILITY_LOSSES[loss](from_logits=True)
    if type(loss) not in PROBABILITY_LOSSES.values() or loss.get_config()["from_logits"]:
        return loss
    raise ValueError(
        f"A task's outputs are logits. Received: loss={type(loss).__name__}(from_logits=False), "
        f"which takes probabilities. Pass {type(loss).__name__}(from_logits=True), or leave `loss` "
        "out for the task's own."
    )


def _by_output(metrics, kinds):
    """Returns metrics as a dict by output, with the key `None` for a single output."""
    if None in kinds:
        return {None: [] if metrics is None else metrics}
    if isinstance(metrics, (list, tuple)) and len(metrics) == len(kinds):
        return dict(zip(sorted(kinds), metrics, strict=True))  # In Keras's order.
    if metrics and not isinstance(metrics, dict):
        raise ValueError(
            f"Metrics of several outputs must be a dict with some of {sorted(kinds)}. Received: "
            f"{metrics!r}."
        )
    return metrics or {}


def _averaged_over_devices(loss, share, task):
    """Wraps each loss so that its mean over devices equals the loss of the whole batch.

    Raises:
        ValueError: a loss, or the task's own part of it, compares the rows of a batch.
    """
    losses = [*keras.tree.flatten(loss), task]
    names = [type(each).__name__ for each in losses if getattr(each, "compares_rows", False)]
    if names:
        raise ValueError(
            f"{names[0]} compares the rows of a whole batch, and a device has only its own rows "
            f"here. Received: {share.replicas} devices with {keras.backend.backend()}. With JAX "
            "every row sees all others; or train on one device."
        )
    return keras.tree.map_structure(
        lambda each: CrossReplicaLoss(each) if isinstance(each, keras.losses.Loss) else each, loss
    )


def _check_sums_gradients(task):
    """Raises `ValueError` if an optimizer would not add up the gradients of all devices."""
    optimizer = task.optimizer
    limits = ("clipnorm", "clipvalue", "global_clipnorm")
    clips = any(getattr(inner_optimizer(task), name, None) is not None for name in limits)
    is_torch = keras.backend.backend() == "torch"
    if not isinstance(inner_optimizer(task), AdamW) and (is_torch or clips):
        raise ValueError(
            "Where several devices share a batch, the optimizer must add up their gradients before "
            f"it clips them. Received: {type(optimizer).__name__}. Use bert_keras.AdamW, or "
            "optimizer='auto' or 'lamb'."
        )
    if is_torch and optimizer is not inner_optimizer(task):
        raise ValueError(
            "With float16, PyTorch's processes would skip different steps. Received: "
            "dtype='mixed_float16'. Use 'mixed_bfloat16'."
        )


def _check_callbacks(callbacks):
    """Raises `ValueError` if a callback sets the rate that the recipe's schedule sets."""
    setters = (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau)
    names = [type(callback).__name__ for callback in callbacks if isinstance(callback, setters)]
    if names:
        raise ValueError(
            f"{names} would set the learning rate that the recipe's schedule sets. Compile without "
            "one, `compile(lr_schedule='constant', warmup=0)`, or with an optimizer of your own, "
            "`compile(bert_keras.AdamW(5e-5))`."
        )


def _num_steps(batches, steps_per_epoch):
    """Returns the number of batches in an epoch.

    Raises:
        ValueError: it is unknown.
    """
    try:
        return steps_per_epoch or len(batches)
    except TypeError:
        raise ValueError(
            "The default learning-rate schedule must know how many batches an epoch has, and this "
            f"dataset ({type(batches).__name__}) does not say. Pass `steps_per_epoch`, and for "
            "several epochs a dataset that repeats, `.repeat()`; or pass an optimizer of your own "
            "to `compile`."
        ) from None
