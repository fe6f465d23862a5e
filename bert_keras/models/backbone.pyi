from collections.abc import Mapping
from typing import Any, Self

import keras

from bert_keras._types import Activation, Dtype, Inputs, Outputs, Path, Tensor
from bert_keras.layers.encoder import Encoder
from bert_keras.models.adapters import Adaptable
from bert_keras.models.model import BuiltModel

class Backbone(Adaptable, BuiltModel):
    vocabulary_size: int
    num_layers: int
    num_heads: int
    hidden_dim: int
    embedding_dim: int
    intermediate_dim: int
    dropout: float
    attention_dropout: float
    activation: Activation
    layer_norm_epsilon: float
    initializer_range: float
    max_sequence_length: int | None
    num_segments: int
    padding_id: int | None
    embeddings: keras.layers.Layer
    encoder: Encoder
    pooler: keras.layers.Layer | None
    def __init__(
        self,
        *,
        name: str | None = None,
        dtype: Dtype | None = None,
        trainable: bool = True,
        **arguments: Any,
    ) -> None: ...
    def __call__(
        self,
        inputs: Inputs,
        return_hidden_states: bool = False,
        return_attentions: bool = False,
        token_vectors: Tensor | None = None,
        training: bool | None = None,
    ) -> Outputs: ...
    # A backbone of the preset's family, with its constructor's arguments.
    @classmethod
    def from_preset(
        cls,
        preset: Path,
        load_weights: bool = True,
        *,
        dropout: float = ...,
        attention_dropout: float | None = ...,
        activation: str = ...,
        layer_norm_epsilon: float = ...,
        max_sequence_length: int = ...,
        initializer_range: float = ...,
        remat: bool = ...,
        name: str | None = ...,
        dtype: Dtype | None = ...,
        trainable: bool = ...,
        **kwargs: Any,
    ) -> Self: ...
    @property
    def input_names(self) -> tuple[str, ...]: ...
    @property
    def token_embedding(self) -> keras.layers.ReversibleEmbedding: ...
    @property
    def stages(self) -> list[keras.layers.Layer]: ...
    @property
    def adaptable(self) -> Mapping[str, list[keras.layers.Dense]]: ...
    def attention_mask(self, inputs: Inputs) -> Tensor | None: ...
    def check_arrays(self, inputs: Inputs, num_axes: int = 2) -> None: ...

def own_arguments(settings: dict[str, Any]) -> dict[str, Any]: ...
