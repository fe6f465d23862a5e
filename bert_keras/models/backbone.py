"""The one base class of all backbones."""

import keras
import numpy as np

from bert_keras import inputs as contract
from bert_keras.models.adapters import Adaptable
from bert_keras.models.model import BuiltModel
from bert_keras.models.quantized import check_not_quantized
from bert_keras.presets import presets

# More than any published encoder has, and less than what would exhaust a machine: a config read
# from a file is data from outside.
_LARGEST = {
    "vocabulary_size": 2**24,
    "num_layers": 1024,
    "num_heads": 1024,
    "hidden_dim": 2**16,
    "intermediate_dim": 2**18,
    "max_sequence_length": 2**20,
    "num_segments": 1024,
}
_MOST_PARAMETERS = 2**33


class Backbone(Adaptable, BuiltModel):
    """A family's encoder: token ids in, hidden states out. Subclasses hold one paper each.

    A subclass sets `input_names`, the inputs it knows, has the attributes `vocabulary_size`,
    `hidden_dim`, `num_layers`, `max_sequence_length` and `num_segments`, and returns the dict that
    `bert_keras.inputs` and each subclass's docstring describe.
    """

    input_names = (contract.TOKEN_IDS, contract.SEGMENT_IDS, contract.PADDING_MASK)

    def check_arrays(self, inputs, num_axes=2):
        """Raises `TypeError` or `ValueError` when NumPy inputs do not fit this backbone's tables.

        Args:
            inputs: dict of integer arrays, see `bert_keras.inputs`.
            num_axes: int, axes of `token_ids`.
        """
        contract.check_arrays(
            inputs,
            vocabulary_size=self.vocabulary_size,
            max_sequence_length=self.max_sequence_length,
            num_segments=self.num_segments,
            num_axes=num_axes,
        )

    @property
    def token_embedding(self):
        """The `keras.layers.ReversibleEmbedding` of the token table; a tied head decodes by it."""
        return self.embeddings.token_embedding

    @property
    def stages(self):
        """List of layers from the bottom: the embeddings, then each block of the encoder."""
        return [self.embeddings, *self.encoder.blocks]

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
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
        source = presets.open_preset(preset)
        backbone = source.backbone(cls, **kwargs)
        if load_weights:
            source.load_backbone_weights(backbone)
        return backbone

    def export_to_huggingface(self, folder, dtype=None):
        """Writes `config.json` and `model.safetensors`, which `transformers.AutoModel` loads.

        Args:
            folder: str or path, made when missing.
            dtype: of the weights in the file: `"float32"`, `"float16"` or `"bfloat16"`, half the
                size; `None` keeps the model's.

        Raises:
            ValueError: the family or the activation has no counterpart there, or a weight is too
                large for the dtype.
        """
        check_not_quantized(self)
        presets.export_to_huggingface(self, folder, dtype=dtype)

    def save_to_preset(self, folder):
        """Writes `config.json` and `model.weights.h5` into `folder`, which is made when missing.

        Args:
            folder: str or path. Files of the same name are replaced, all or on an error none.
        """
        check_not_quantized(self)
        presets.save_backbone(self, folder)


def check_sizes(**sizes):
    """Raises `ValueError` unless every size is an int within what any encoder could need.

    Args:
        **sizes: constructor arguments by name; `num_segments` may be 0, all others start at 1.
    """
    for name, size in sizes.items():
        least = 0 if name == "num_segments" else 1
        if (
            isinstance(size, bool)
            or not isinstance(size, (int, np.integer))
            or not least <= size <= _LARGEST[name]
        ):
            raise ValueError(
                f"`{name}` must be an int between {least} and {_LARGEST[name]}. Received: {size!r}."
            )
    hidden_dim = sizes["hidden_dim"]
    parameters = hidden_dim * (
        sizes["vocabulary_size"]
        + sizes["max_sequence_length"]
        + sizes["num_layers"] * (4 * hidden_dim + 2 * sizes["intermediate_dim"])
    )
    if parameters > _MOST_PARAMETERS:
        raise ValueError(
            f"The sizes {sizes} ask for about {parameters:.1e} parameters; at most "
            f"{_MOST_PARAMETERS:.1e} are allowed. Is the config damaged?"
        )


def check_rates(**rates):
    """Raises `ValueError` unless every rate is a number from 0 up to, but not including, 1."""
    for name, rate in rates.items():
        if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {rate!r}.")


def check_layer_options(activation, layer_norm_epsilon, initializer_range):
    """Raises `ValueError` unless the options of a backbone's layers have a meaning.

    Args:
        activation: must be a str or callable.
        layer_norm_epsilon: must be a finite number from 0.
        initializer_range: must be a finite number from 0.
    """
    if not (isinstance(activation, str) or callable(activation)):
        raise ValueError(f"`activation` must be a name or a function. Received: {activation!r}.")
    numbers = {"layer_norm_epsilon": layer_norm_epsilon, "initializer_range": initializer_range}
    for name, number in numbers.items():
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not is_number or not 0 <= number < np.inf:
            raise ValueError(f"`{name}` must be a finite number from 0. Received: {number!r}.")


def dtype_config(layer):
    """Returns a layer's dtype policy as config: a name where a name says it all."""
    return keras.dtype_policies.serialize(layer.dtype_policy)
