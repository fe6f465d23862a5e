"""The one base class of all tasks: a backbone, a head and a preprocessor that train together."""

import copy
import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Never, Self, Unpack

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.answers.answerer import Answerer
from bert_keras.checks import (
    as_array,
    as_str,
    check_has_labels,
    check_int,
    check_not_empty,
    is_table,
    refuse_options,
)
from bert_keras.engine.jax_compilation_cache import COMPILES_SHAPES
from bert_keras.engine.prediction import resolve_verbose, with_progress
from bert_keras.engine.train_step import is_distributed
from bert_keras.inputs import TOKEN_IDS, check_keys
from bert_keras.layers.initializer import build_parts
from bert_keras.migration_hints import NotHere
from bert_keras.models.adapters import DEFAULT_TARGETS
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import BuiltModel, settings_of
from bert_keras.preprocessing.batching import (
    COMPILE_COST,
    DEFAULT_BATCH_SIZE,
    BucketedBatches,
    as_one_batch,
    batches_in_order,
    choose_bucket_lengths,
    prediction_batches,
)
from bert_keras.preprocessing.collate import ReadyRows, Rows, TextRows
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.signatures import check_arguments, parameters_of
from bert_keras.tasks import freezing, validation
from bert_keras.tasks.dataset_adapters import IterableBatches, adapt, as_numpy, shard_batches
from bert_keras.tasks.encoded_labels import (
    class_weight_by_index,
    class_weighted,
    learn_label_names,
    token_weights,
)
from bert_keras.tasks.loading import load_task
from bert_keras.tasks.lora import LORA_ARGUMENTS, AdaptedTask
from bert_keras.tasks.user_columns import (
    Columns,
    as_validation_columns,
    check_bucket_window,
    check_labels_and_weights,
    first_examples,
    normalize_columns,
    num_examples,
    split_off_end,
)
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.training.averages import swap_ema_weights
from bert_keras.training.recipe import TrainingConfig
from bert_keras.types import (
    Data,
    Frozen,
    Inputs,
    Labels,
    LayerOptions,
    LrSchedule,
    Outputs,
    Path,
    PredictOptions,
    Projection,
    Verbose,
    Weights,
)


class ServingSignature(NamedTuple):
    """A task's answer to a text in a program; a task class sets its own as `serving_signature`.

    Attributes:
        output: str, the name of the model's output.
        labels: tuple of str, the names of its columns, or `None` if they are not classes.
        num_texts: tuple of ints: 1 if single texts have an answer, 2 if pairs do.
    """

    output: str
    labels: tuple | None
    num_texts: tuple


class Task(AdaptedTask, BuiltModel):
    """A model that `fit` trains from raw text: backbone, head and preprocessor.

    A subclass makes its head (`make_head`, or `self.head` in its constructor), defines its loss and
    metrics (`default_loss`, `default_metrics`) and its labels (`encode_labels`), and answers as a
    person would read it. A task whose texts do not each become one row of token ids overrides
    `encode_texts`.

    `fit`, `evaluate` and `predict` take

    - raw text, if the task has a preprocessor: a list, NumPy array or column of str, a tuple of two
      such columns for pairs, or a table with one column of str, or with the preprocessor's
      `text_columns`. Batches hold texts of similar length and are padded to few different lengths,
      so that short texts do not pay for long ones;
    - datasets whose batches are texts, or tuples that begin with texts: a `keras.utils.PyDataset`,
      a generator, a `tf.data.Dataset`, or a torch `DataLoader`. They are tokenized on the host, on
      each backend;
    - ready inputs: the dict of arrays of `bert_keras.inputs`, a `keras.utils.PyDataset`, a
      `tf.data.Dataset`, a torch `DataLoader`. Arrays are checked before the first step, each batch
      before its own step. Only names and lengths are checked for a `PyDataset` with worker
      processes, for a dataset that does not know its length, and on TensorFlow for a
      `tf.data.Dataset`.

    A task is compiled when it is made. The defaults are BERT's recipe: AdamW with weight decay on
    kernels only, gradients clipped to norm 1, a learning rate that rises over the first tenth of
    the steps and falls linearly to 0. If you choose neither epochs nor rate, a short run is made
    longer and faster, see `bert_keras.training.schedules`. With that default
    optimizer each call of `fit` is a training run of its own, with a new optimizer and schedule;
    `initial_epoch` above 0 continues the run.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        frozen: what does not train: `None`, `"embeddings"`, `"backbone"`, or an int `n` for the
            embeddings and the first `n` encoder layers; a shared layer counts once. A frozen
            backbone runs without dropout. Other tasks on the same backbone are not affected.
        lora_rank: int, or `None`. With a rank, two small matrices of this rank beside some kernels
            of the encoder train, and the head, and nothing else in the backbone (LoRA, see
            `AdaptableDense`). `frozen` must then be `None`; dropout stays as it is. LoRA takes
            learning rates about ten times as high, such as 5e-4. Weight decay acts on both
            matrices, and so draws the kernels back to where they began.
        lora_alpha: float, adapters are multiplied by `lora_alpha / lora_rank`; `None` for 1.
        lora_targets: list of names out of the backbone's `adaptable`: `"query"` and `"value"` as in
            the paper, `"key"`, `"attention_output"`, `"intermediate"`, `"feed_forward_output"`.
        lora_layers: indices of the encoder layers to adapt, such as `range(6, 12)`, or `None` for
            all.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.
    """

    # Arguments that make a preset's head useless when they differ from the preset's.
    head_config_keys = ()
    # Class whose presets also hold this head -> dict from path prefixes here to prefixes there.
    compatible_heads = types.MappingProxyType({})
    # Roles of special tokens that the tokenizer must have, besides those that every tokenizer has.
    required_special_tokens = ()
    # How the task answers, the main answer first.
    answerers: ClassVar[tuple[type[Answerer], ...]] = ()
    max_seq_length = NotHere()
    # The form of raw examples, one of `user_columns.FORMS`.
    form = "texts"
    # Whether a row of ready inputs may hold several texts, `(batch, num_texts, seq_len)`.
    may_have_several_texts = False
    # Whether examples need labels to train on, and what an error says to pass as labels.
    needs_labels, labels_advice = True, ""
    # Whether ready inputs have a label per token, so that padding has weight 0.
    label_per_token = False
    # Whether all losses average by the same weights, so that several batches can make one update.
    losses_share_weights = True
    # Whether each example has one class, so that `fit` can weight it by its class.
    has_classes = True
    # Whether most targets are negative, as in tagging; `fit` then gives a short run more epochs.
    has_imbalanced_targets = False
    # Whether `fit` may choose the number of epochs and the rate, see `training.schedules`.
    is_fine_tuned = True
    # What its labels are, so that Keras's metrics can read them: a `metrics.label_kinds.LabelKind`,
    # or a dict of them by output. `None`: metrics get labels and outputs as they are.
    label_kind = None
    # The multipliers of the default optimizer, see `AdamW`.
    learning_rate_multipliers: Sequence[tuple[str, float]] = ()
    # Whether the head reads no token's vector but the first.
    reads_first_token_only = False
    # Other tasks that this one trains, and weights that it does not train.
    tasks = untrained_variables = ()
    # Whether `fit` is running.
    _is_fitting = False
    # The rows that `fit` and `train_on_batch` read are checked already.
    checks_steps = False

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        frozen: Frozen | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        lora_targets: Sequence[Projection] = DEFAULT_TARGETS,
        lora_layers: Iterable[int] | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        if not isinstance(backbone, Backbone):
            raise TypeError(
                "`backbone` must be a bert_keras backbone, such as `BertBackbone`. Received: "
                f"{type(backbone).__module__}.{type(backbone).__name__}. To load a preset, also "
                f"one of KerasHub's, call `{type(self).__name__}.from_preset`."
            )
        kwargs.setdefault("dtype", backbone.dtype_policy)
        super().__init__(**kwargs)
        self.backbone = backbone
        self.preprocessor = validation.preprocessor_of(
            backbone, preprocessor, self.required_special_tokens
        )
        if frozen not in freezing.FROZEN_PARTS:
            advice = f"It is a number of encoder layers, or one of {freezing.FROZEN_PARTS}."
            check_int("frozen", frozen, 0, backbone.num_blocks, advice)
        self.frozen = frozen
        self._set_lora(lora_rank, lora_alpha, lora_targets, lora_layers)
        self.recipe = TrainingConfig()

    def complete(self):
        """Ends construction, see `BuiltModel`, and compiles with the defaults.

        A subclass whose own `compile` needs arguments is not compiled until it is called.
        """
        self.reads_first_token_only = validation.reads_first_token_only(self)
        super().complete()
        parameters = parameters_of(self.compile)[0].values()
        needs_arguments = any(p.default is p.empty for p in parameters)
        if not (self.compiled or needs_arguments):
            self.compile()

    def build(self, input_shape=None):
        if self.reads_pooled_output and self.backbone.pooler is None:
            advice = "pooling='cls' or 'mean'" if hasattr(self, "pooling") else "MaskedLM"
            raise ValueError(
                f"This {type(self).__name__} needs a backbone with a pooler. Received: "
                f"{type(self.backbone).__name__}, which has none. Use {advice}."
            )
        if not hasattr(self, "head"):
            self.head = self.make_head()
        build_parts([self.head], (None, self.backbone.hidden_dim))
        # Last, so that a constructor that raises leaves the backbone as it was.
        if self._lora[0] is not None:
            self.backbone.add_adapters(*self._lora)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs that this task takes: the backbone's and its own."""
        return (*self.backbone.input_names, *self.token_inputs, *self.further_inputs)

    def check_arrays(self, inputs: Inputs) -> None:
        """Raises when NumPy inputs do not fit the backbone, see `Backbone.check_arrays`."""
        several = self.may_have_several_texts and np.ndim(inputs[TOKEN_IDS]) == 3
        self.backbone.check_arrays(inputs, num_axes=3 if several else self.num_input_axes)

    def backbone_outputs(
        self, inputs: Inputs, training: bool | None = None, **options: Any
    ) -> Outputs:
        """Calls the backbone; a frozen one runs as in inference.

        Args:
            inputs, training: see `keras.Model`.
            **options: see the backbone's `call`; `first_token_only=True` where the head reads no
                other, see `reads_first_token_only`.
        """
        return self.backbone(inputs, training=training and self.frozen != "backbone", **options)

    # What trains

    @property
    def reads_pooled_output(self) -> bool:
        """Whether the task's output depends on the backbone's pooler."""
        return getattr(self, "pooling", None) == "pooler"

    @property
    def excluded_weights(self) -> list[keras.Variable]:
        """The trainable weights that this task does not train; other tasks on the backbone may.

        Those of the frozen part of the backbone, of its pooler if the task does not read it, and of
        `untrained_variables`; for a task made of `tasks`, also those that these do not train. Keras
        would warn about a pooler without a gradient on some backends, and on JAX weight decay would
        shrink it. Layers that all blocks share are frozen along with the first block; otherwise its
        output would change.
        """
        backbone = getattr(self, "backbone", None)
        if backbone is None:  # The constructor has not set it yet.
            return []
        excluded, frozen = [*self.untrained_variables], getattr(self, "frozen", None)
        if frozen == "backbone":
            excluded += backbone.weights
        elif frozen is not None:
            below_blocks = len(backbone.stages) - backbone.num_blocks
            num_stages = 1 if frozen in ("embeddings", 0) else below_blocks + frozen
            for stage in backbone.stages[:num_stages]:
                excluded += stage.weights
        for part in self.tasks:
            excluded += part.excluded_weights
        if backbone.pooler is not None and not self.reads_pooled_output:
            excluded += backbone.pooler.weights
        return excluded

    @property
    def trainable_weights(self) -> list[keras.Variable]:
        """The weights that `fit` changes: Keras's, without the `excluded_weights`."""
        excluded = set(map(id, self.excluded_weights))
        return [weight for weight in super().trainable_weights if id(weight) not in excluded]

    trainable_variables = trainable_weights

    @property
    def non_trainable_weights(self) -> list[keras.Variable]:
        """The weights that `fit` does not change."""
        changed = set(map(id, self.trainable_weights))
        return [weight for weight in self.weights if id(weight) not in changed]

    @property
    def non_trainable_variables(self) -> list[keras.Variable]:
        """The variables that `fit` does not train, states of random numbers among them."""
        changed = set(map(id, self.trainable_variables))
        return [variable for variable in self.variables if id(variable) not in changed]

    # What a subclass defines

    def make_head(self) -> keras.layers.Layer:
        """Returns a new head, not built yet."""
        raise NotImplementedError(f"{type(self).__name__} must define `make_head`.")

    def prepare_head(self, data: Any) -> None:
        """Prepares a new head for the examples with their `labels`, or the dataset, of a run."""

    def default_loss(self, label_smoothing: float) -> Any:
        """Returns the loss of `compile(loss="auto")`."""
        raise NotImplementedError(f"{type(self).__name__} must define `default_loss`.")

    def default_loss_weights(self) -> dict[str, float] | None:
        """Returns the weights of several losses, by name; `None` to weigh them alike."""

    def default_metrics(self) -> Any:
        """Returns the weighted metrics of `compile(weighted_metrics="auto")`."""
        return []

    def encode_texts(
        self,
        x: Any,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = False,
    ) -> Rows:
        """Returns raw examples as rows of token ids: here one row per text, or per pair.

        Args:
            x: raw examples in the task's `form`; columns are lists.
            y: labels as a user gives them, or `None`.
            sample_weight: float `(num_examples,)`, or `None`.
            training: bool, whether to encode labels too.

        Raises:
            TypeError, ValueError: texts or labels do not fit.
        """
        labels = self.encode_labels(y) if training else None
        if not self.answerers or self.answerers[0].encode is Answerer.encode:
            rows = TextRows(self.preprocessor, *self.preprocessor.tokenize(x))
        else:
            rows = self.answerer().encode(x)
        return rows.labelled(labels, sample_weight)

    def encode_labels(self, labels: Any) -> Any:
        """Returns labels as the array that the loss takes, after checking every one of them."""
        raise NotImplementedError(f"{type(self).__name__} must define `encode_labels`.")

    def encode_ready_labels(self, labels: Any, inputs: Inputs) -> Any:
        """Returns the labels of ready inputs, see `encode_labels`, checked against the inputs."""
        return self.encode_labels(labels)

    def check_class_weight(self, class_weight: Any) -> None:
        """Raises `ValueError` if the weights of `fit(class_weight=...)` do not fit this task."""

    def ignores_weight_0(self) -> bool:
        """Whether rows of weight 0 count neither in the loss nor in the metrics."""
        return self.recipe.ignores_weight_0

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The preprocessor's `Tokenizer`, or `None`."""
        return self.preprocessor and self.preprocessor.tokenizer

    # Training

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        learning_rate: float | None = None,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        lr_schedule: LrSchedule = "linear",
        layerwise_lr_decay: float = 1.0,
        head_lr_multiplier: float = 1.0,
        ema_momentum: float | None = None,
        gradient_accumulation_steps: int | None = None,
        label_smoothing: float = 0.0,
        metrics: Any = None,
        weighted_metrics: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training; the defaults of all arguments are BERT's recipe.

        Args:
            optimizer: `"auto"` for `AdamW`; `"lamb"` for `Lamb`, which is for large batches and
                takes other learning rates; or any Keras optimizer. The arguments from
                `learning_rate` to `gradient_accumulation_steps` are for the first two.
            loss: `"auto"` for the task's own, or any Keras loss.
            learning_rate: float, the peak. The paper searches 2e-5, 3e-5, 5e-5. By default 5e-5,
                and more for a short run, see `bert_keras.training.schedules`.
            weight_decay: float, on kernels and embeddings, not on biases and norms.
            warmup: float, fraction of the steps of `fit`; or int, number of steps.
            lr_schedule: `"linear"`, `"cosine"` or `"constant"`, the shape after the warm-up, see
                `WarmupDecay`.
            layerwise_lr_decay: float, above 0 and at most 1: the ratio of each layer's rate to that
                of the layer above it, see `layer_wise_decay`. Sun et al. found 0.95 best.
            head_lr_multiplier: float, the ratio of the rate outside the backbone to
                `learning_rate`.
            ema_momentum: float, such as 0.99, or `None`: keeps exponential averages of the weights,
                which `fit` validates and ends with. To keep those of the best epoch, use
                `BestOnMetric`: Keras's callbacks keep the weights that are being averaged.
            gradient_accumulation_steps: int, or `None`: the number of batches whose mean gradient
                makes one update. Batches count by their weights (examples, tokens, class weights),
                so that the update equals that of one large batch. Two kinds of losses are refused:
                those that compare the rows of a batch see only the rows of each small batch, and
                of several losses with different weights, batches would count the same. An
                optimizer with its own accumulation takes them, with a warning. `warmup` in steps
                counts batches.
            label_smoothing: float from 0 to below 1, for `loss="auto"`.
            weighted_metrics: `"auto"` for the task's own, or a list of Keras metrics; for several
                outputs a dict of such lists.
            metrics: metrics by name or as objects, which get probabilities or classes as they
                expect, see `bert_keras.metrics`.
            **kwargs: `loss_weights`, `jit_compile`, `run_eagerly`, `steps_per_execution`,
                `auto_scale_loss`, see `keras.Model.compile`.

        Raises:
            ValueError: an argument is out of range, or would have no effect.
        """
        recipe = TrainingConfig(
            optimizer,
            loss,
            label_smoothing,
            metrics,
            weighted_metrics,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            warmup=warmup,
            lr_schedule=lr_schedule,
            layerwise_lr_decay=layerwise_lr_decay,
            head_lr_multiplier=head_lr_multiplier,
            ema_momentum=ema_momentum,
            gradient_accumulation_steps=gradient_accumulation_steps,
            **kwargs,
        )
        previous, self.recipe = getattr(self, "recipe", None), recipe
        try:
            self.compile_with(recipe.make_optimizer(self) if recipe.makes_optimizer else optimizer)
        except ValueError:
            self.recipe = previous  # A refused `compile` leaves the task as it was.
            raise

    def compile_with(self, optimizer: Any, keeps_losses: bool = False) -> None:
        """Compiles with another optimizer and the other arguments of the last `compile`.

        Args:
            optimizer: a Keras optimizer.
            keeps_losses: bool, `True` keeps the losses and metrics of the last `compile`, rather
                than make them anew, if no setting of the task has changed since.
        """
        recipe = self.recipe
        settings = list(map(vars(self).get, self.argument_names()))
        before = recipe.task_settings
        # Keras keeps the losses and the metrics where it gets none.
        keeps_losses = keeps_losses and before and all(map(operator.is_, settings, before))
        arguments = recipe.keras_arguments if keeps_losses else recipe.arguments(self)
        super().compile(optimizer=optimizer, **arguments)
        recipe.task_settings = settings

    def get_compile_config(self) -> dict[str, Any]:
        """Returns what `compile_from_config` needs, without the backend's own choices."""
        return self.recipe.get_config(self)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` says, with the optimizer's state ready to be loaded."""
        self.recipe, optimizer = TrainingConfig.from_config(config)
        self.compile_with(optimizer)
        # A file saved before the first `fit` has no state to load.
        if config["has_optimizer_state"]:
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        verbose: Verbose = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | Literal["balanced"] | None = None,
        sample_weight: Weights | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
        *,
        bucket_window: int | None = None,
        **unknown: Never,
    ) -> keras.callbacks.History:
        """Trains, from raw text or from ready inputs, like `keras.Model.fit`.

        Args:
            x: texts, or ready inputs, see the class.
            y: labels; `None` for datasets that yield them.
            batch_size: int, 32 by default.
            epochs: int; by default as many as `bert_keras.training.schedules`
                chooses: 3, or more if the run would have too few steps to learn; 1 for embedders,
                in pre-training, with `steps_per_epoch`, with `"lamb"` or an optimizer of your own,
                and with a constant rate without warm-up. For few epochs JAX compiles fewer lengths,
                and pads more, see `choose_bucket_lengths`.
            validation_data: `(x, y)`, `(x, y, sample_weight)`, or a dataset.
            validation_split: float, share of the examples, taken from the end, to validate on; not
                for a dataset.
            sample_weight: float, `(num_examples,)`.
            shuffle: bool, whether texts or arrays are shuffled before each epoch. Without it, the
                batches of texts are the same in each epoch, the longest first.
            initial_epoch: int, above 0 to continue a run with its optimizer, its order of texts and
                its dropout: on the same backend bit for bit, also from a `.keras` file that was
                saved at the end of an epoch. (With `ema_momentum`, `fit` ends with the averages as
                weights; only a file that a callback saved during `fit` also has the weights that
                were averaged.) If `epochs` is beyond the end of that run's schedule, the schedule
                is stretched to the new end.
            steps_per_epoch: int, needed with the default recipe for datasets without a length.
            validation_batch_size: int, `batch_size` by default.
            bucket_window: int, how many batches of texts are sorted by length together. 1 keeps
                batches random; larger windows need less padding, and may cost accuracy if labels
                correlate with lengths. The default is that of `BucketedBatches` for an epoch of
                this size, or that of the run that is continued.
            class_weight: dict from a class, by number or name, to its weight, 1 if left out; or
                `"balanced"`: every class has the same weight in total.
            callbacks: list of `keras.callbacks.Callback`.
            verbose, validation_steps, validation_freq: see `keras.Model.fit`. If the standard
                output is not a terminal, `verbose="auto"` prints one line per epoch.

        Returns:
            A `keras.callbacks.History`. Its `loss` is Keras's mean over batches; its metrics are
            weighted means over examples.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit; before any compute.
        """
        if unknown:
            check_arguments(unknown, Task.fit)
        if verbose not in (0, 1, 2):
            verbose = resolve_verbose(verbose)
        columns = normalize_columns(self, x, y, sample_weight)
        names = learn_label_names(self, columns.y)
        if bucket_window is not None:
            check_bucket_window(bucket_window, columns, shuffle)
        if validation_split and validation_data is None:
            columns, validation_data = split_off_end(columns, validation_split)
        data, batches, arguments = self._training_data(columns, batch_size, shuffle, class_weight)
        if validation_data is not None:
            held_out = as_validation_columns(self, validation_data)
            size = batch_size if validation_batch_size is None else validation_batch_size
            data_of = self._evaluation_arguments(held_out, size, validation_steps)
            arguments["validation_data"], validation_steps = data_of["x"], data_of["steps"]
        epochs, callbacks, note = self.recipe.begin(
            self, data, batches, epochs, initial_epoch, steps_per_epoch, bucket_window, callbacks
        )
        for line in filter(None, (names, note)):
            if verbose and keras.config.is_interactive_logging_enabled():
                print(line)
        if columns.kind != "batches":
            options = {"epoch": initial_epoch, "num_epochs": self.recipe.num_epochs}
            arguments["x"] = self.make_batches(data, batch_size, shuffle, **options)
        self._is_fitting = True
        try:
            return super().fit(
                **arguments,
                epochs=epochs,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                callbacks=callbacks,
                verbose=verbose,
                validation_steps=validation_steps,
                validation_freq=validation_freq,
            )
        finally:
            self._is_fitting = False

    def _training_data(self, columns, batch_size, shuffle, class_weight):
        """Returns the examples, something as long as an epoch, and arguments of Keras's `fit`."""
        if class_weight is not None:
            class_weight = class_weight_by_index(self, class_weight, columns)
        if columns.kind == "batches":
            data = adapt(self, columns)
            shuffle = shuffle and not isinstance(data, IterableBatches)
            return data, data, {"x": data, "shuffle": shuffle, "class_weight": class_weight}
        data = self.encode_columns(columns)
        if class_weight is not None:
            num_classes = getattr(self, "num_classes", None)
            weights = class_weighted(data.labels, data.sample_weight, class_weight, num_classes)
            data = copy.copy(data).labelled(data.labels, weights)
        check_not_empty(data, "Batches need at least one row")
        size = DEFAULT_BATCH_SIZE if batch_size is None else check_int("batch_size", batch_size)
        # Their batches shuffle themselves, by the seed and the number of the epoch.
        return data, range(0, len(data), size), {"shuffle": False}

    def batch_weights(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """Returns a batch's weights; where each token has a label, those of its tokens.

        Args:
            x: dict of inputs, or another structure, whose weights stay as they are.
            y: labels; those of tokens are `(batch, seq_len, ...)`.
            sample_weight: see `token_weights`.
        """
        has_tokens = isinstance(x, Mapping) and TOKEN_IDS in x and len(getattr(y, "shape", ())) > 1
        if not (self.label_per_token and has_tokens):
            return sample_weight
        return token_weights(x, sample_weight)

    def loss_arguments(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Returns labels, outputs and weights as losses and metrics take them."""
        return y, y_pred, self.batch_weights(x, y, sample_weight)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss, see `keras.Model.compute_loss` and `loss_arguments`."""
        arguments = self.loss_arguments(x, y, y_pred, sample_weight)
        return super().compute_loss(x, *arguments, training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Returns the metrics, see `keras.Model.compute_metrics` and `loss_arguments`."""
        return super().compute_metrics(x, *self.loss_arguments(x, y, y_pred, sample_weight))

    def evaluate(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        verbose: Verbose = "auto",
        sample_weight: Weights | None = None,
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Returns loss and metrics, from raw text or from ready inputs.

        If the optimizer keeps averages of the weights, `fit` evaluates its `validation_data` with
        the averages.

        Args:
            x: texts, or ready inputs, see the class.
            y: labels; `None` for datasets that yield them.
            batch_size: int, 32 by default.
            sample_weight: float, `(num_examples,)`.
            verbose, callbacks, return_dict: see `keras.Model.evaluate`.
            steps: int, batches to evaluate. Those of texts and arrays hold the first examples.
            **kwargs: further arguments that Keras's `fit` passes for validation.

        Returns:
            A float, a list of floats, or with `return_dict=True` a dict of floats by name.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit; before any compute.
        """
        columns = normalize_columns(self, x, y, sample_weight)
        data = self._evaluation_arguments(columns, batch_size, steps)
        with swap_ema_weights(self, self._is_fitting):
            kwargs |= {"verbose": resolve_verbose(verbose), "callbacks": callbacks}
            return super().evaluate(**data, return_dict=return_dict, **kwargs)

    def predict(
        self,
        x: Data,
        batch_size: int | None = None,
        verbose: Verbose = "auto",
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
    ) -> Any:
        """Returns the task's raw outputs, from raw text or from ready inputs, in their order.

        Texts are sorted by length for the computation, and results put back into their order.

        Args:
            x: texts, or ready inputs, see the class.
            batch_size: int, 32 by default. For texts the default is the number of rows that hold
                16,384 tokens on an accelerator, or 2,048 on PyTorch on the CPU, padding included;
                with `callbacks` or a `predict_step` of your own, it is 32; `steps` counts by 32.
            verbose, callbacks: see `keras.Model.predict`.
            steps: int, batches to predict. Those of texts and arrays hold the first examples.

        Returns:
            NumPy arrays in the structure of the task's output.

        Raises:
            TypeError, ValueError: texts or inputs do not fit; before any compute.
        """
        columns = normalize_columns(self, x)
        if columns.kind == "batches":
            dataset = adapt(self, columns, training=False)
            return super().predict(dataset, batch_size, verbose, steps, callbacks)
        columns = first_examples(columns, steps, batch_size)
        rows = self.encode_columns(columns, training=False)
        is_plain = type(rows).collect is Rows.collect
        if is_plain:
            check_not_empty(rows, "`predict` needs at least one row")
        else:
            rule = f"`predict` of {type(self).__name__} takes `callbacks` with ready inputs only"
            advice = "Leave them out, or pass what the preprocessor returns."
            refuse_options(rule, {"callbacks": callbacks or None}, advice)
        if callbacks or (is_plain and validation.overrides(self, "predict_step")):
            batches = batches_in_order(rows, batch_size)
            return super().predict(batches, None, verbose, None, callbacks)
        found = self.predict_rows(rows, batch_size, verbose) if len(rows) else ()
        return rows.collect(found)

    # From what a user passes to batches: columns, rows, batches.

    def encode_columns(self, columns: Columns, training: bool = True) -> Rows:
        """Returns all examples as rows of token ids, with everything checked.

        Args:
            columns: raw examples, or ready inputs, see `normalize_columns`.
            training: bool, `True` to train or to evaluate on them, which needs labels.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit, or there is no preprocessor.
        """
        x, y, sample_weight, kind = columns
        if training and y is None and self.needs_labels:
            check_has_labels(y, type(self).__name__, self.labels_advice)
        if kind == "texts":
            self.check_has_preprocessor()
            sample_weight = check_labels_and_weights(self, x, y, sample_weight)
            return self.encode_texts(x, y, sample_weight, training)
        check_keys(x, self.input_names, self.further_inputs)
        inputs, advice = {}, "Pad them to one length, with 0 in the padding_mask."
        for name, value in x.items():
            inputs[name] = as_array(f"`{name}`", value, advice, keras.ops.convert_to_numpy)
        y = keras.tree.map_structure(as_numpy, y)
        sample_weight = check_labels_and_weights(self, inputs, y, sample_weight)
        self.check_arrays(inputs)
        labels = self.encode_ready_labels(y, inputs) if training else None
        if training and self.label_per_token:
            sample_weight = token_weights(inputs, sample_weight)
        return ReadyRows(inputs).labelled(labels, sample_weight)

    def make_batches(
        self,
        rows: Rows,
        batch_size: int | None = None,
        shuffle: bool = False,
        epoch: int = 0,
        num_epochs: int | None = None,
    ) -> keras.utils.PyDataset:
        """Returns the batches that `fit` or `evaluate` reads, with rows of similar length in each.

        Args:
            rows: see `encode_columns`.
            batch_size: int, 32 by default.
            shuffle: bool, whether each epoch has its own order.
            epoch: int, the number of the first epoch.
            num_epochs: int, epochs that `fit` reads them for, which decide how many lengths are
                worth compiling on JAX; or `None`.
        """
        # For XLA, rows of weight 0 in the last batch cost less than compiling a smaller shape.
        # `evaluate` must not pad: Keras averages the losses of batches by rows, not by weights.
        # A user's own step need not expect weights, or heed them.
        own_step = ("train_step", "compute_loss", "compute_metrics")
        pads = COMPILES_SHAPES and shuffle and self.ignores_weight_0()
        pads = pads and not validation.overrides(self, *own_step)
        window = self.recipe.bucket_window if shuffle else None
        options = {"shuffle": shuffle, "seed": self.recipe.seed or 0, "window": window}
        batches = BucketedBatches(rows, batch_size=batch_size, pad_last_batch=pads, **options)
        cost = num_epochs and rows.buckets is None and COMPILE_COST.get(keras.backend.backend())
        if cost:
            # The lengths are those of epoch 0, so that a continued run keeps them.
            price = cost / (self.backbone.hidden_dim**2 * rows.sequences_per_row)
            lengths = choose_bucket_lengths(batches.batches, batches.buckets, num_epochs, price)
            batches.buckets = lengths
        if cost or epoch:
            batches.epoch = epoch
        return shard_batches(self, batches) if is_distributed(self) else batches

    def _evaluation_arguments(self, columns, batch_size, steps):
        """Returns the arguments of `keras.Model.evaluate` that say on which data, checked."""
        if columns.kind == "batches":
            return {"x": adapt(self, columns), "steps": steps}
        # Not the first batches of all examples: those are the longest ones.
        columns = first_examples(columns, steps, batch_size)
        return {"x": self.make_batches(self.encode_columns(columns), batch_size), "steps": None}

    def check_has_preprocessor(self) -> None:
        """Raises `ValueError` if there is nothing to tokenize texts with."""
        if self.preprocessor is None:
            raise ValueError(
                f"This {type(self).__name__} has no preprocessor, so it cannot take text. "
                "Pass a `TextPreprocessor` to its constructor, or the dict of arrays of "
                "bert_keras.inputs."
            )

    # One batch

    def _one_batch(self, x, y=None, sample_weight=None, training=True):
        """Returns inputs, labels and weights of one batch, checked and encoded as for `fit`."""
        columns = normalize_columns(self, x, y, sample_weight)
        batch = as_one_batch(self.encode_columns(columns, training))
        return keras.utils.unpack_x_y_sample_weight(batch)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the outputs for a dict of arrays or tensors, or for texts.

        Raises:
            ValueError: the task cuts texts, which `predict` puts together again.
        """
        if not isinstance(inputs, dict):
            texts = inputs
            inputs, *_ = self._one_batch(texts, training=False)
            num_texts = num_examples(as_str(texts))
            if num_examples(inputs) != num_texts:
                raise ValueError(
                    f"A {type(self).__name__} is called with texts of one row each. Received: "
                    f"{num_texts} examples, which make {num_examples(inputs)} rows. Use `predict`."
                )
        return super().__call__(inputs, *args, **kwargs)

    def train_on_batch(
        self,
        x: Data,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Like `keras.Model.train_on_batch`, from raw text or from ready inputs."""
        return super().train_on_batch(*self._one_batch(x, y, sample_weight), *args, **kwargs)

    def test_on_batch(
        self,
        x: Data,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Like `keras.Model.test_on_batch`, from raw text or from ready inputs."""
        return super().test_on_batch(*self._one_batch(x, y, sample_weight), *args, **kwargs)

    def predict_on_batch(self, x: Data) -> Any:
        """Like `predict`, in one batch."""
        x, *_, kind = normalize_columns(self, x)
        if kind != "texts":
            return super().predict_on_batch(x)
        return self.predict(x, batch_size=max(1, num_examples(x)), verbose=0)

    def predict_rows(
        self, rows: Rows, batch_size: int | None = None, verbose: Verbose = 0
    ) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Yields for each batch the indices of its rows and their outputs."""
        batches, size = prediction_batches(rows, batch_size)
        # `np.resize` repeats the rows of a batch until there are enough.
        inputs = (rows.inputs(np.resize(x, max(size, len(x))), length) for x, length in batches)
        outputs = self.predict_batches(inputs)
        if verbose:
            outputs = with_progress(outputs, batches, verbose)
        for (indices, _), output in zip(batches, outputs, strict=True):
            # Rows that only fill up the last batch come last.
            first = slice(len(indices))
            yield indices, keras.tree.map_structure(operator.itemgetter(first), output)

    # Answers

    def answer_settings(self) -> dict[str, Any]:
        """Returns the settings that answers depend on, as plain data; see `Answerer`.

        By default, the attributes that the task's `answerers` name.
        """
        settings = {}
        for cls in self.answerers:
            for name in cls.setting_names:
                settings[name] = getattr(self, name)
        return settings

    def answerer(self, method: str | None = None, **options: Any) -> Answerer:
        """Returns what answers by a method of `answerers`, the first by default.

        Raises:
            ValueError: the task has no such answer, or an option does not fit.
        """
        self.check_has_preprocessor()
        for cls in self.answerers or (Answerer,):
            if method is None or cls.method == method:
                return cls(self.answer_settings(), self.preprocessor, **options)
        names = " and ".join(cls.method for cls in self.answerers) or "nothing"
        raise ValueError(f"This {type(self).__name__} answers by {names}. Received: {method}.")

    def ask(
        self,
        method: str,
        *columns: Any,
        batch_size: int | None = None,
        verbose: Verbose = 0,
        **options: Any,
    ) -> Any:
        """Returns the answer to one example, or to columns of examples.

        Args:
            method: str, a method of `answerers`.
            *columns: for each of its fields a str, or a column of str.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.
            **options: options of the answer.

        Raises:
            TypeError, ValueError: texts or options do not fit; before any compute.
        """
        read = functools.partial(self.predict_question, batch_size=batch_size, verbose=verbose)
        if any(map(is_table, columns)):
            columns = [normalize_columns(self, x).x if is_table(x) else x for x in columns]
        return self.answerer(method, **options).ask(read, *columns)

    def check_options(self, options: Mapping[str, Any], method: Callable[..., Any]) -> None:
        """Raises `TypeError` unless a method of this task takes each of the options by name."""
        check_arguments(options, method, PredictOptions.__annotations__)

    def ask_rows(self, method: str, rows: Sequence[Sequence[str]], **options: Any) -> Any:
        """Returns the answers to rows of texts, one text for each field, see `ask`.

        Args:
            method: str, a method of `answerers`.
            rows: list of tuples of str: a text or a pair, question and context, context and
                choices, query and texts.
            **options: see `ask`.
        """
        (cls,) = (cls for cls in self.answerers if cls.method == method)
        return self.ask(method, *cls.columns_of(rows), **options) if rows else []

    def predict_question(
        self, answerer: Answerer, texts: Any, batch_size: int | None = None, verbose: Verbose = 0
    ) -> tuple[Rows, Iterable[Any]]:
        """Returns what an answerer reads as rows, and their outputs.

        A user's own `encode_texts` makes the rows of the answers that are encoded like the first.

        Args:
            answerer: an `Answerer`.
            texts: what its `texts` returned.
            batch_size, verbose: see `ask`.
        """
        has_own_rows = not type(self).encode_texts.__module__.startswith("bert_keras.")
        if has_own_rows and type(answerer).encode is self.answerers[0].encode:
            rows = self.encode_texts(texts)
        else:
            rows = answerer.encode(texts)
        return rows, self.predict_rows(rows, batch_size, verbose)

    def quantize(
        self, mode: Any = None, config: Any = None, filters: Any = None, **kwargs: Any
    ) -> None:
        """Quantizes the weights, see `BuiltModel.quantize`; the optimizer starts anew.

        The old optimizer would keep the moments of weights that no longer exist.
        """
        super().quantize(mode, config=config, filters=filters, **kwargs)
        self.compile_with(self.recipe.fresh_optimizer(self))

    # Files

    def save_assets(self, folder: Path) -> None:
        """Writes the tokenizer into a `.keras` file's assets."""
        if self.preprocessor is not None:
            self.preprocessor.save_assets(folder)

    def load_assets(self, folder: Path) -> None:
        """Reads the tokenizer from a `.keras` file's assets."""
        if self.preprocessor is not None:
            self.preprocessor.load_assets(folder)
            tokenizer = self.preprocessor.tokenizer
            validation.check_tokenizer(tokenizer, self.backbone, self.required_special_tokens)

    def get_config(self):
        by_hand = freezing.frozen_by_hand(self)
        return {
            **super().get_config(),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": keras.saving.serialize_keras_object(self.preprocessor),
            **settings_of(self, exclude=("backbone", "preprocessor", *LORA_ARGUMENTS)),
            **self._lora_config(),
            **({"frozen_weights": by_hand} if by_hand else {}),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        by_hand = config.pop("frozen_weights", ())
        for name in ("backbone", "preprocessor"):
            if isinstance(config.get(name), dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        task = super().from_config(config)
        freezing.freeze_by_hand(task, by_hand)
        return task

    @classmethod
    def from_preset(cls, preset: Path, *, load_weights: bool = True, **kwargs: Any) -> Self:
        """Returns a task on the backbone and the tokenizer of a preset.

        If the preset has a head for this task, as a fine-tuned checkpoint has, the task takes it
        with its label names. Otherwise the head starts at random, with a warning, and takes the
        pooling that the checkpoint was trained with.

        Args:
            preset: str or path: a registered name, a local folder in this package's, Hugging
                Face's, Google's TensorFlow 1 or KerasHub's layout, `"hf://owner/name"` or
                `"kaggle://owner/model/framework/variation"`.
            load_weights: bool, `False` keeps random initial weights.
            **kwargs: arguments of the task (`num_classes=3`, `preprocessor=None`) and of the
                preprocessor (`max_length=128`); `dtype`, which is also the backbone's; and
                `backbone`, a dict of settings of the backbone to change, such as
                `{"dropout": 0.0, "attention_dropout": 0.0}`: `dropout` alone is the head's.

        Returns:
            An instance of this class.

        Raises:
            TypeError: an argument belongs to none of them.
            ValueError: the preset does not exist, is damaged, or does not fit the arguments.

        Example:
        ```python
        classifier = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased", num_classes=3)
        ```
        """
        return load_task(cls, preset, load_weights, kwargs)
