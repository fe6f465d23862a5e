"""BERT's recipe of fine-tuning: what `compile` was asked, and the optimizer of each run."""

import contextlib
import random
import re
import warnings

import keras
import numpy as np

from bert_keras import distribution
from bert_keras.checks import check_number
from bert_keras.engine.random_state import GoOn, OfEachProcess, as_json
from bert_keras.engine.whole_steps import inner_optimizer
from bert_keras.other_names import check_arguments
from bert_keras.training.averages import steps_done
from bert_keras.training.losses import OfAllDevices, SparseCrossentropy
from bert_keras.training.optimizer import AdamW, Lamb
from bert_keras.training.schedules import WarmupDecay
from bert_keras.training.stages import layer_wise_decay

# What it makes by itself.
OPTIMIZERS = {"auto": AdamW, "lamb": Lamb}
# Losses of Keras that take probabilities unless told otherwise.
OF_PROBABILITIES = {
    name: getattr(keras.losses, name.title().replace("_", ""))
    for name in (
        "binary_crossentropy",
        "binary_focal_crossentropy",
        "categorical_crossentropy",
        "categorical_focal_crossentropy",
        "sparse_categorical_crossentropy",
    )
}
# What it can be asked, see `Task.compile`.
DEFAULTS = {
    "learning_rate": 5e-5,
    "weight_decay": 0.01,
    "warmup": 0.1,
    "decay": "linear",
    "decay_power": 1.0,
    "layer_decay": 1.0,
    "head_multiplier": 1.0,
    "ema_momentum": None,
    "gradient_accumulation_steps": None,
}


class Recipe:
    """What `compile` was asked; makes the optimizer of one run of `fit` after another.

    Args:
        optimizer: `"auto"` or `"lamb"`, which it makes, or an optimizer, which it leaves as it is.
        loss: `"auto"` for the task's own, or a loss.
        label_smoothing: float, for the task's own loss.
        weighted_metrics: `"auto"` for the task's own, or metrics.
        **kwargs: values for names of `DEFAULTS`, and further arguments of `keras.Model.compile`.

    Attributes:
        is_own: bool, whether it makes the optimizer.
        label_smoothing: float that `compile` was given.
        seed: int, of the order of examples in the run under way, or `None` before the first.
        sort_window: int or `None`, see `BucketedBatches`.
        num_epochs: int, epochs that the run was begun for, or `None` where they are not whole ones.
        is_running: bool, whether `fit` is under way.

    Raises:
        ValueError: an argument would not count.
    """

    def __init__(
        self, optimizer="auto", loss="auto", label_smoothing=0.0, weighted_metrics="auto", **kwargs
    ):
        self.is_own = isinstance(optimizer, str) and optimizer in OPTIMIZERS
        self.optimizer = optimizer if self.is_own else None
        asked = {name: kwargs.pop(name) for name in DEFAULTS if name in kwargs}
        self.asked = {**DEFAULTS, **asked}
        self._check(optimizer)
        loss = keras.tree.map_structure(_of_logits, loss)
        self._loss, self.label_smoothing, self._metrics = loss, label_smoothing, weighted_metrics
        check_arguments(kwargs, keras.Model.compile)
        self._others = kwargs
        self.seed = self.sort_window = self.num_epochs = self._random_state = None
        self.is_running = False

    def _check(self, optimizer):
        asked = self.asked
        unused = {name: value for name, value in asked.items() if value != DEFAULTS[name]}
        if unused and not self.is_own:
            raise ValueError(
                f"{sorted(unused)} are for optimizer='auto' or 'lamb', which the recipe makes. "
                f"Received: {unused} with optimizer={optimizer!r}. Set them in that optimizer, "
                "such as bert_keras.AdamW, or leave it out."
            )
        is_made = isinstance(optimizer, keras.optimizers.Optimizer)
        rate = optimizer.learning_rate if is_made else asked["learning_rate"]
        check_number("learning_rate", float(keras.ops.convert_to_numpy(rate)) if is_made else rate)
        if asked["decay_power"] != 1.0 and asked["decay"] != "polynomial":
            raise ValueError(
                "`decay_power` is for decay='polynomial'. Received: "
                f"decay_power={asked['decay_power']} with decay={asked['decay']!r}."
            )

    @property
    def ignores_weight_0(self):
        """Whether rows that weigh 0 count neither in the loss nor in the metrics."""
        return _is_auto(self._loss) and not self._others.get("metrics")

    def arguments(self, task):
        """Returns the arguments of `keras.Model.compile` but the optimizer, a dict."""
        loss, metrics = self._loss, self._metrics
        if _takes_scores(loss) and isinstance(task.default_loss(0.0), SparseCrossentropy):
            raise ValueError(
                "This task's labels are numbers of classes, and its outputs a score for each. "
                f"Received: loss={loss!r}, which takes labels of the shape of the scores. Leave it "
                "out for cross-entropy; a head for numbers has problem_type='regression'."
            )
        if _is_auto(loss):
            loss = task.default_loss(self.label_smoothing)
        elif self.label_smoothing:
            raise ValueError(
                "`label_smoothing` is for loss='auto'. Received another loss with "
                f"label_smoothing={self.label_smoothing}: set it in that loss."
            )
        loss = _of_all_devices(loss, distribution.share_of(task))
        if not _is_auto(metrics):
            return {"loss": loss, "weighted_metrics": metrics, **self._others}
        metrics, others = task.default_metrics(), dict(self._others)
        if isinstance(others.get("metrics"), (list, tuple)):
            # By its name the task's own is meant, for which padding does not count.
            own = [metric.name for metric in keras.tree.flatten(metrics)]
            others["metrics"] = [metric for metric in others["metrics"] if metric not in own]
        return {"loss": loss, "weighted_metrics": metrics, **others}

    def make_optimizer(self, task, total_steps=None):
        """Returns a new optimizer; until `fit` knows the steps, its rate is constant."""
        asked, averages = self.asked, {}
        if asked["ema_momentum"] is not None:
            averages = {"use_ema": True, "ema_momentum": asked["ema_momentum"]}
        with distribution.scope_of(task):
            return OPTIMIZERS[self.optimizer](
                asked["learning_rate"] if total_steps is None else self._rate(total_steps),
                weight_decay=asked["weight_decay"],
                learning_rate_multipliers=self._multipliers(task),
                gradient_accumulation_steps=asked["gradient_accumulation_steps"],
                **averages,
            )

    @property
    def has_schedule(self):
        """Whether the recipe, rather than the user or a callback, says what the rate is."""
        asked = self.asked
        return self.is_own and (asked["decay"] != "constant" or asked["warmup"] != 0)

    def _rate(self, total_steps):
        rate, warmup, decay, power = (
            self.asked[name] for name in ("learning_rate", "warmup", "decay", "decay_power")
        )
        if not self.has_schedule:
            return rate
        return WarmupDecay(rate, total_steps, warmup=warmup, decay=decay, power=power)

    def _multipliers(self, task):
        """Returns the task's own multipliers, then those asked for, of what trains."""
        multipliers = list(task.learning_rate_multipliers())
        decay, head = self.asked["layer_decay"], self.asked["head_multiplier"]
        if (decay, head) != (1.0, 1.0):
            paths = [variable.path for variable in task.trainable_variables]
            multipliers += [
                (pattern, factor)
                for pattern, factor in layer_wise_decay(task.backbone, decay, head)
                if any(re.search(pattern, path) for path in paths)
            ]
        return multipliers

    def begin(self, initial_epoch, sort_window=None, num_epochs=None):
        """Notes the beginning of a run, or that one goes on: with its order and its lengths."""
        if initial_epoch == 0:
            self._random_state, self.num_epochs = None, num_epochs
        if initial_epoch == 0 or self.seed is None:
            self.seed = distribution.of_first(random.getrandbits(31))
        if sort_window is not None or initial_epoch == 0:
            self.sort_window = sort_window

    @contextlib.contextmanager
    def running(self):
        """Inside, `is_running` says so."""
        self.is_running = True
        try:
            yield
        finally:
            self.is_running = False

    def renewed(self, task):
        """Returns a new optimizer with the settings of the task's present one."""
        old = task.optimizer
        return self.make_optimizer(task) if self.is_own else old.from_config(old.get_config())

    def schedule(self, task, batches, steps_per_epoch, epochs, initial_epoch):
        """Gives a new run a new optimizer, and a run that goes on a schedule up to its end.

        Args:
            task: a compiled `Task`.
            batches: what `fit` reads.
            steps_per_epoch: int, or `None` for all batches.
            epochs: int, see `keras.Model.fit`.
            initial_epoch: int, likewise.
        """
        _check_adds_up(task)
        if not self.is_own:
            return
        steps, optimizer = _num_steps(batches, steps_per_epoch), inner_optimizer(task)
        self._heed_set_rate(optimizer)
        if initial_epoch == 0 or steps_done(optimizer) == 0:
            frozen_paths = optimizer.frozen_paths if optimizer.built else []
            task.compile_with(self.make_optimizer(task, max(1, steps * (epochs - initial_epoch))))
            _freeze(task, frozen_paths)
        elif self.has_schedule and _end(optimizer) < steps * epochs:
            optimizer.learning_rate = self._rate(steps * epochs)
            task.train_function = None  # The old one holds the old schedule.

    def _heed_set_rate(self, optimizer):
        """Takes a rate that was set on the optimizer, `optimizer.learning_rate = x`, as asked."""
        rate = optimizer._learning_rate
        if not isinstance(rate, keras.Variable):
            return
        rate = float(keras.ops.convert_to_numpy(rate))
        if rate != np.float32(self.asked["learning_rate"]):
            self.asked["learning_rate"] = rate

    def callbacks(self, task, given, has_one_loader):
        """Returns the callbacks of a run, those that the user gave among them.

        Args:
            task: a compiled `Task`.
            given: a callback, a list of such, or `None`.
            has_one_loader: bool, see `GoOn`.

        Raises:
            ValueError: a callback would set the rate that the recipe's schedule sets.
        """
        given = given or []
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        if self.has_schedule:
            _refuse_setters_of_rates(given)
        _warn_of_raw_weights(inner_optimizer(task), given)
        state, self._random_state = self._random_state, None
        before = [] if state is None else [GoOn(state, has_one_loader=has_one_loader)]
        return [*before, *given, *([OfEachProcess()] if distribution.process()[1] > 1 else [])]

    def get_config(self, task):
        """Returns what `from_config` needs; the backend's own choices are left out."""
        others = {name: value for name, value in self._others.items() if name != "jit_compile"}
        compiled = {
            "loss": self._loss,
            "label_smoothing": self.label_smoothing,
            "weighted_metrics": self._metrics,
            **others,
        }
        return {
            "recipe": {"optimizer": self.optimizer, **self.asked},
            "arguments": keras.saving.serialize_keras_object(compiled),
            "optimizer": keras.saving.serialize_keras_object(task.optimizer),
            "has_optimizer_state": task.optimizer.built,
            "shuffle_seed": self.seed,
            "sort_window": self.sort_window,
            "num_epochs": self.num_epochs,
            "random_state": self._random_state or as_json(task),
        }

    @classmethod
    def from_config(cls, config):
        """Returns the recipe that `get_config` told of, which takes up its run, and the optimizer.

        Args:
            config: dict.
        """
        asked, optimizer = dict(config["recipe"]), config["optimizer"]
        optimizer = keras.saving.deserialize_keras_object(optimizer)
        arguments = keras.saving.deserialize_keras_object(config["arguments"])
        recipe = cls(asked.pop("optimizer") or optimizer, **asked, **arguments)
        recipe.seed, recipe.sort_window = config["shuffle_seed"], config["sort_window"]
        recipe.num_epochs, recipe._random_state = config["num_epochs"], config["random_state"]
        return recipe, optimizer


def _is_auto(given):
    return isinstance(given, str) and given == "auto"


def _of_logits(loss):
    """Returns a loss given by Keras's name as the one of logits, which a task's outputs are.

    Raises:
        ValueError: a loss object takes probabilities.
    """
    if isinstance(loss, str) and loss in OF_PROBABILITIES:
        return OF_PROBABILITIES[loss](from_logits=True)
    if getattr(loss, "from_logits", True) or type(loss) not in OF_PROBABILITIES.values():
        return loss
    raise ValueError(
        f"A task's outputs are logits. Received: loss={type(loss).__name__}(from_logits=False), "
        f"which takes probabilities. Pass {type(loss).__name__}(from_logits=True), or leave `loss` "
        "out for the task's own."
    )


def _of_all_devices(loss, share):
    """Returns losses as they are to be where devices have a share each of a batch.

    Raises:
        ValueError: a loss compares the rows of a batch with one another.
    """
    if share.replicas == 1 or keras.backend.backend() == "jax":
        return loss
    losses = keras.tree.flatten(loss)
    found = [type(each).__name__ for each in losses if getattr(each, "compares_rows", False)]
    if found:
        raise ValueError(
            f"{found[0]} compares the rows of a whole batch, of which a device has only its own "
            f"here. Received: {share.replicas} devices with {keras.backend.backend()}. With JAX "
            "every row sees all others; or train on one device."
        )
    return keras.tree.map_structure(
        lambda each: OfAllDevices(each) if isinstance(each, keras.losses.Loss) else each, loss
    )


def _check_adds_up(task):
    """Raises `ValueError` for an optimizer that would take the gradients of one device for all."""
    share, optimizer = distribution.share_of(task), task.optimizer
    if share.replicas == 1 or keras.backend.backend() == "jax":
        return
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
            "In float16 PyTorch's processes would disagree on which steps are left out. Received: "
            "dtype='mixed_float16'. Use 'mixed_bfloat16', which every card that is fast in it has."
        )


def _takes_scores(loss):
    """Whether a loss by name, or of `OF_PROBABILITIES`, takes labels of the shape of the scores."""
    of_scores = tuple(cls for name, cls in OF_PROBABILITIES.items() if "sparse" not in name)
    return isinstance(loss, (str, *of_scores)) and not _is_auto(loss)


def _refuse_setters_of_rates(callbacks):
    setters = (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau)
    found = [type(callback).__name__ for callback in callbacks if isinstance(callback, setters)]
    if found:
        raise ValueError(
            f"{found} would set the learning rate that the recipe's schedule sets. Compile without "
            "one, `compile(decay='constant', warmup=0)`, or with an optimizer of your own, "
            "`compile(bert_keras.AdamW(5e-5))`."
        )


def _num_steps(batches, steps_per_epoch):
    """Returns the number of batches of an epoch.

    Raises:
        ValueError: nothing tells it.
    """
    try:
        return steps_per_epoch or len(getattr(batches, "batches", batches))
    except TypeError:
        raise ValueError(
            "The default learning-rate schedule must know how many batches an epoch has, and this "
            f"dataset ({type(batches).__name__}) does not say. Pass `steps_per_epoch`, for several "
            "epochs with a dataset that goes on, `.repeat()`; or an optimizer of your own to "
            "`compile`."
        ) from None


def _end(optimizer):
    """Returns the last step of an optimizer's schedule; 0 where `fit` has not made one yet."""
    return getattr(optimizer._learning_rate, "total_steps", 0)


def _freeze(task, paths):
    """Freezes what was frozen in an optimizer that has not made a step."""
    training = {variable.path for variable in task.trainable_variables}
    paths = [path for path in paths if path in training]
    if paths:
        task.optimizer.build(task.trainable_variables)
        inner_optimizer(task).freeze(*(f"^{re.escape(path)}$" for path in paths))


def _warn_of_raw_weights(optimizer, callbacks):
    """Warns of callbacks that keep the weights that are being averaged, and not their averages."""
    found = [
        type(callback).__name__
        for callback in callbacks
        if isinstance(callback, keras.callbacks.ModelCheckpoint)
        or (isinstance(callback, keras.callbacks.EarlyStopping) and callback.restore_best_weights)
    ]
    if found and getattr(optimizer, "use_ema", False):
        warnings.warn(
            f"{found} keep the weights as training has them, while what is validated are their "
            "averages (`ema_momentum`). To keep the averages of the best epoch, pass "
            "bert_keras.training.BestOnMetric instead.",
            stacklevel=4,
        )
