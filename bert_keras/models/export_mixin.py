"""Methods of every model that write presets and exports. Each imports its code when it is called.

Writing presets and exporting need modules that a model does not need to train or to predict, and
some of them need further packages. A room is a package that is built on the library, such as
`export` or `serving`. No other module of the library may import a room; `tests/test_imports.py`
checks this.
"""

import functools
from typing import Any, Literal

from bert_keras.types import Path


def exported_task(source: Path) -> Any:
    """Returns the `ExportedTask` of a folder that an export wrote, or `None` for other sources."""
    from bert_keras.export import runtime

    return runtime.load(source) if runtime.is_exported(source) else None


class ExportMixin:
    """Writes a model, backbone or task, for others to load.

    All of these write a model's adapters merged into its kernels, see `without_adapters`. Existing
    files are replaced, all of them or, after an error, none; other files stay.
    """

    # Function of a folder and `task` that adds files for the Hub, and whether these hold the head.
    write_hub_settings: Any = None
    exports_backbone_alone = False

    def save_to_preset(self, folder: Path) -> None:
        """Writes weights and settings, and a task's head and tokenizer, for `from_preset`.

        Args:
            folder: str or path, made if missing. A README.md says how to load it; one of your own
                that is there is kept.

        Raises:
            ValueError: the model is quantized.
        """
        from bert_keras.presets.formats.native import save_preset

        save_preset(self, folder)

    def export_to_huggingface(self, folder: Path) -> None:
        """Writes a folder that `transformers.AutoModel...from_pretrained` loads.

        Those of embedders and rerankers are loaded by sentence-transformers too.

        Args:
            folder: str or path, made if missing. Holds the weights and, for a task, the head, label
                names and the tokenizer. Weights keep the model's dtype: for files of half the size,
                load it with `dtype="float16"` or `"bfloat16"`.

        Raises:
            ValueError: the model is quantized; or the family, the task or its options have no
                counterpart there.
        """
        from bert_keras.presets.formats.huggingface import export_to_huggingface

        model, described = (self.backbone, self) if self.exports_backbone_alone else (self, None)
        write = self.write_hub_settings and functools.partial(self.write_hub_settings, task=self)
        export_to_huggingface(model, folder, described, write)

    def export_to_keras_hub(self, folder: Path) -> None:
        """Writes a preset that `keras_hub.models...from_preset` loads; it needs no KerasHub.

        For backbones, and for KerasHub's counterparts of `TextClassifier`, `MaskedLM` and
        `TextEmbedder`. There, a classifier with several labels returns probabilities, and labels
        have no names; `from_preset` here restores them. KerasHub's encoders have one activation,
        one epsilon and one dropout rate each; a model with others is refused, because it would give
        other numbers. Its tokenizers follow rules of their own, see
        `bert_keras.export.keras_hub_tokenizer`; on rare texts their ids differ.

        Args:
            folder: str or path, made if missing.

        Raises:
            ValueError: the model is quantized, or KerasHub has no such model, head or tokenizer;
                nothing was written.

        Example:
        ```python
        classifier.export_to_keras_hub("for_keras_hub")
        keras_hub.models.TextClassifier.from_preset("for_keras_hub").predict(["What a film!"])
        ```
        """
        from bert_keras.export.to_keras_hub import export_to_keras_hub

        export_to_keras_hub(self, folder)

    def export(
        self,
        filepath: Path,
        format: Literal["tf_saved_model", "litert", "onnx", "openvino"] = "tf_saved_model",
        verbose: bool | None = None,
        *,
        text: bool = False,
    ) -> None:
        """Like `keras.Model.export`, for any number of rows and tokens.

        The program takes all inputs of the backbone as a dict of int32 `(batch, seq_len)`. It
        returns a dict of outputs: `logits`, or several outputs by their names, such as
        `start_logits`. A language model returns logits for every token, a tagger with a CRF its
        emissions. Inputs and outputs have these names in each format. If the backend cannot write a
        format, another backend does, in a process of its own. Existing files are replaced, all of
        them or, after an error, none.

        | format | file | written by |
        |---|---|---|
        | `"tf_saved_model"` | a folder | TensorFlow, JAX |
        | `"litert"` | `*.tflite` | TensorFlow |
        | `"onnx"` | `*.onnx`, above 1.5 GB with `*.onnx.data` | PyTorch and onnxscript |
        | `"openvino"` | `*.xml` and `*.bin` | PyTorch, onnxscript and openvino |

        Args:
            filepath: str or path; with `"onnx"`, a path that does not end with `.onnx` is a folder
                that answers without Keras, see `bert_keras.export.runtime`.
            format: str, see above.
            verbose: bool, see `keras.Model.export`.
            text: bool, whether the program takes texts instead, with the tokenizer inside, and also
                returns probabilities and labels: a SavedModel, by TensorFlow, of a task that
                classifies, scores or embeds texts. See docs/text_in.md.

        Raises:
            ImportError: a package that writes the format is missing; the message says which.
            RuntimeError: the other backend's process failed; the message says why.
            ValueError: the format or the path does not fit.

        Example:
        ```python
        classifier.export("served")
        served = tf.saved_model.load("served")  # needs neither Keras nor this package
        inputs = {name: tf.constant(ids) for name, ids in preprocessor(texts).items()}
        served.serve(inputs)["logits"]
        ```
        """
        from bert_keras.export.model_export import export

        export(self, filepath, format, verbose, text)
