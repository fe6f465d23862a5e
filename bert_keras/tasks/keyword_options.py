"""The keyword options of tasks, for type checkers: each group is written once.

`<Task>Options` holds what `<Task>.from_preset` takes: the options of every task, of the
preprocessor and of the preset, and the task's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

import keras

from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.types import (
    Combination,
    Decay,
    DenseOptions,
    Frozen,
    HeadOptions,
    LayerOptions,
    Normalization,
    Objective,
    Pooling,
    PreprocessorOptions,
    ProblemType,
    Projection,
    ScoreActivation,
    VectorSimilarity,
    Verbose,
)


class CompileOptions(TypedDict, total=False):
    """Options of `Task.compile` that the recipe or Keras takes."""

    learning_rate: float | None
    weight_decay: float
    warmup: float
    decay: Decay
    decay_power: float
    layer_decay: float
    head_multiplier: float
    ema_momentum: float | None
    gradient_accumulation_steps: int | None
    metrics: Any
    loss_weights: Any
    run_eagerly: bool
    steps_per_execution: int
    jit_compile: bool | Literal["auto"]
    auto_scale_loss: bool


class AllCompileOptions(CompileOptions, total=False):
    """Options of `compile`, those in its signature included."""

    label_smoothing: float
    weighted_metrics: Any


class FitOptions(TypedDict, total=False):
    """Options of `Task.fit` that Keras takes."""

    verbose: Verbose
    validation_steps: int | None
    validation_freq: int


class RunOptions(TypedDict, total=False):
    """Options of `predict`, and of `evaluate`, that Keras takes."""

    verbose: Verbose
    steps: int | None
    callbacks: Sequence[keras.callbacks.Callback] | None


class EvaluateOptions(RunOptions, total=False):
    """Options of `Task.evaluate` that Keras takes."""

    return_dict: bool


class TaskOptions(LayerOptions, total=False):
    """Options of every task's constructor."""

    lora_rank: int | None
    lora_alpha: float | None
    lora_targets: Sequence[Projection]
    lora_layers: Iterable[int] | None


class PresetOptions(TaskOptions, PreprocessorOptions, total=False):
    """Options of every task's `from_preset`."""

    load_weights: bool
    preprocessor: TextPreprocessor | None
    backbone: dict[str, Any]
    frozen: Frozen | None


class _ClassifierOptions(PresetOptions, total=False):
    """Options that classifiers share."""

    num_classes: int | None
    label_names: Sequence[str] | None
    dropout: float | None


class TextClassifierOptions(_ClassifierOptions, total=False):
    """Options of `TextClassifier.from_preset`."""

    problem_type: ProblemType
    pooling: Pooling | None
    head_options: HeadOptions | None
    temperature: float


class RerankerOptions(PresetOptions, total=False):
    """Options of `Reranker.from_preset`."""

    activation: ScoreActivation
    dropout: float | None
    pooling: Pooling | None
    head_options: HeadOptions | None
    prompts: Mapping[str, str] | None
    default_prompt: str | None


class FewShotClassifierOptions(PresetOptions, total=False):
    """Options of `FewShotClassifier.from_preset`."""

    num_classes: int | None
    label_names: Sequence[str] | None
    pooling: Pooling
    temperature: float


class LongTextClassifierOptions(_ClassifierOptions, total=False):
    """Options of `LongTextClassifier.from_preset`."""

    problem_type: ProblemType
    pooling: Pooling | None
    num_windows: int
    stride: int | None
    combine: Combination
    temperature: float


class TokenClassifierOptions(_ClassifierOptions, total=False):
    """Options of `TokenClassifier.from_preset`."""

    crf: bool
    stride: int | None


class QuestionAnsweringOptions(PresetOptions, total=False):
    """Options of `QuestionAnswering.from_preset`."""

    stride: int
    max_question_length: int
    max_answer_length: int
    normalization: Normalization
    no_answer_threshold: float | None
    dropout: float | None
    mask_padding: bool


class MultipleChoiceOptions(PresetOptions, total=False):
    """Options of `MultipleChoice.from_preset`."""

    dropout: float | None
    pooling: Pooling | None
    head_options: HeadOptions | None


class TextEmbedderOptions(PresetOptions, total=False):
    """Options of `TextEmbedder.from_preset`."""

    pooling: Pooling
    normalize: bool
    projection: DenseOptions | None
    prompts: Mapping[str, str] | None
    default_prompt: str | None
    include_prompt: bool
    similarity: VectorSimilarity
    objective: Objective


class SparseTextEmbedderOptions(PresetOptions, total=False):
    """Options of `SparseTextEmbedder.from_preset`."""

    log_twice: bool
    regularization: tuple[float, float]
    ramp_share: float
    prompts: Mapping[str, str] | None
    default_prompt: str | None
    objective: Objective
    head_options: dict[str, Any] | None
    query_weights: Mapping[str, float] | None


class MultiVectorEmbedderOptions(PresetOptions, total=False):
    """Options of `MultiVectorEmbedder.from_preset`."""

    dim: int
    query_marker: str
    document_marker: str
    query_length: int | None
    document_length: int | None
    query_expansion: int | None
    attend_to_expansion: bool
    skipped_tokens: Sequence[str] | None
    objective: Objective


class MaskedLMOptions(PresetOptions, total=False):
    """Options of `MaskedLM.from_preset`."""

    masking: Masking | dict[str, Any] | None
    head_options: dict[str, Any] | None
