"""The one base class of all tasks: a backbone, a head and a preprocessor that train together."""

import contextlib
import inspect
import random
import re
import types
import warnings

import keras
import numpy as np

from bert_keras.inputs import check_keys
from bert_keras.models.backbone import Backbone, dtype_config
from bert_keras.models.model import BuiltModel, arguments_of
from bert_keras.models.quantized import check_not_quantized, quantized_config
from bert_keras.preprocessing.batching import BucketedBatches, length_buckets
from bert_keras.preprocessing.checked_batches import CheckedBatches
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import presets
from bert_keras.presets.assign import relative_path
from bert_keras.tasks.adapters import DEFAULT_TARGETS, AdaptedTask
from bert_keras.tasks.columns import (
    check_is_dataset,
    check_same_length,
    is_text,
    num_examples,
    split_off_end,
)
from bert_keras.tasks.features import check_can_cache, has_features, outputs_of, with_features
from bert_keras.training.averages import averages_in_place, inner_optimizer
from bert_keras.training.consistency import SeveralMasks
from bert_keras.training.optimizer import AdamW, Lamb, layer_wise_decay
from bert_keras.training.random_state import GoOn, as_json
from bert_keras.training.schedules import WarmupDecay

DEFAULT_BATCH_SIZE = 32
# Of a batch that PyTorch predicts on the CPU. MiniLM on one core of an AMD EPYC (Zen 4), seconds
# with 1,024, 2,048, 4,096 and 8,192 tokens and with 32 rows: 4.27, 4.05, 4.86, 5.69 and 4.37 of 500
# sentences of SST-2; 4.74, 4.39, 5.04, 5.13 and 5.09 of 64 reviews of IMDB, 256 tokens long. JAX
# gains nothing: 512 texts of 16 tokens in batches of 32, 64, 128 and 256 rows took 2.17, 2.35, 2.29
# and 2.36.
_TOKENS_AT_ONCE = 2048
FROZEN_PARTS = (None, "backbone", "embeddings")
# What `compile` makes by itself.
_OPTIMIZERS = {"auto": AdamW, "lamb": Lamb}


class Task(AdaptedTask, SeveralMasks, BuiltModel):
    """A model that `fit` trains from raw text: backbone, head and preprocessor.

    A subclass makes `self.head`, says which loss and metrics are its own (`default_loss`,
    `default_metrics`), how labels look (`encode_labels`), and answers as a person would read it.

    `fit`, `evaluate` and `predict` take

    - raw text, when the task has a preprocessor: a list, NumPy array or pandas column of str, or a
      tuple of two such columns for text pairs. Batches are padded to few different lengths, and
      hold texts of like length, so that short ones do not pay for long ones;
    - ready inputs: the dict of arrays of `bert_keras.inputs`, a `keras.utils.PyDataset`, a
      `tf.data.Dataset`, a torch `DataLoader`. Arrays are checked before the first step, the batches
      of a `PyDataset` each before its own; what the last two yield is not.

    A task is compiled when it is made. The defaults are BERT's recipe: AdamW with weight decay on
    kernels only, gradients clipped to norm 1, the learning rate rising over the first tenth of the
    steps and falling linearly to 0. With that default optimizer each call of `fit` is one training
    run of its own, with a fresh optimizer and schedule; `initial_epoch` above 0 continues the run.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        frozen: what does not train: `None`, `"embeddings"`, `"backbone"`, or an int `n` for the
            embeddings and the first `n` encoder layers. A frozen backbone runs without dropout. It
            sets `trainable` of the backbone's layers, so other tasks on the same backbone see it.
        lora_rank: int, or `None`. With it two small matrices of this rank beside some kernels of
            the encoder train, and the head, but nothing else of the backbone (LoRA, see
            `AdaptableDense`). `frozen` must then be `None`; dropout stays as it is. It takes
            learning rates about ten times as high, such as 5e-4. Weight decay acts on both
            matrices, and so draws the kernels back to where they began.
        lora_alpha: float, the adapters count `lora_alpha / lora_rank` times; `None` for once.
        lora_targets: list of names of kernels in each encoder layer: `"query"` and `"value"` as in
            the paper, `"key"`, `"attention_output"`, `"intermediate"`, `"feed_forward_output"`.
        lora_layers: numbers of the encoder layers that are adapted, such as `range(6, 12)`, or
            `None` for all.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.
    """

    # Arguments whose change makes a preset's head useless.
    head_arguments = ()
    # The order of the examples in `fit`; a run that is continued keeps it.
    _shuffle_seed = None
    # How many batches `fit` sorts by length together, see `BucketedBatches`.
    _sort_window = None
    _random_state = None
    _is_fitting = False

    def __init__(
        self,
        backbone,
        preprocessor=None,
        frozen=None,
        lora_rank=None,
        lora_alpha=None,
        lora_targets=DEFAULT_TARGETS,
        lora_layers=None,
        **kwargs,
    ):
        if not isinstance(backbone, Backbone):
            raise TypeError(
                "`backbone` must be a bert_keras backbone, such as `BertBackbone`. Received: "
                f"{type(backbone).__name__}. Presets load by `{type(self).__name__}.from_preset`."
            )
        kwargs.setdefault("dtype", backbone.dtype_policy)
        super().__init__(**kwargs)
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.frozen = frozen
        self._check_preprocessor()
        if preprocessor is not None:
            self.preprocessor = preprocessor.for_inputs(backbone.input_names)
        self._freeze()
        self._add_adapters(lora_rank, lora_alpha, lora_targets, lora_layers)

    def _check_preprocessor(self):
        if self.preprocessor is None:
            return
        if not isinstance(self.preprocessor, TextPreprocessor):
            raise TypeError(
                "`preprocessor` must be a bert_keras `TextPreprocessor`. Received: "
                f"{type(self.preprocessor).__name__}."
            )
        longest = self.backbone.max_sequence_length
        if self.preprocessor.max_length > longest:
            raise ValueError(
                f"The preprocessor's `max_length` must be at most {longest}, the length of the "
                f"backbone's position table. Received: {self.preprocessor.max_length}."
            )
        self._check_vocabulary()

    def _check_vocabulary(self):
        tokenizer = self.preprocessor.tokenizer
        if tokenizer.has_vocabulary and tokenizer.vocabulary_size > self.backbone.vocabulary_size:
            raise ValueError(
                f"The tokenizer's vocabulary has {tokenizer.vocabulary_size} tokens, the backbone "
                f"only {self.backbone.vocabulary_size} embeddings. Use the tokenizer of the same "
                "checkpoint."
            )

    def _freeze(self):
        layers = self.backbone.num_layers
        is_count = isinstance(self.frozen, int) and not isinstance(self.frozen, bool)
        if not (self.frozen in FROZEN_PARTS or (is_count and 0 <= self.frozen <= layers)):
            raise ValueError(
                f"`frozen` must be one of {FROZEN_PARTS} or an int from 0 to {layers}, the encoder "
                f"layers. Received: {self.frozen!r}."
            )
        for layer in self._frozen_layers():
            layer.trainable = False

    def _frozen_layers(self):
        """Returns the layers that `frozen` names."""
        if self.frozen is None:
            return []
        if self.frozen == "backbone":
            return [self.backbone]
        num_blocks = 0 if self.frozen == "embeddings" else self.frozen
        return [self.backbone.embeddings, *self.backbone.encoder.blocks[:num_blocks]]

    def build(self, input_shape=None):
        if not self.head.built:
            self.head.build()

    @property
    def input_names(self):
        """Names of the inputs that this task knows."""
        return self.backbone.input_names

    def check_arrays(self, inputs):
        """Raises when NumPy inputs do not fit the backbone, see `Backbone.check_arrays`."""
        self.backbone.check_arrays(inputs)

    def check_inputs(self, inputs):
        """Raises when a dict of inputs does not fit; cached features, made by `fit`, do."""
        if not has_features(inputs):
            super().check_inputs(inputs)

    # What trains. The pooler of a task that does not read it has no gradient: of those variables
    # Keras would warn on some backends, and on JAX its weight decay would shrink them.

    @property
    def has_classes(self):
        """Whether each example has one class, so that `fit` can weigh it by that."""
        return True

    @property
    def reads_pooled_output(self):
        """Whether the task's output depends on the backbone's pooler."""
        return getattr(self, "pooling", None) == "pooler"

    @property
    def trainable_variables(self):
        """The variables that `fit` changes."""
        return self._without_idle(super().trainable_variables)

    @property
    def non_trainable_variables(self):
        """All other variables."""
        trained = {id(variable) for variable in self.trainable_variables}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def trainable_weights(self):
        """The weights that `fit` changes."""
        return self._without_idle(super().trainable_weights)

    @property
    def non_trainable_weights(self):
        """All other weights."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [weight for weight in self.weights if id(weight) not in trained]

    def _without_idle(self, variables):
        pooler = getattr(getattr(self, "backbone", None), "pooler", None)
        if pooler is None or self.reads_pooled_output:
            return variables
        idle = {id(variable) for variable in pooler.variables}
        return [variable for variable in variables if id(variable) not in idle]

    def encode(self, inputs, training=None, **options):
        """Calls the backbone; a frozen one runs as in inference, or has done so already."""
        if has_features(inputs):
            return outputs_of(inputs)
        return self.backbone(inputs, training=training and self.frozen != "backbone", **options)

    # A task whose head can learn from cached vectors has a method of this name: from inputs to
    # float `(batch, hidden_dim)` or `(batch, seq_len, hidden_dim)`, see `fit(cache_features=True)`.
    features = None

    # Heads of other tasks whose weights this task takes: the saved task's class name -> dict,
    # prefix of our paths -> prefix of the saved ones. A task always takes its own.
    takes_head_of = types.MappingProxyType({})

    # What a subclass says of itself

    def default_loss(self, label_smoothing):
        """Returns the loss that `compile(loss="auto")` stands for."""
        raise NotImplementedError(f"{type(self).__name__} must define `default_loss`.")

    def default_metrics(self):
        """Returns the weighted metrics that `compile(weighted_metrics="auto")` stands for."""
        return []

    def learning_rate_multipliers(self):
        """Returns the multipliers of the default optimizer, see `AdamW`: none."""
        return ()

    def encode_labels(self, labels):
        """Returns labels as the array that the loss takes, after checking every one of them."""
        raise NotImplementedError(f"{type(self).__name__} must define `encode_labels`.")

    # Training

    def compile(
        self,
        optimizer="auto",
        loss="auto",
        *,
        learning_rate=5e-5,
        weight_decay=0.01,
        warmup=0.1,
        decay="linear",
        decay_power=1.0,
        layer_decay=1.0,
        head_multiplier=1.0,
        ema_momentum=None,
        gradient_accumulation_steps=None,
        label_smoothing=0.0,
        consistency=None,
        dropout_samples=1,
        weighted_metrics="auto",
        **kwargs,
    ):
        """Configures training; every argument has the default of BERT's recipe.

        Args:
            optimizer: `"auto"` for `AdamW`, `"lamb"` for `Lamb`, which is for large batches and
                takes other rates, or any Keras optimizer; the next nine are for the first two.
            loss: `"auto"` for the task's own, or any Keras loss.
            learning_rate: float, the peak. The paper searches 2e-5, 3e-5, 5e-5.
            weight_decay: float, on kernels and embeddings, not on biases and norms.
            warmup: float, fraction of the steps of `fit`; or int, number of steps.
            decay: shape after the warm-up, see `WarmupDecay`.
            decay_power: float, the exponent of `decay="polynomial"`.
            layer_decay: float, above 0 and at most 1: each layer's rate is so many times that of
                the layer above it, see `layer_wise_decay`. Sun et al. found 0.95 best.
            head_multiplier: float, how many times the rate everything outside the backbone has.
            ema_momentum: float, such as 0.99, or `None`: keeps exponential averages of the weights,
                which `fit` validates and ends with. To keep those of the best epoch, use
                `BestOnMetric`: Keras's callbacks keep the weights that are being averaged.
            gradient_accumulation_steps: int, or `None`: batches whose mean gradient makes one
                update, as one batch of so many times the size would where the batches weigh the
                same: not quite where the loss is a mean over tokens or weighted examples, of which
                each batch has another number. `warmup` in steps counts batches.
            label_smoothing: float from 0 up to 1, for `loss="auto"`.
            consistency: float, or `None`. With it each batch is read twice with different dropout,
                and what the passes disagree about is added so many times to the loss (R-Drop, see
                `SeveralMasks`); the paper uses from 0.1 to 5. A step takes twice as long. For
                `TextClassifier`, `TokenClassifier` without a CRF, `MultipleChoice` and
                `NextSentencePrediction`.
            dropout_samples: int, dropout masks that the head of a `TextClassifier` draws for each
                text in training; the loss is the mean of theirs (multi-sample dropout).
            weighted_metrics: `"auto"` for the task's own, or a list of Keras metrics; for several
                outputs a dict of such lists.
            **kwargs: `metrics`, `jit_compile`, `run_eagerly`, `steps_per_execution`, see
                `keras.Model.compile`.

        Raises:
            ValueError: an argument is outside its range, or would not count.
        """
        recipe = {
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "warmup": warmup,
            "decay": decay,
            "decay_power": decay_power,
            "layer_decay": layer_decay,
            "head_multiplier": head_multiplier,
            "ema_momentum": ema_momentum,
            "gradient_accumulation_steps": gradient_accumulation_steps,
        }
        has_own_recipe = isinstance(optimizer, str) and optimizer in _OPTIMIZERS
        _check_recipe(recipe, optimizer, has_own_recipe)
        self._has_own_recipe = has_own_recipe
        self._recipe = {**recipe, "optimizer": optimizer if has_own_recipe else None}
        self._keep_arguments(
            {
                "loss": loss,
                "label_smoothing": label_smoothing,
                "consistency": consistency,
                "dropout_samples": dropout_samples,
                "weighted_metrics": weighted_metrics,
                **kwargs,
            }
        )
        if self._has_own_recipe:
            optimizer = self._recipe_optimizer()
        self._compile_with(optimizer)

    def _keep_arguments(self, arguments):
        # Of a dict Keras would take the metrics in it for layers' state, which must not grow now.
        self._compiled_with = types.MappingProxyType(arguments)

    def _compile_with(self, optimizer):
        arguments = dict(self._compiled_with)
        label_smoothing = arguments.pop("label_smoothing")
        self.set_masks(arguments.pop("consistency", None), arguments.pop("dropout_samples", 1))
        if self._has_own("loss"):
            arguments["loss"] = self.default_loss(label_smoothing)
        elif label_smoothing:
            raise ValueError(
                "`label_smoothing` is for loss='auto'. Received another loss with "
                f"label_smoothing={label_smoothing}: set it in that loss."
            )
        if self._has_own("weighted_metrics"):
            arguments["weighted_metrics"] = self.default_metrics()
        super().compile(optimizer=optimizer, **arguments)

    def get_compile_config(self):
        """Returns what `compile_from_config` needs; the backend's own choices are left out."""
        arguments = {k: v for k, v in self._compiled_with.items() if k != "jit_compile"}
        return {
            "recipe": self._recipe,
            "has_own_recipe": self._has_own_recipe,
            "arguments": keras.saving.serialize_keras_object(arguments),
            "optimizer": keras.saving.serialize_keras_object(self.optimizer),
            "has_optimizer_state": self.optimizer.built,
            "shuffle_seed": self._shuffle_seed,
            "sort_window": self._sort_window,
            "random_state": self._random_state or as_json(self),
        }

    def compile_from_config(self, config):
        """Compiles as `get_compile_config` says, with the optimizer's state ready to be loaded."""
        self._recipe = dict(config["recipe"])
        self._keep_arguments(keras.saving.deserialize_keras_object(config["arguments"]))
        self._has_own_recipe = config["has_own_recipe"]
        self._shuffle_seed = config["shuffle_seed"]
        # Older files have none of these.
        self._sort_window = config.get("sort_window")
        self._random_state = config.get("random_state")
        self._compile_with(keras.saving.deserialize_keras_object(config["optimizer"]))
        # Before the first `fit` a file holds no state, and what is not built waits for none.
        if config["has_optimizer_state"]:
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        *,
        validation_data=None,
        validation_split=0.0,
        sample_weight=None,
        shuffle=True,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_batch_size=None,
        sort_window=None,
        cache_features=False,
        **kwargs,
    ):
        """Trains, from raw text or from ready inputs, like `keras.Model.fit`.

        Args:
            x: texts, or ready inputs, see the class.
            y: labels; `None` for datasets that yield them.
            batch_size: int, 32 by default.
            epochs: int.
            validation_data: `(x, y)`, `(x, y, sample_weight)`, or a dataset.
            validation_split: float, share of the examples, taken from the end, to validate on.
            sample_weight: float, `(num_examples,)`.
            shuffle: bool, whether texts or arrays are shuffled before each epoch. Without it,
                batches of texts come the longest first, in each epoch alike.
            initial_epoch: int, above 0 to continue a run with its optimizer, its order of texts and
                its dropout: on the same backend bit for bit, also from a `.keras` file that was
                saved last at the end of an epoch. (Arrays are shuffled by Keras, each time anew.
                With `ema_momentum`, `fit` ends with the averages as weights; only a file saved
                within it, by a callback, has those that were averaged too.)
                Where `epochs` is beyond the end of that run's schedule, the schedule is stretched
                to the new end.
            steps_per_epoch: int, needed with the default recipe for datasets without a length.
            validation_batch_size: int, `batch_size` by default.
            sort_window: int, how many batches of texts are sorted by length together. 1 keeps
                batches random; more need less padding, and may cost accuracy where labels go with
                lengths. By default as many as `BucketedBatches` takes for an epoch of this size, or
                those of the run that is continued.
            cache_features: bool, for a `TextClassifier` or a `TokenClassifier` with
                `frozen="backbone"`: whether the encoder reads each example once and the head learns
                from what it said, which is the same in every epoch. Metrics and weights come out as
                without it, in nearly the time of one epoch. The vectors stay in memory during
                `fit`, as float32: 4 bytes x `hidden_dim` for each text, for each token with a
                `TokenClassifier`. Validation data that is no dataset is read once too.
            **kwargs: `verbose`, `callbacks`, `class_weight`, `validation_steps`,
                `validation_freq`, see `keras.Model.fit`.

        Returns:
            A `keras.callbacks.History`. Its `loss` is Keras's mean over batches; the metrics are
            means over examples by weight.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit; before any compute.
        """
        if initial_epoch == 0 or self._shuffle_seed is None:
            self._shuffle_seed = random.getrandbits(31)
        if sort_window is not None:
            self._check_sort_window(sort_window, x, shuffle)
        if sort_window is not None or initial_epoch == 0:
            self._sort_window = sort_window
        if validation_split and validation_data is None and self._is_examples(x):
            (x, y, sample_weight), validation_data = split_off_end(
                x, y, sample_weight, validation_split
            )
        if cache_features:
            check_can_cache(self, x)
        data = self._data(x, y, sample_weight, batch_size, shuffle=shuffle, epoch=initial_epoch)
        if kwargs.get("class_weight") is not None:
            self._weigh_classes(data, kwargs)
        if isinstance(validation_data, (tuple, list)):
            validation = self._data(
                *validation_data, batch_size=validation_batch_size or batch_size
            )
            kwargs["validation_batch_size"] = validation["batch_size"]
            if cache_features:
                self._cache_features(validation, **kwargs)
            validation_data = validation["x"]
            if validation["y"] is not None:
                validation_data = (validation["x"], validation["y"], validation["sample_weight"])
        validation_data = self._checked(validation_data)
        if cache_features:
            self._cache_features(data, **kwargs)
        if self._has_own_recipe:
            steps = steps_per_epoch or _num_batches(data["x"], data["batch_size"])
            self._schedule_run(steps, epochs, initial_epoch)
        self._build_optimizer()
        callbacks = kwargs.get("callbacks") or []
        callbacks = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        _warn_of_raw_weights(inner_optimizer(self), callbacks)
        if initial_epoch and self._random_state is not None:
            kwargs["callbacks"] = [
                GoOn(self._random_state, has_one_loader=steps_per_epoch is not None),
                *callbacks,
            ]
        self._random_state = None
        self._is_fitting = True
        try:
            return super().fit(
                **data,
                epochs=epochs,
                validation_data=validation_data,
                # Batches of texts come shuffled.
                shuffle=shuffle and not self.is_raw(x),
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                **kwargs,
            )
        finally:
            self._is_fitting = False

    def train_step(self, *args):
        """Like `keras.Model.train_step`, with several masks where `compile` says so.

        On PyTorch the gradients of the last step are given up first: Keras does it only when the
        forward pass has taken its memory too.
        """
        if keras.backend.backend() == "torch":
            self.zero_grad()
        return super().train_step(*args)

    def quantize(self, mode=None, config=None, filters=None, **kwargs):
        """Quantizes the weights, see `BuiltModel.quantize`; the optimizer starts anew.

        The old one keeps moments of weights that are gone, in memory and in files.
        """
        super().quantize(mode, config=config, filters=filters, **kwargs)
        self._renew_optimizer()

    def _build_optimizer(self):
        """Creates the optimizer's state before the first step, as Keras does on JAX.

        A step of TensorFlow that has to create it is traced twice.
        """
        if keras.backend.backend() == "tensorflow" and self.optimizer and not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)

    def _check_sort_window(self, sort_window, x, shuffle):
        is_int = isinstance(sort_window, (int, np.integer)) and not isinstance(sort_window, bool)
        if not is_int or sort_window < 1:
            raise ValueError(f"`sort_window` must be an int from 1. Received: {sort_window!r}.")
        if not (shuffle and self.is_raw(x)):
            raise ValueError(
                "`sort_window` is for texts that are shuffled; ready inputs are not sorted. "
                f"Received: sort_window={sort_window} with shuffle={shuffle} and x a "
                f"{type(x).__name__}."
            )

    def _weigh_classes(self, data, kwargs):
        """Prepares data for the `class_weight` in `kwargs`; a task of many labels takes it out."""
        if not self.has_classes:
            raise ValueError(
                "`class_weight` is for examples that have one class each, which those of this "
                f"{type(self).__name__} have not. Pass `sample_weight`, one for each example."
            )
        if isinstance(data["x"], BucketedBatches):
            data["x"].pad_last_batch = False  # Keras takes class weights or sample weights

    def _cache_features(self, data, verbose="auto", **kwargs):
        size = data["batch_size"] or DEFAULT_BATCH_SIZE
        data["x"] = with_features(self, data["x"], size, verbose)

    def _schedule_run(self, steps, epochs, initial_epoch):
        """Gives a new run a new optimizer, and a run that goes on a schedule up to its end."""
        optimizer = inner_optimizer(self)
        has_begun = int(optimizer.iterations) > 0
        if not has_begun or initial_epoch == 0:
            frozen_paths = optimizer.frozen_paths if optimizer.built else []
            self._compile_with(self._recipe_optimizer(max(1, steps * (epochs - initial_epoch))))
            self._freeze_again(frozen_paths)
        elif optimizer._learning_rate.total_steps < steps * epochs:
            optimizer.learning_rate = self._recipe_optimizer(steps * epochs)._learning_rate
            self.train_function = None  # The old one holds the old schedule.

    def _freeze_again(self, paths):
        """Freezes what was frozen in an optimizer that has not made a step."""
        training = {variable.path for variable in self.trainable_variables}
        paths = [path for path in paths if path in training]
        if paths:
            self.optimizer.build(self.trainable_variables)
            inner_optimizer(self).freeze(*(f"^{re.escape(path)}$" for path in paths))

    def _recipe_optimizer(self, total_steps=None):
        """Returns the default optimizer; until `fit` knows the steps, its rate is constant."""
        recipe = self._recipe
        rate = recipe["learning_rate"]
        if total_steps is not None:
            rate = WarmupDecay(
                rate,
                total_steps,
                warmup=recipe["warmup"],
                decay=recipe["decay"],
                power=recipe.get("decay_power", 1.0),  # Older files have none.
            )
        averages = {}
        if recipe["ema_momentum"] is not None:
            averages = {"use_ema": True, "ema_momentum": recipe["ema_momentum"]}
        return _OPTIMIZERS[recipe.get("optimizer") or "auto"](
            rate,
            weight_decay=recipe["weight_decay"],
            learning_rate_multipliers=self._multipliers(),
            gradient_accumulation_steps=recipe["gradient_accumulation_steps"],
            **averages,
        )

    def _multipliers(self):
        """Returns the task's own multipliers, then those of `compile`, of what trains."""
        multipliers = list(self.learning_rate_multipliers())
        decay, head = self._recipe["layer_decay"], self._recipe["head_multiplier"]
        if (decay, head) != (1.0, 1.0):
            paths = [variable.path for variable in self.trainable_variables]
            multipliers += [
                (pattern, factor)
                for pattern, factor in layer_wise_decay(self.backbone.num_layers, decay, head)
                if any(re.search(pattern, path) for path in paths)
            ]
        return multipliers

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Returns loss and metrics, from raw text or from ready inputs.

        While `fit` is under way, as for its `validation_data`, they are those of the averaged
        weights where the optimizer keeps such.

        Args:
            x: texts, or ready inputs, see the class.
            y: labels; `None` for datasets that yield them.
            batch_size: int, 32 by default.
            sample_weight: float, `(num_examples,)`.
            **kwargs: `verbose`, `steps`, `callbacks`, `return_dict`, see `keras.Model.evaluate`.

        Returns:
            A float, a list of floats, or with `return_dict=True` a dict of floats by name.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit; before any compute.
        """
        data = self._data(x, y, sample_weight, batch_size)
        with averages_in_place(self) if self._is_fitting else contextlib.nullcontext():
            return super().evaluate(**data, **kwargs)

    def predict(self, x, batch_size=None, **kwargs):
        """Returns the task's raw outputs, from raw text or from ready inputs, in their order.

        Texts are sorted by length for the computation and put back into their order.

        Args:
            x: texts, or ready inputs, see the class.
            batch_size: int, 32 by default; on PyTorch on the CPU the default for texts is as many
                as have 2,048 tokens together, padding included.
            **kwargs: `verbose`, `steps`, `callbacks`, see `keras.Model.predict`.

        Returns:
            NumPy arrays in the structure of the task's output.

        Raises:
            TypeError, ValueError: texts or inputs do not fit; before any compute.
        """
        if not self.is_raw(x):
            check_is_dataset(x)
            return super().predict(self._checked(x), batch_size=batch_size, **kwargs)
        batches = self.raw_batches(x, batch_size=_at_most(batch_size, num_examples(x)))
        if batch_size is None and self._is_eager_on_the_cpu():
            batches = batches.for_prediction(max(1, _TOKENS_AT_ONCE // self.sequences_a_row(x)))
        outputs = super().predict(batches, **kwargs)
        return keras.tree.map_structure(batches.restore_order, outputs)

    def _is_eager_on_the_cpu(self):
        is_torch = keras.backend.backend() == "torch"
        return is_torch and self.backbone.weights[0].value.device.type == "cpu"

    def _data(self, x, y=None, sample_weight=None, batch_size=None, shuffle=False, epoch=0):
        """Returns `x`, `y`, `sample_weight`, `batch_size` for Keras, with everything checked."""
        if not self._is_examples(x):
            check_is_dataset(x)
            x = self._checked(x)
            return {"x": x, "y": y, "sample_weight": sample_weight, "batch_size": batch_size}
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs labels to train or to be evaluated. Received: y=None."
            )
        if isinstance(x, dict):
            check_keys(x, self.input_names)
            x = {name: keras.ops.convert_to_numpy(value) for name, value in x.items()}
        check_same_length(x, y, sample_weight)
        batch_size = batch_size or DEFAULT_BATCH_SIZE
        if self.is_raw(x):
            batches = self.raw_batches(x, y, sample_weight, batch_size, shuffle, epoch)
            return {"x": batches, "y": None, "sample_weight": None, "batch_size": None}
        self.check_arrays(x)
        y = self.encode_labels(y)
        return {"x": x, "y": y, "sample_weight": sample_weight, "batch_size": batch_size}

    def _checked(self, x):
        """Returns a dataset that raises at a batch whose inputs do not fit, or `x` as it is."""
        own = (BucketedBatches, CheckedBatches)
        if not isinstance(x, keras.utils.PyDataset) or isinstance(x, own) or x.use_multiprocessing:
            return x
        return CheckedBatches(x, self.check_inputs)

    def _is_examples(self, x):
        """Whether `x` holds all examples at once, rather than being a dataset of batches."""
        return self.is_raw(x) or (isinstance(x, dict) and not has_features(x))

    def is_raw(self, x):
        """Whether `x` is what the preprocessor takes: texts, or for some tasks columns of others.

        Args:
            x: anything passed to `fit`, `evaluate` or `predict`.
        """
        return is_text(x)

    def sequences_a_row(self, x):
        """Returns how many sequences the longest row of raw `x` has: 1 but for choices."""
        return 1

    def raw_batches(self, x, y=None, sample_weight=None, batch_size=32, shuffle=False, epoch=0):
        """Returns the batches of raw examples, with labels where there are any.

        Args:
            x: raw examples, see `is_raw`.
            y: labels as a user gives them, or `None`.
            sample_weight: float `(num_examples,)`, or `None`.
            batch_size: int.
            shuffle: bool, whether each epoch has an order of its own.
            epoch: int, number of the first epoch.

        Returns:
            A `BucketedBatches`.

        Raises:
            TypeError, ValueError: texts or labels do not fit, or there is no preprocessor.
        """
        self.check_has_preprocessor()
        y = None if y is None else self.encode_labels(y)
        ids, pair_ids = self.preprocessor.tokenize(x)
        self.check_pairs_fit(pair_ids)

        def make_inputs(rows, length):
            pairs = None if pair_ids is None else pair_ids.take(rows)
            return self.preprocessor.pack(ids.take(rows), pairs, length=length)

        return self.bucketed(
            self.preprocessor.packed_lengths(ids, pair_ids),
            make_inputs,
            labels=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            shuffle=shuffle,
            epoch=epoch,
        )

    def check_pairs_fit(self, pair_ids):
        """Raises `ValueError` when pairs came and the backbone tells no two segments apart."""
        if pair_ids is not None and self.backbone.num_segments == 1:
            raise ValueError(
                "Pairs of texts need a backbone with two segments, or with none. Received: a "
                "backbone with num_segments=1. Join the texts yourself, or use another checkpoint."
            )

    def check_has_preprocessor(self):
        """Raises `ValueError` when raw examples came and there is nothing to tokenize them."""
        if self.preprocessor is None:
            raise ValueError(
                f"This {type(self).__name__} has no preprocessor, so it cannot take text. Pass a "
                "`TextPreprocessor` to its constructor, or the dict of arrays of bert_keras.inputs."
            )

    def bucketed(self, lengths, make_inputs, labels=None, **options):
        """Returns `BucketedBatches` with this task's seed and, where it saves compiling, padding.

        Args:
            lengths: int `(num_rows,)`, packed lengths.
            make_inputs: function of rows and padded length, see `BucketedBatches`.
            labels: labels as the loss takes them, or `None`.
            **options: `sample_weight`, `batch_size`, `shuffle`, `epoch`, `buckets`.
        """
        # XLA compiles a last batch of its own size anew, which costs more than rows that weigh 0.
        # In `evaluate` it does not pad: Keras's mean of the losses counts rows, not weights.
        pad_last_batch = keras.backend.backend() != "torch" and (
            labels is None or (options.get("shuffle") and self._ignores_weight_0())
        )
        return BucketedBatches(
            lengths,
            make_inputs,
            labels=labels,
            seed=self._shuffle_seed or 0,
            window=self._sort_window if options.get("shuffle") else None,
            pad_last_batch=pad_last_batch,
            # The same lengths whatever the data, so that `evaluate` compiles no new ones.
            **{"buckets": self.buckets(), **options},
        )

    def buckets(self):
        """Returns the lengths that batches are padded to: finer where they need no compilation."""
        longest = self.preprocessor.max_length
        is_torch = keras.backend.backend() == "torch"
        return length_buckets(longest, step=4, first=4) if is_torch else length_buckets(longest)

    def _has_own(self, name):
        given = self._compiled_with[name]
        return isinstance(given, str) and given == "auto"

    def _ignores_weight_0(self):
        return self._has_own("loss") and not self._compiled_with.get("metrics")

    # Files

    def save_assets(self, folder):
        """Writes the tokenizer's vocabulary into a `.keras` file's assets."""
        if self.preprocessor is not None:
            self.preprocessor.save_assets(folder)

    def load_assets(self, folder):
        """Reads the tokenizer's vocabulary from a `.keras` file's assets."""
        if self.preprocessor is not None:
            self.preprocessor.load_assets(folder)
            self._check_vocabulary()

    def get_config(self):
        config = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": dtype_config(self),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": keras.saving.serialize_keras_object(self.preprocessor),
            "frozen": self.frozen,
            **self._lora_config(),
            **quantized_config(self),
        }
        by_hand = self._frozen_by_hand()
        return {**config, "frozen_weights": by_hand} if by_hand else config

    def _frozen_by_hand(self):
        """Returns the paths of weights that do not train and that no argument accounts for."""
        layers = [*self._frozen_layers(), *([] if self.backbone.trainable else [self.backbone])]
        known = {id(weight) for layer in layers for weight in layer.weights}
        known |= {id(weight) for weight in self.backbone.frozen_by_adapters}
        return [
            relative_path(weight)
            for weight in (self.weights if self.trainable else [])
            if not weight.trainable and id(weight) not in known
        ]

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen_weights = set(config.pop("frozen_weights", ()))
        for name in ("backbone", "preprocessor"):
            if isinstance(config.get(name), dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        task = super().from_config(config)
        for weight in task.weights:
            if relative_path(weight) in frozen_weights:
                weight.trainable = False
        return task

    @classmethod
    def from_preset(cls, preset, *, load_weights=True, **kwargs):
        """Returns a task on the backbone and the tokenizer of a preset.

        A preset that holds a head for this task, such as a fine-tuned checkpoint, brings it along
        with its label names; otherwise the head starts at random, which a warning says.

        Args:
            preset: str or path: a registered name, a local folder in this package's, Hugging
                Face's, Google's TensorFlow 1 or KerasHub's layout, `"hf://owner/name"` or
                `"kaggle://owner/model/framework/variation"`.
            load_weights: bool, `False` keeps random initial weights.
            **kwargs: arguments of the task (`num_classes=3`, `preprocessor=None`), of the backbone
                (`attention_dropout=0.0`) and of the preprocessor (`max_length=128`). An argument
                that several of them know, such as `dropout`, goes to each; `attention_dropout` is
                an argument of its own.

        Returns:
            An instance of this class.

        Raises:
            TypeError: none of the constructors knows an argument.
            ValueError: the preset does not exist, is damaged, or does not fit the arguments.

        Example:
        ```python
        classifier = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased", num_classes=3)
        ```
        """
        source = presets.open_preset(preset)
        backbone_class = source.backbone_class(Backbone)
        known = {
            "task": arguments_of(cls) - {"backbone"},
            "backbone": arguments_of(backbone_class),
            "preprocessor": arguments_of(TextPreprocessor) - {"tokenizer"},
        }
        unknown = [name for name in kwargs if not any(name in names for names in known.values())]
        if unknown:
            raise TypeError(
                f"{cls.__name__}.from_preset takes arguments of the task, {sorted(known['task'])}"
                f", of the backbone, {sorted(known['backbone'])}, and of the preprocessor, "
                f"{sorted(known['preprocessor'])}. Received: {unknown}."
            )
        if "num_classes" in known["task"] and kwargs.get("label_names") is not None:
            kwargs.setdefault("num_classes", len(kwargs["label_names"]))
        given = {
            part: {name: value for name, value in kwargs.items() if name in names}
            for part, names in known.items()
        }
        given["backbone"].pop("name", None)
        saved = source.task_arguments(cls.__name__)
        _check_order_of_labels(saved.get("label_names"), kwargs.get("label_names"))
        changed = [
            name
            for name in cls.head_arguments
            if name in kwargs and name in saved and kwargs[name] != saved[name]
        ]
        if "num_classes" in changed:
            saved = {}  # Other classes, another problem.
        backbone = source.backbone(Backbone, **given["backbone"])
        if "preprocessor" not in kwargs:
            given["task"]["preprocessor"] = _preprocessor_of(
                source, cls.__name__, backbone, given["preprocessor"]
            )
        for name in ("name", "frozen_weights"):
            saved.pop(name, None)
        task = cls(backbone, **{**saved, **given["task"]})
        if load_weights:
            source.load_backbone_weights(backbone, task)
        if load_weights and changed:
            warnings.warn(
                f"The preset's head was made for other {changed} than asked for, so the head "
                "starts at random and needs training.",
                stacklevel=2,
            )
        elif load_weights:
            source.load_head_weights(task)
        return task

    def save_to_preset(self, folder):
        """Writes backbone, head, tokenizer and settings into a folder for `from_preset`.

        Of adapters it writes what they make of the kernels, see `without_adapters`.

        Args:
            folder: str or path, made when missing. Files of the same name are replaced, each in
                one step.
        """
        check_not_quantized(self)
        presets.save_task(self, folder)

    def export_to_huggingface(self, folder, dtype=None):
        """Writes a folder that `transformers.AutoModelFor...from_pretrained` loads.

        Args:
            folder: str or path, made when missing. Holds weights with the head, label names, and
                the tokenizer.
            dtype: of the weights in the file: `"float32"`, `"float16"` or `"bfloat16"`, half the
                size; `None` keeps the model's.

        Raises:
            ValueError: the task or its options have no counterpart there, or a weight is too large
                for the dtype.
        """
        check_not_quantized(self)
        presets.export_to_huggingface(self.backbone, folder, task=self, dtype=dtype)


def _check_order_of_labels(saved, asked):
    if saved is None or asked is None or sorted(map(str, saved)) != sorted(map(str, asked)):
        return
    if list(saved) != list(asked):
        raise ValueError(
            "The head that comes with the preset knows its labels in the order "
            f"{list(saved)}. Received label_names={list(asked)}. Keep the preset's order, or use "
            "other names for other labels."
        )


def _preprocessor_of(source, task_name, backbone, arguments):
    config = source.preprocessor_config(task_name)
    if config is not None:
        config = {**config, "config": {**config["config"], **arguments}}
        preprocessor = keras.saving.deserialize_keras_object(config)
        if not isinstance(preprocessor, TextPreprocessor):
            raise ValueError(
                f"The preset's preprocessor must be a TextPreprocessor. Received: "
                f"{type(preprocessor).__name__}."
            )
        preprocessor.load_assets(source.folder)
        return preprocessor
    tokenizer = source.tokenizer()
    longest = min(tokenizer.model_max_length or np.inf, backbone.max_sequence_length)
    return TextPreprocessor(tokenizer, **{"max_length": int(longest), **arguments})


def _check_recipe(recipe, optimizer, has_own_recipe):
    """Raises `ValueError` where an argument of `compile` would not count."""
    if not has_own_recipe:
        defaults = inspect.signature(Task.compile).parameters
        unused = {name: value for name, value in recipe.items() if value != defaults[name].default}
        if unused:
            raise ValueError(
                f"{sorted(unused)} are for optimizer='auto' or 'lamb', which the recipe makes. "
                f"Received: {unused} with optimizer={optimizer!r}. Set them in that optimizer, "
                "such as bert_keras.AdamW, or leave it out."
            )
    if recipe["decay_power"] != 1.0 and recipe["decay"] != "polynomial":
        raise ValueError(
            "`decay_power` is for decay='polynomial'. Received: "
            f"decay_power={recipe['decay_power']} with decay={recipe['decay']!r}."
        )


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
            stacklevel=3,
        )


def _at_most(batch_size, count):
    """Returns the batch size, or for fewer examples the next power of two: few shapes, no waste."""
    return min(batch_size or DEFAULT_BATCH_SIZE, 1 << max(0, count - 1).bit_length())


def _num_batches(x, batch_size):
    """Returns the number of batches of an epoch."""
    if isinstance(x, dict):
        return -(-num_examples(x) // batch_size)
    if isinstance(x, CheckedBatches):
        x = x.batches
    try:
        return len(x)
    except TypeError:
        raise ValueError(
            "The default learning-rate schedule must know how many batches an epoch has, and this "
            f"dataset ({type(x).__name__}) does not say. Pass `steps_per_epoch`, or an optimizer "
            "of your own to `compile`."
        ) from None
