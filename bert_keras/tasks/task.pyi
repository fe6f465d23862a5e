from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, overload

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras._types import (
    Data,
    Decay,
    Dtype,
    Frozen,
    Inputs,
    Labels,
    Outputs,
    Path,
    Projection,
    Truncation,
    Verbose,
    Weights,
)
from bert_keras.models.backbone import Backbone
from bert_keras.models.model import BuiltModel
from bert_keras.preprocessing.batching import BucketedBatches
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.examples import Examples
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.training.recipe import Recipe

class Task(BuiltModel):
    head_arguments: tuple[str, ...]
    takes_head_of: Mapping[str, Mapping[str, str]]
    needed_roles: tuple[str, ...]
    needs_labels: bool
    takes_pairs: bool
    reads_features: bool
    num_input_axes: int
    backbone: Backbone
    preprocessor: TextPreprocessor | None
    frozen: Frozen | None
    head: Any
    recipe: Recipe
    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        frozen: Frozen | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        lora_targets: Sequence[Projection] = ...,
        lora_layers: Iterable[int] | None = None,
        *,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
    ) -> None: ...
    # Further arguments are those of a subclass; each of the package's names its own.
    @classmethod
    def from_preset(
        cls,
        preset: Path,
        *,
        load_weights: bool = True,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
        max_length: int | None = ...,
        truncation: Truncation = ...,
        text_columns: str | Sequence[str] | None = ...,
        unpadded: bool = ...,
        backbone: dict[str, Any] = ...,
        **kwargs: Any,
    ) -> Self: ...
    def compile(
        self,
        optimizer: Literal["auto", "lamb"] | str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        label_smoothing: float = 0.0,
        weighted_metrics: Any = "auto",
        learning_rate: float = ...,
        weight_decay: float = ...,
        warmup: float = ...,
        decay: Decay = ...,
        decay_power: float = ...,
        layer_decay: float = ...,
        head_multiplier: float = ...,
        ema_momentum: float | None = ...,
        gradient_accumulation_steps: int | None = ...,
        metrics: Any = ...,
        loss_weights: Any = ...,
        run_eagerly: bool = ...,
        steps_per_execution: int = ...,
        jit_compile: bool | Literal["auto"] = ...,
        auto_scale_loss: bool = ...,
    ) -> None: ...
    def compile_with(self, optimizer: Any) -> None: ...
    def get_compile_config(self) -> dict[str, Any]: ...
    def compile_from_config(self, config: dict[str, Any]) -> None: ...
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
        verbose: Verbose = ...,
        validation_steps: int | None = ...,
        validation_freq: int = ...,
    ) -> keras.callbacks.History: ...
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
    def predict(  # type: ignore[override]
        self,
        x: Data,
        batch_size: int | None = None,
        *,
        verbose: Verbose = ...,
        steps: int | None = ...,
        callbacks: Sequence[keras.callbacks.Callback] | None = ...,
    ) -> Any: ...
    def predict_rows(
        self, examples: Examples, batch_size: int | None = None, verbose: Verbose = 0
    ) -> Iterator[tuple[NDArray[np.int64], Any]]: ...
    @property
    def tokenizer(self) -> Tokenizer | None: ...
    @property
    def has_classes(self) -> bool: ...
    @property
    def reads_pooled_output(self) -> bool: ...
    def merge_lora(self) -> None: ...
    def without_adapters(self) -> Self: ...
    def save_adapters(self, path: Path) -> None: ...
    def load_adapters(self, path: Path) -> None: ...
    def save_assets(self, folder: Path) -> None: ...
    def load_assets(self, folder: Path) -> None: ...
    # What a task of one's own is made of.
    def backbone_outputs(
        self, inputs: Inputs, training: bool | None = None, **options: Any
    ) -> Outputs: ...
    def check_arrays(self, inputs: Inputs) -> None: ...
    def default_loss(self, label_smoothing: float) -> Any: ...
    def default_metrics(self) -> Any: ...
    def learning_rate_multipliers(self) -> Sequence[tuple[str, float]]: ...
    # As the task's loss takes them: an array, or a dict of arrays.
    def encode_labels(self, labels: Any) -> Any: ...
    def is_raw(self, x: Any) -> bool: ...
    def raw_examples(
        self,
        x: Any,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = False,
    ) -> Examples: ...
    def ready_examples(
        self,
        inputs: Inputs,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = False,
    ) -> Examples: ...
    def examples(
        self,
        x: Data,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        training: bool = True,
    ) -> Examples: ...
    def batches(
        self,
        examples: Examples,
        batch_size: int | None = None,
        shuffle: bool = False,
        epoch: int = 0,
    ) -> BucketedBatches: ...
    def ignores_weight_0(self) -> bool: ...
    def check_class_weight(self, class_weight: Any, x: Any) -> None: ...
