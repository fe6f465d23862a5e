"""A model's ways into folders from which this package, and others, load it."""

from typing import Any

from bert_keras.engine.quantized import check_not_quantized
from bert_keras.presets import presets
from bert_keras.types import Card, FileDtype, Path


class ToPresets:
    """What backbones and tasks write for others to load, see `bert_keras.presets`.

    Of adapters all write what they make of the kernels, see `without_adapters`. Files that are
    there are replaced, all or on an error none; other files stay.
    """

    def save_to_preset(self, folder: Path, card: Card | None = None) -> None:
        """Writes weights and settings, of a task head and tokenizer too, for `from_preset`.

        Args:
            folder: str or path, made when missing.
            card: dict of what the folder's README.md is to say, see `bert_keras.presets.card`.

        Raises:
            ValueError: the model is quantized, or the card has an unknown key.
        """
        check_not_quantized(self)
        presets.save_preset(self, folder, card)

    def export_to_huggingface(
        self, folder: Path, dtype: FileDtype | None = None, card: Card | None = None
    ) -> None:
        """Writes a folder that `transformers.AutoModel...from_pretrained` loads.

        Args:
            folder: str or path, made when missing. Holds the weights, of a task with the head,
                label names, and the tokenizer.
            dtype: of the weights in the file: `"float32"`, `"float16"` or `"bfloat16"`, half the
                size; `None` keeps the model's.
            card: dict, see `save_to_preset`.

        Raises:
            ValueError: the family, the task or its options have no counterpart there, or a weight
                is too large for the dtype.
        """
        check_not_quantized(self)
        presets.export_to_huggingface(self, folder, dtype=dtype, card=card)

    def export_to_keras_hub(self, folder: Path, card: Card | None = None) -> None:
        """Writes a preset that `keras_hub.models...from_preset` loads; it needs no KerasHub.

        For backbones, and for what KerasHub has of `TextClassifier`, `MaskedLM` and
        `TextEmbedder`. There a classifier of several labels gives probabilities, and labels have
        no names, which `from_preset` here finds again. Its encoders have one activation, one
        epsilon and one rate of dropout each, and another model is refused, since it would give
        other numbers. Its tokenizers follow rules of their own, see
        `bert_keras.export.keras_hub_tokenizer`; on rare texts their ids are others.

        Args:
            folder: str or path, made when missing.
            card: dict, see `save_to_preset`.

        Raises:
            ValueError: KerasHub has no such model, head or tokenizer; nothing was written.

        Example:
        ```python
        classifier.export_to_keras_hub("for_keras_hub")
        keras_hub.models.TextClassifier.from_preset("for_keras_hub").predict(["What a film!"])
        ```
        """
        check_not_quantized(self)
        presets.export_to_keras_hub(self, folder, card)

    def to_keras_hub(self) -> Any:
        """Returns a live model of `keras_hub` with equal outputs, see `export_to_keras_hub`.

        Raises:
            ImportError: KerasHub is not installed.
            ValueError: KerasHub has no such model.
        """
        check_not_quantized(self)
        return presets.to_keras_hub(self)
