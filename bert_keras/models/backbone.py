"""The base class of all backbones, and the attributes that other code may use."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import keras
from keras import ops

from bert_keras.checks import check_bool, check_int, check_number
from bert_keras.inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS, check_arrays, check_length
from bert_keras.layers.initializer import build_parts
from bert_keras.layers.pooler import Pooler
from bert_keras.models.adapters import LoraMixin
from bert_keras.models.model import BuiltModel, layer_for, settings_of
from bert_keras.signatures import KeepsArguments, check_arguments
from bert_keras.types import Dtype, Inputs, Outputs, Path, Tensor

# Limits above all published encoders, so that a config from an untrusted file cannot exhaust a
# machine.
_SIZES = {
    "vocabulary_size": (1, 2**24),
    "num_layers": (1, 1024),
    "num_heads": (1, 1024),
    "hidden_dim": (1, 2**16),
    "embedding_dim": (1, 2**16),
    "intermediate_dim": (1, 2**18),
    "max_sequence_length": (1, 2**20),
    "num_segments": (0, 1024),
    "local_attention": (1, 2**20),
    "global_attention_every": (1, 1024),
}
_MOST_PARAMETERS = 2**33
# Arguments whose value `None` stands for that of another one.
_FALLBACKS = {
    "attention_dropout": "dropout",
    "embedding_dropout": "dropout",
    "embedding_dim": "hidden_dim",
}


class Backbone(KeepsArguments, LoraMixin, BuiltModel):
    """A family's encoder, from token ids to hidden states. There is one subclass per paper.

    The arguments of a subclass's constructor are attributes, see `KeepsArguments`, and this
    constructor checks them. The subclass then makes the layers `embeddings` and `encoder`; `build`
    adds a `pooler` if `has_pooler` is `True`. A subclass checks the arguments that `_checked` does
    not know, except for bools. Other code uses only the fields below.

    Args:
        name: str, or `None`.
        dtype: a dtype policy or its name.
        trainable: bool.
        **unknown: arguments that no subclass has.

    Raises:
        TypeError: there is an unknown argument.
        ValueError: an argument is out of range.

    Call arguments:
        inputs: dict of ints, see `bert_keras.inputs`: `token_ids` `(batch, seq_len)`, optionally
            `padding_mask` and, if `num_segments` is above 1, `segment_ids` of the same shape.
        return_hidden_states: bool.
        return_attentions: bool; if `True`, the explicit formula replaces fused attention.
        token_vectors: float `(batch, seq_len, embedding_dim)` in place of the token table's rows,
            or `None`; see `BertEmbeddings`.
        training: bool, whether dropout is active.
        first_token_only: bool, whether the last block may leave out all tokens but the first, which
            is faster. It has no effect together with `return_hidden_states` or
            `return_attentions`.

    Returns:
        A dict: `sequence_output` float `(batch, seq_len, hidden_dim)`, with `first_token_only`
        maybe `(batch, 1, hidden_dim)`; with a pooler `pooled_output` float `(batch, hidden_dim)`;
        on request `hidden_states`, a tuple of `num_layers + 1` floats
        `(batch, seq_len, hidden_dim)`, embeddings first, and `attentions`, a tuple of `num_layers`
        floats `(batch, num_heads, seq_len, seq_len)`.

    Attributes:
        input_names: names of the inputs that it takes.
        vocabulary_size: int, rows of the token table.
        hidden_dim: int, width of the hidden states.
        embedding_dim: int, width of the token table, in most families `hidden_dim`.
        num_layers: int.
        token_embedding: the `keras.layers.ReversibleEmbedding`, which tied heads decode with.
        max_sequence_length: int, most tokens of a sequence, or `None` for no limit.
        num_segments: int, number of segments; with 0 or 1, `segment_ids` are not an input.
        padding_id: int, id of the token that is skipped in counting positions, or `None`.
        pooler: the layer that makes `pooled_output`, or `None`.
        stages: list of layers from the bottom: the embeddings, what all blocks share, then each
            block, once even if layers share it. Freezing, layer-wise learning rates and unfreezing
            read it.
        num_blocks: int, number of blocks, which are the last of the stages.
        adaptable: mapping, name -> list of dense layers, one per block, that can have adapters.
            Their `shard_axis` says how a kernel may be split over several devices.
        dropout, activation, layer_norm_epsilon, initializer_range: defaults of the heads.
    """

    # Defaults for families without these arguments.
    num_segments, max_sequence_length, padding_id, causal = 1, None, None, False
    embedding_dim, has_pooler = None, False

    def __init__(
        self,
        *,
        name: str | None = None,
        dtype: Dtype | None = None,
        trainable: bool = True,
        **unknown: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        if unknown:
            check_arguments(unknown, type(self))
        self.pooler = None
        parameters = self.parameters_of_constructor()
        for argument, other in _FALLBACKS.items():
            default = parameters[argument].default if argument in parameters else None
            if default is None and getattr(self, argument, 0) is None:
                setattr(self, argument, getattr(self, other))
        for argument, parameter in parameters.items():
            value = getattr(self, argument)
            if value is not None or parameter.default is not None:
                setattr(self, argument, _checked(argument, value, parameter.default))
        _check_number_of_parameters(self)

    @property
    def input_names(self) -> tuple[str, ...]:
        segments = (SEGMENT_IDS,) if self.num_segments > 1 else ()
        return (TOKEN_IDS, *segments, PADDING_MASK)

    @property
    def token_embedding(self) -> keras.layers.ReversibleEmbedding:
        return self.embeddings.token_embedding

    @property
    def num_blocks(self) -> int:
        return len(set(self.encoder.blocks))

    @property
    def stages(self) -> list[keras.layers.Layer]:
        shared = [layer for layer in self.encoder.shared if layer.weights]
        return [self.embeddings, *shared, *dict.fromkeys(self.encoder.blocks)]

    @property
    def adaptable(self) -> Mapping[str, list[keras.layers.Dense]]:
        blocks = [block.adaptable for block in self.stages[-self.num_blocks :]]
        # Not a dict, in which Keras would find the layers and name them accordingly in files.
        return MappingProxyType({name: [block[name] for block in blocks] for name in blocks[0]})

    def build(self, input_shape=None):
        if self.has_pooler and self.pooler is None:
            self.pooler = layer_for(self, Pooler, "pooler")
        self.output_shape = (None, None, self.hidden_dim)
        build_parts((self.embeddings, self.encoder, self.pooler), self.output_shape)

    def call(
        self,
        inputs: Inputs,
        return_hidden_states: bool = False,
        return_attentions: bool = False,
        token_vectors: Tensor | None = None,
        training: bool | None = None,
        first_token_only: bool = False,
    ) -> Outputs:
        embedded = self.embeddings(
            inputs[TOKEN_IDS],
            segment_ids=inputs.get(SEGMENT_IDS),
            token_vectors=token_vectors,
            training=training,
        )
        options = {"return_attentions": return_attentions, "training": training}
        if first_token_only and not (return_hidden_states or return_attentions):
            options["first_token_only"] = True
        hidden_states, attentions = self.encoder(
            embedded, attention_mask=self.attention_mask(inputs), **options
        )
        hidden_states = hidden_states if return_hidden_states else hidden_states[-1:]
        outputs = {"sequence_output": hidden_states[-1]}
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(hidden_states[-1])
        if return_hidden_states:
            outputs["hidden_states"] = hidden_states
        if return_attentions:
            outputs["attentions"] = attentions
        return outputs

    def attention_mask(self, inputs: Inputs) -> Tensor | None:
        """Returns which keys each query sees: bool, broadcastable to heads, or `None` for all."""
        mask = inputs.get(PADDING_MASK)
        if getattr(mask, "is_full", False):  # See `engine.kernels.input_tensors`.
            mask = None
        if mask is not None:
            # (batch, 1, 1, seq_len): every head and every query sees the same keys. LiteRT cannot
            # slice bools.
            mask = ops.cast(ops.expand_dims(mask, (1, 2)), "bool")
        if not self.causal:
            return mask
        positions = ops.arange(ops.shape(inputs[TOKEN_IDS])[1])
        before = ops.expand_dims(positions, 1) >= ops.expand_dims(positions, (0, 1, 2))
        return before if mask is None else ops.logical_and(mask, before)

    def check_inputs(self, inputs):
        """Raises when a dict of inputs does not fit; tensors must not be too long either."""
        super().check_inputs(inputs)
        longest, shape = self.max_sequence_length, getattr(inputs[TOKEN_IDS], "shape", ())
        # On JAX, tokens without a position would be NaN.
        if longest and shape and isinstance(shape[-1], int) and shape[-1] > longest:
            check_length(shape[-1], longest)

    def check_arrays(self, inputs: Inputs, num_axes: int = 2) -> None:
        """Raises `TypeError` or `ValueError` when NumPy inputs do not fit this backbone's tables.

        Args:
            inputs: dict of integer arrays, see `bert_keras.inputs`.
            num_axes: int, axes of `token_ids`.
        """
        check_arrays(inputs, self, num_axes)

    def get_config(self):
        """Returns the constructor's arguments and which layers are quantized."""
        return {**super().get_config(), **settings_of(self)}

    @classmethod
    def from_preset(cls, preset: Path, load_weights: bool = True, **kwargs: Any) -> Self:
        """Returns a backbone from a registered name, a folder, or a hub address.

        Args:
            preset: str or path: a registered name, a local folder in this package's, Hugging
                Face's, Google's TensorFlow 1 or KerasHub's layout, `"hf://owner/name"` or
                `"kaggle://owner/model/framework/variation"`.
            load_weights: bool, `False` keeps the random initial weights.
            **kwargs: constructor arguments that override the preset's, such as `dropout=0.0`.

        Returns:
            An instance of the preset's family, which is `cls` or a subclass of it.

        Raises:
            ValueError: the preset does not exist, is damaged, or holds another family.

        Example:
        ```python
        backbone = bert_keras.BertBackbone.from_preset("minilm_l6_en_uncased")
        ```
        """
        from bert_keras.presets.presets import load_backbone

        return load_backbone(cls, preset, load_weights, kwargs)


def _checked(name, value, default):
    """Returns the value of an argument; raises `ValueError` if the argument cannot have it."""
    if name in _SIZES:
        return check_int(name, value, *_SIZES[name])
    if name in ("dropout", "attention_dropout", "embedding_dropout"):
        check_number(name, value, below=1.0)
    elif name in ("layer_norm_epsilon", "initializer_range"):
        check_number(name, value)
    elif name.endswith(("rotary_base", "rotary_scale")):
        check_number(name, value, above=0)
    elif isinstance(default, bool):
        check_bool(name, value)
    elif name == "activation" and not (isinstance(value, str) or callable(value)):
        raise ValueError(f"`activation` must be a name or a function. Received: {value!r}.")
    return value


def _check_number_of_parameters(backbone):
    """Raises `ValueError` if a backbone of these sizes needs more memory than any machine has."""
    blocks = backbone.num_layers * (4 * backbone.hidden_dim + 2 * backbone.intermediate_dim)
    rows = backbone.vocabulary_size + (backbone.max_sequence_length or 0) + blocks
    if backbone.hidden_dim * rows > _MOST_PARAMETERS:
        sizes = {name: getattr(backbone, name, None) for name in _SIZES}
        raise ValueError(
            f"The sizes {sizes} make about {backbone.hidden_dim * rows:.1e} parameters; at most "
            f"{_MOST_PARAMETERS:.1e} are allowed. Is the config damaged?"
        )
