"""The types that the signatures of the package share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from numpy.typing import NDArray

# A backend's tensor, or what Keras makes one of.
Tensor: TypeAlias = Any
Array: TypeAlias = NDArray[Any]
Path: TypeAlias = str | PathLike[str]
# A dtype policy or its name.
Dtype: TypeAlias = str | Any
Activation: TypeAlias = str | Callable[[Tensor], Tensor]

# `token_ids`, `segment_ids`, `padding_mask`, see `bert_keras.inputs`.
Inputs: TypeAlias = Mapping[str, Any]
# `sequence_output`, `pooled_output`, `hidden_states`, `attentions`, see `Backbone`.
Outputs: TypeAlias = dict[str, Any]


class Indexable(Protocol):
    """Data with a length and rows by number, such as a `PyDataset` or a table of pyarrow."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...


class AsArray(Protocol):
    """Anything that NumPy can convert to an array."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


# A list, array or column of str; or a tuple of two such for pairs, or a table.
Texts: TypeAlias = Iterable[Any] | Indexable
OneText: TypeAlias = str | tuple[str, str]
# What `fit` takes: `Texts`, `Inputs`, a `PyDataset`, `tf.data`, a `DataLoader`, or a generator.
Data: TypeAlias = Iterable[Any] | Indexable | Inputs
# A task with several outputs takes a mapping from their names.
Labels: TypeAlias = Iterable[Any] | Indexable | Mapping[str, Any]
Weights: TypeAlias = Iterable[float] | Tensor

ProblemType: TypeAlias = Literal["single_label", "multi_label", "regression"]
Pooling: TypeAlias = Literal["pooler", "cls", "mean", "max"]
Frozen: TypeAlias = Literal["embeddings", "backbone"] | int
Projection: TypeAlias = (
    Literal["query", "key", "value", "attention_output", "intermediate", "feed_forward_output"]
    | str
)
Truncation: TypeAlias = Literal[
    "longest_first", "only_first", "only_second", "head", "tail", "head_tail"
]
LrSchedule: TypeAlias = Literal["linear", "cosine", "constant"]
ScoreActivation: TypeAlias = Literal["sigmoid", "linear", "tanh"]
Verbose: TypeAlias = Literal["auto"] | int
Combination: TypeAlias = Literal["mean", "max"]
Objective: TypeAlias = Literal["ranking", "similarity", "triplet", "distillation", "vectors"]
Similarity: TypeAlias = Literal["cosine", "dot", "maxsim"]
VectorSimilarity: TypeAlias = Literal["cosine", "dot", "euclidean", "manhattan"]
# The least probability of a label that counts: one for all labels, or one for each.
Threshold: TypeAlias = float | Sequence[float] | Mapping[str, float]


# Keyword options that many constructors pass on to Keras.


class NameOptions(TypedDict, total=False):
    """What every layer and model takes."""

    name: str | None
    trainable: bool


class LayerOptions(NameOptions, total=False):
    """What every layer and model of this package passes on to Keras."""

    dtype: Dtype | None


class TaskOptions(LayerOptions, total=False):
    """Options of every task's constructor, see `Task`."""

    frozen: Frozen | None
    lora_rank: int | None
    lora_alpha: float | None
    lora_targets: Sequence[Projection]
    lora_layers: Iterable[int] | None


class EmbedderOptions(TaskOptions, total=False):
    """Options of every embedder of whole texts, see `TextEmbedder`."""

    objective: Objective
    prompts: Mapping[str, str] | None
    default_prompt: str | None


class PredictOptions(TypedDict, total=False):
    """How answers are computed: 32 rows at once, without a progress bar, unless set otherwise."""

    batch_size: int | None
    verbose: Verbose


class AnswerOptions(PredictOptions, total=False):
    """How questions are answered, see `QuestionAnswering.answer`."""

    max_answer_length: int | None
    no_answer: bool | None


class HeadOptions(TypedDict, total=False):
    """Settings of a classifier's head, see `SequenceHead`."""

    hidden_activation: str | None
    dropout_first: bool
    norm: bool


class DenseOptions(TypedDict, total=False):
    """A dense layer after the pooling of an embedder, see `TextEmbedder`."""

    units: int
    activation: str
    use_bias: bool


class Hit(TypedDict):
    """A text found for a query, see `TextEmbedder.semantic_search` and `Reranker.rank`."""

    index: int
    score: float
    # Not there where documents are vectors.
    text: str
