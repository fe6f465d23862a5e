"""The one base class of all tasks: a backbone, a head and a preprocessor that train together."""

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, overload

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import check_int
from bert_keras.models.adapters import DEFAULT_TARGETS
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import BuiltModel, settings_of
from bert_keras.preprocessing.batching import BucketedBatches
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks import compatibility as parts
from bert_keras.tasks import freezing
from bert_keras.tasks import task_data as data
from bert_keras.tasks.cached_features import has_features, outputs_of
from bert_keras.tasks.encoded_examples import Examples
from bert_keras.tasks.from_preset import make_task
from bert_keras.tasks.lora import LORA_ARGUMENTS, Lora
from bert_keras.tasks.user_columns import is_texts, split_off_end
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.training.averages import averages_in_place
from bert_keras.training.recipe import Recipe
from bert_keras.types import (
    Data,
    Frozen,
    Inputs,
    Labels,
    Outputs,
    Path,
    Projection,
    Verbose,
    Weights,
)


class Task(BuiltModel):
    """A model that `fit` trains from raw text: backbone, head and preprocessor.

    A subclass makes `self.head`, says which loss and metrics are its own (`default_loss`,
    `default_metrics`), how labels look (`encode_labels`), which examples its texts make
    (`raw_examples`), and answers as a person would read it.

    `fit`, `evaluate` and `predict` take

    - raw text, when the task has a preprocessor: a list, NumPy array or column of str, a tuple of
      two such columns for text pairs, or a table with one column of str, or with the preprocessor's
      `text_columns`. Batches are padded to few different lengths, and hold texts of like length, so
      that short ones do not pay for long ones;
    - datasets whose batches are texts, or tuples that begin with them: a `keras.utils.PyDataset`, a
      generator, a `tf.data.Dataset`, or a torch `DataLoader`. They are tokenized on
      the host, on each backend;
    - ready inputs: the dict of arrays of `bert_keras.inputs`, a `keras.utils.PyDataset`, a
      `tf.data.Dataset`, a torch `DataLoader`. Arrays are checked before the first step, batches
      each before its own; only names and lengths are of those that processes of a `PyDataset` make,
      of a dataset that does not know its length, and with TensorFlow of a `tf.data.Dataset`.

    A task is compiled when it is made. The defaults are BERT's recipe: AdamW with weight decay on
    kernels only, gradients clipped to norm 1, the learning rate rising over the first tenth of the
    steps and falling linearly to 0. With that default optimizer each call of `fit` is one training
    run of its own, with a fresh optimizer and schedule; `initial_epoch` above 0 continues the run.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        frozen: what does not train: `None`, `"embeddings"`, `"backbone"`, or an int `n` for the
            embeddings and the first `n` encoder layers, of which one that is shared counts once. A
            frozen backbone runs without dropout.
            Other tasks on the same backbone are not concerned.
        lora_rank: int, or `None`. With it two small matrices of this rank beside some kernels of
            the encoder train, and the head, but nothing else of the backbone (LoRA, see
            `AdaptableDense`). `frozen` must then be `None`; dropout stays as it is. It takes
            learning rates about ten times as high, such as 5e-4. Weight decay acts on both
            matrices, and so draws the kernels back to where they began.
        lora_alpha: float, the adapters count `lora_alpha / lora_rank` times; `None` for once.
        lora_targets: list of names out of the backbone's `adaptable`: `"query"` and `"value"` as in
            the paper, `"key"`, `"attention_output"`, `"intermediate"`, `"feed_forward_output"`.
        lora_layers: numbers of the encoder layers that are adapted, such as `range(6, 12)`, or
            `None` for all.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.
    """

    # Arguments whose change makes a preset's head useless.
    head_arguments = ()
    # Class of a task whose preset holds this head too -> our prefix of paths and that preset's.
    takes_head_of = types.MappingProxyType({})
    # Roles of tokens that a tokenizer must have beside those that all have.
    needed_roles = ()
    # Whether raw examples need labels to train on.
    needs_labels = True
    # Whether each example has one class, so that `fit` can weigh it by that.
    has_classes = True
    # Whether a tuple of columns is rows of several texts; else a tuple is a column like a list.
    takes_pairs = True
    # Whether the head can learn from what `encode_features` returns.
    reads_features = False

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        frozen: Frozen | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        lora_targets: Sequence[Projection] = DEFAULT_TARGETS,
        lora_layers: Iterable[int] | None = None,
        **kwargs,
    ) -> None:
        parts.check_backbone(backbone, type(self).__name__)
        kwargs.setdefault("dtype", backbone.dtype_policy)
        super().__init__(**kwargs)
        self.backbone = backbone
        self.preprocessor = parts.fitting(preprocessor, backbone, self.needed_roles)
        self.frozen = freezing.check_frozen(frozen, len(backbone.stages) - 1)
        self._lora = Lora(self, lora_rank, lora_alpha, lora_targets, lora_layers)

    def build(self, input_shape=None):
        if self.reads_pooled_output:
            parts.check_has_pooler(self)
        if not self.head.built:
            self.head.build((None, self.backbone.hidden_dim))
        # Last, so that a constructor that raises leaves the backbone as it was.
        self._lora.add()

    @property
    def input_names(self):
        """Names of the inputs that this task knows."""
        return self.backbone.input_names

    def check_arrays(self, inputs: Inputs) -> None:
        """Raises when NumPy inputs do not fit the backbone, see `Backbone.check_arrays`."""
        self.backbone.check_arrays(inputs, num_axes=self.num_input_axes)

    def check_inputs(self, inputs):
        """Raises when a dict of inputs does not fit; the vectors of `encode_features` do."""
        if not has_features(inputs):
            super().check_inputs(inputs)
            parts.check_length(self.backbone, inputs)

    def backbone_outputs(
        self, inputs: Inputs, training: bool | None = None, **options: Any
    ) -> Outputs:
        """Calls the backbone; a frozen one runs as in inference, or has done so already."""
        if has_features(inputs):
            return outputs_of(inputs)
        return self.backbone(inputs, training=training and self.frozen != "backbone", **options)

    # What trains, see `freezing`.

    @property
    def reads_pooled_output(self) -> bool:
        """Whether the task's output depends on the backbone's pooler."""
        return getattr(self, "pooling", None) == "pooler"

    trainable_variables = freezing.trained("trainable_variables")
    non_trainable_variables = freezing.all_but("trainable_variables", of="variables")
    trainable_weights = freezing.trained("trainable_weights")
    non_trainable_weights = freezing.all_but("trainable_weights", of="weights")

    # What a subclass says of itself

    def default_loss(self, label_smoothing: float) -> Any:
        """Returns the loss that `compile(loss="auto")` stands for."""
        raise NotImplementedError(f"{type(self).__name__} must define `default_loss`.")

    def default_metrics(self) -> Any:
        """Returns the weighted metrics that `compile(weighted_metrics="auto")` stands for."""
        return []

    def learning_rate_multipliers(self) -> Sequence[tuple[str, float]]:
        """Returns the multipliers of the default optimizer, see `AdamW`: none."""
        return ()

    def encode_labels(self, labels: Any) -> Any:
        """Returns labels as the array that the loss takes, after checking every one of them."""
        raise NotImplementedError(f"{type(self).__name__} must define `encode_labels`.")

    def is_raw(self, x: Any) -> bool:
        """Whether `x` is what the preprocessor takes: texts, or for some tasks columns of others.

        Args:
            x: anything passed to `fit`, `evaluate` or `predict`.
        """
        return is_texts(x)

    def raw_examples(
        self,
        x: Any,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = False,
    ) -> Examples:
        """Returns the `Examples` of raw texts, tokenized.

        Args:
            x: raw examples, see `is_raw`; columns are lists.
            y: labels as a user gives them, or `None`.
            sample_weight: float `(num_examples,)`, or `None`.
            training: bool, whether labels are wanted.

        Raises:
            TypeError, ValueError: texts or labels do not fit.
        """
        labels = self.encode_labels(y) if training else None
        ids = self.preprocessor.tokenize(x)
        return Examples.of_texts(self.preprocessor, *ids, labels, sample_weight)

    def ready_examples(
        self,
        inputs: Inputs,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = False,
    ) -> Examples:
        """Returns the `Examples` of a dict of NumPy arrays, checked; as `raw_examples` else."""
        self.check_arrays(inputs)
        labels = self.encode_labels(y) if training else None
        return Examples.of_arrays(inputs, labels, sample_weight)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The preprocessor's `Tokenizer`, or `None`."""
        return self.preprocessor and self.preprocessor.tokenizer

    # Examples and batches

    def examples(
        self,
        x: Data,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = True,
    ) -> Examples:
        """Returns the `Examples` of texts or of ready inputs, with everything checked.

        Args:
            x: texts, or a dict of arrays, see the class; `Examples` come back as they are.
            y: labels, or `None` where there are none.
            sample_weight: float `(num_examples,)`, or `None`.
            training: bool, whether they are to train or to evaluate on, with labels.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit, or there is no preprocessor.
        """
        return data.examples_of(self, x, y, sample_weight, training)

    def batches(
        self,
        examples: Examples,
        batch_size: int | None = None,
        shuffle: bool = False,
        epoch: int = 0,
    ) -> BucketedBatches:
        """Returns batches of rows of like length, as `evaluate` reads them of `Examples`.

        So does `fit`, but that it may use fewer lengths on JAX.

        Args:
            examples: see `examples`.
            batch_size: int, 32 by default.
            shuffle: bool, whether each epoch has an order of its own.
            epoch: int, number of the first epoch.
        """
        return data.batches_of(self, examples, batch_size, shuffle, epoch)

    def ignores_weight_0(self) -> bool:
        """Whether rows that weigh 0 count neither in the loss nor in the metrics."""
        return self.recipe.ignores_weight_0

    def check_class_weight(self, class_weight: Any, x: Any) -> None:
        """Raises `ValueError` where `fit(x, class_weight=...)` makes no sense for this task."""
        parts.check_has_classes(self)

    # Training

    def compile(
        self,
        optimizer: Literal["auto", "lamb"] | str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        label_smoothing: float = 0.0,
        weighted_metrics: Any = "auto",
        **kwargs,
    ) -> None:
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
            weighted_metrics: `"auto"` for the task's own, or a list of Keras metrics; for several
                outputs a dict of such lists.
            **kwargs: `metrics`, `jit_compile`, `run_eagerly`, `steps_per_execution`, see
                `keras.Model.compile`.

        Raises:
            ValueError: an argument is outside its range, or would not count.
        """
        self.recipe = Recipe(optimizer, loss, label_smoothing, weighted_metrics, **kwargs)
        self.compile_with(self.recipe.make_optimizer(self) if self.recipe.is_own else optimizer)

    def compile_with(self, optimizer: Any) -> None:
        """Compiles with another optimizer and all else as `compile` was told."""
        super().compile(optimizer=optimizer, **self.recipe.arguments(self))

    def get_compile_config(self) -> dict[str, Any]:
        """Returns what `compile_from_config` needs; the backend's own choices are left out."""
        return self.recipe.get_config(self)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` says, with the optimizer's state ready to be loaded."""
        self.recipe, optimizer = Recipe.from_config(config)
        self.compile_with(optimizer)
        # Before the first `fit` a file holds no state, and what is not built waits for none.
        if config["has_optimizer_state"]:
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        epochs: int = 1,
        *,
        validation_data: Any = None,
        validation_split: float = 0.0,
        sample_weight: Weights | None = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_batch_size: int | None = None,
        sort_window: int | None = None,
        class_weight: Mapping[int, float] | Literal["balanced"] | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **kwargs,
    ) -> keras.callbacks.History:
        """Trains, from raw text or from ready inputs, like `keras.Model.fit`.

        Args:
            x: texts, or ready inputs, see the class; or what `encode_features` returned.
            y: labels; `None` for datasets that yield them.
            batch_size: int, 32 by default.
            epochs: int. Of few epochs JAX compiles fewer lengths, and pads more, see
                `buckets_worth_compiling`.
            validation_data: `(x, y)`, `(x, y, sample_weight)`, or a dataset.
            validation_split: float, share of the examples, taken from the end, to validate on.
            sample_weight: float, `(num_examples,)`.
            shuffle: bool, whether texts or arrays are shuffled before each epoch. Without it,
                batches of texts come the longest first, in each epoch alike.
            initial_epoch: int, above 0 to continue a run with its optimizer, its order of texts and
                its dropout: on the same backend bit for bit, also from a `.keras` file that was
                saved last at the end of an epoch. (With `ema_momentum`, `fit` ends with the
                averages as weights; only a file saved within it, by a callback, has those that were
                averaged too.)
                Where `epochs` is beyond the end of that run's schedule, the schedule is stretched
                to the new end.
            steps_per_epoch: int, needed with the default recipe for datasets without a length.
            validation_batch_size: int, `batch_size` by default.
            sort_window: int, how many batches of texts are sorted by length together. 1 keeps
                batches random; more need less padding, and may cost accuracy where labels go with
                lengths. By default as many as `BucketedBatches` takes for an epoch of this size, or
                those of the run that is continued.
            class_weight: dict from a class, by number or name, to its weight, 1 if left out, or
                `"balanced"`: all classes together weigh the same.
            callbacks: list of `keras.callbacks.Callback`.
            **kwargs: `verbose`, `validation_steps`, `validation_freq`, see `keras.Model.fit`.

        Returns:
            A `keras.callbacks.History`. Its `loss` is Keras's mean over batches; the metrics are
            means over examples by weight.

        Raises:
            TypeError, ValueError: texts, inputs or labels do not fit; before any compute.
        """
        parts.check_sort_window(self, sort_window, x, shuffle)
        check_int("epochs", epochs, 0)
        planned = epochs if steps_per_epoch is None else None
        self.recipe.begin(initial_epoch, sort_window, planned)
        if validation_split and validation_data is None and data.are_examples(self, x):
            columns = (*data.columns_of(self, x, y), sample_weight)
            (x, y, sample_weight), validation_data = split_off_end(*columns, validation_split)
        given = data.data_of(
            self, x, y, sample_weight, batch_size, class_weight, shuffle, initial_epoch
        )
        size = validation_batch_size or batch_size
        given["validation_data"] = data.validation_data_of(self, validation_data, size)
        self.recipe.schedule(self, given["x"], steps_per_epoch, epochs, initial_epoch)
        callbacks = self.recipe.callbacks(self, callbacks, steps_per_epoch is not None)
        given |= {"epochs": epochs, "initial_epoch": initial_epoch, "callbacks": callbacks}
        with self.recipe.running():
            return super().fit(steps_per_epoch=steps_per_epoch, **given, **kwargs)

    def train_step(self, *args):
        """Like `keras.Model.train_step`, without gradients of weights that stay as they are."""
        with freezing.without_gradients(freezing.idle_weights(self)):
            return super().train_step(*args)

    @overload
    def evaluate(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        sample_weight: Weights | None = None,
        *,
        return_dict: Literal[True],
        verbose: Verbose = ...,
        steps: int | None = ...,
        callbacks: Sequence[keras.callbacks.Callback] | None = ...,
    ) -> dict[str, float]: ...
    @overload
    def evaluate(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        sample_weight: Weights | None = None,
        *,
        return_dict: bool = ...,
        verbose: Verbose = ...,
        steps: int | None = ...,
        callbacks: Sequence[keras.callbacks.Callback] | None = ...,
    ) -> Any: ...
    def evaluate(
        self,
        x: Data | None = None,
        y: Labels | None = None,
        batch_size: int | None = None,
        sample_weight: Weights | None = None,
        **kwargs,
    ) -> dict[str, float] | Any:
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
        given = data.data_of(self, x, y, sample_weight, batch_size)
        with averages_in_place(self, self.recipe.is_running):
            return super().evaluate(**given, **kwargs)

    def predict(self, x: Data, batch_size: int | None = None, **kwargs) -> Any:
        """Returns the task's raw outputs, from raw text or from ready inputs, in their order.

        Texts are sorted by length for the computation and put back into their order.

        Args:
            x: texts, or ready inputs, see the class.
            batch_size: int, 32 by default; on PyTorch on the CPU the default for texts is as many
                as have 2,048 tokens together, padding included.
            **kwargs: `verbose`, `callbacks`, see `keras.Model.predict`; for a dataset `steps`.

        Returns:
            NumPy arrays in the structure of the task's output.

        Raises:
            TypeError, ValueError: texts or inputs do not fit; before any compute.
        """
        if not data.are_examples(self, x):
            return super().predict(
                data.checked(self, x, training=False), batch_size=batch_size, **kwargs
            )
        batches = self.examples(x, training=False).for_prediction(batch_size, self)
        return keras.tree.map_structure(batches.restore_order, super().predict(batches, **kwargs))

    def predict_rows(
        self, examples: Examples, batch_size: int | None = None, verbose: Verbose = 0
    ) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Yields for each batch of `Examples` the numbers of its rows and their outputs."""
        batches = examples.for_prediction(batch_size, self)
        outputs = self.predict_batches(batches, verbose=verbose)
        for (rows, _), output in zip(batches.batches, outputs, strict=True):
            # Rows that only fill the last batch come behind.
            yield rows, keras.tree.map_structure(lambda x, rows=rows: x[: len(rows)], output)

    def quantize(self, mode=None, config=None, filters=None, **kwargs):
        """Quantizes the weights, see `BuiltModel.quantize`; the optimizer starts anew.

        The old one keeps moments of weights that are gone, in memory and in files.
        """
        super().quantize(mode, config=config, filters=filters, **kwargs)
        self._renew_optimizer()

    def _renew_optimizer(self):
        """Compiles with a new optimizer of the same settings, since the weights are others now."""
        self.compile_with(self.recipe.renewed(self))

    # Adapters

    def merge_lora(self) -> None:
        """Folds the adapters into the kernels: a plain task that computes the same.

        Everything trains again then, as in a task made without `lora_rank`. The optimizer starts
        anew, with the settings it had. Other tasks on the same backbone lose their adapters too;
        compile them again before they train.

        Raises:
            ValueError: the task has no adapters.
        """
        self._lora.merge()
        self._renew_optimizer()

    def without_adapters(self) -> Self:
        """Returns a copy with the adapters merged, or itself where there are none.

        `save_to_preset` and `export_to_huggingface` write this copy, which others can read without
        knowing of adapters. The task itself stays as it is.
        """
        return self._lora.plain_copy()

    def save_adapters(self, path: Path) -> None:
        """Writes the adapters and the head, without the backbone, into one safetensors file.

        The file is small and goes with the backbone that the adapters were trained on, which
        `load_adapters` recognizes. Tensors are called by the paths of the weights; the settings are
        in the file's metadata. To go on with training, use `save`.

        Args:
            path: str or path, in a folder that exists. A file there is replaced in one step.

        Raises:
            ValueError: the task has no adapters.
        """
        self._lora.save(path)

    def load_adapters(self, path: Path) -> None:
        """Reads the adapters and the head that `save_adapters` wrote.

        Args:
            path: str or path of the file.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or of another kind, or its settings or shapes are not
                those of this task. No weight was changed.
        """
        self._lora.load(path)

    # Files

    def save_assets(self, folder: Path) -> None:
        """Writes the tokenizer into a `.keras` file's assets."""
        if self.preprocessor is not None:
            self.preprocessor.save_assets(folder)

    def load_assets(self, folder: Path) -> None:
        """Reads the tokenizer from a `.keras` file's assets."""
        if self.preprocessor is not None:
            self.preprocessor.load_assets(folder)
            parts.check_tokenizer(self.preprocessor.tokenizer, self.backbone, self.needed_roles)

    def get_config(self):
        by_hand = freezing.frozen_by_hand(self)
        return {
            **super().get_config(),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": keras.saving.serialize_keras_object(self.preprocessor),
            **settings_of(self, but=("backbone", "preprocessor", *LORA_ARGUMENTS)),
            **self._lora.get_config(),
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

        A preset that holds a head for this task, such as a fine-tuned checkpoint, brings it along
        with its label names; otherwise the head starts at random, which a warning says.

        Args:
            preset: str or path: a registered name, a local folder in this package's, Hugging
                Face's, Google's TensorFlow 1 or KerasHub's layout, `"hf://owner/name"` or
                `"kaggle://owner/model/framework/variation"`.
            load_weights: bool, `False` keeps random initial weights.
            **kwargs: arguments of the task (`num_classes=3`, `preprocessor=None`) and of the
                preprocessor (`max_length=128`); `dtype`, of the backbone too; and `backbone`, a
                dict of what the backbone is to have other than the checkpoint says, such as
                `{"dropout": 0.0, "attention_dropout": 0.0}`: `dropout` alone is the head's.

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
        return make_task(cls, preset, load_weights, kwargs)
