"""Google's TensorFlow 1 checkpoint folder, read without TensorFlow.

| file | what it holds |
|---|---|
| `bert_config.json` | the architecture |
| `bert_model.ckpt.index` | names, shapes and places of the tensors |
| `bert_model.ckpt.data-00000-of-00001` | the tensors; there may be several such files |
| `vocab.txt` | the vocabulary; whether text is lowercased: see `WordPieceTokenizer.load` |
| `checkpoint` | in a folder that a training wrote: which of several checkpoints is the last |

`"gelu"` in `bert_config.json` is the tanh approximation, as in Google's `modeling.gelu`, where
Hugging Face's `"gelu"` is exact.

Reference: https://github.com/google-research/bert.
"""

import re
from pathlib import Path

from bert_keras.presets.assign import assign, relative_path
from bert_keras.presets.formats.keras_folder import registered_class
from bert_keras.presets.name_maps import bert_tf1
from bert_keras.presets.name_maps.name_map import expand
from bert_keras.presets.tensor_bundle import read_tensor_bundle

CONFIG_FILE = "bert_config.json"
_OTHER_WEIGHTS = ("*.safetensors", "*.weights.h5")

# Their constructor argument -> ours.
_ARGUMENTS = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "initializer_range": "initializer_range",
}
_REQUIRED = (
    "vocab_size",
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_size",
    "intermediate_size",
)
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"}


class Tf1Folder:
    """An opened checkpoint folder in the layout of google-research/bert."""

    def __init__(self, folder, config):
        self.folder = Path(folder)
        self.name = self.folder.name  # in messages
        self._config = config
        self._tensors = None

    @staticmethod
    def recognizes(config):
        """Whether a parsed `bert_config.json` is of this format."""
        return "hidden_size" in config

    @property
    def tokenizer_folder(self):
        """Path of the folder with the tokenizer's files."""
        return self.folder

    def backbone_class(self, base):
        """Returns the backbone's class, which must derive from `base`."""
        return registered_class("bert_keras>BertBackbone", base, self.folder)

    def backbone(self, base, **overrides):
        """Returns a new backbone with initial weights, of a class that derives from `base`."""
        return self.backbone_class(base)(**{**self._backbone_arguments(), **overrides})

    def _backbone_arguments(self):
        missing = [name for name in _REQUIRED if name not in self._config]
        if missing:
            raise ValueError(
                f"The config of {self.folder} lacks {missing}, without which the model's shape is "
                "unknown."
            )
        activation = self._config.get("hidden_act", "gelu")
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise ValueError(
                f"The config of {self.folder} asks for the activation {activation!r}. Supported: "
                f"{sorted(_ACTIVATIONS)}, as in Google's code."
            )
        arguments = {
            ours: self._config[theirs]
            for theirs, ours in _ARGUMENTS.items()
            if theirs in self._config
        }
        return {**arguments, "activation": _ACTIVATIONS[activation]}

    def load_backbone_weights(self, backbone):
        """Assigns every backbone weight its tensor; a missing pooler stays initial, with a warning.

        Raises:
            FileNotFoundError: a file of the checkpoint is missing.
            ValueError: a file is damaged, or a name or a shape does not fit; both lists are
                printed.
        """
        assign(
            {relative_path(v): v for v in backbone.weights},
            expand(bert_tf1.BACKBONE, backbone.num_layers, bert_tf1.KINDS, separator=""),
            self._weights(),
            optional=bert_tf1.OPTIONAL,
            ignored=bert_tf1.HEAD_PREFIXES,
            source=f"The checkpoint {self.name!r}",
        )

    def task_name(self):
        """Returns the registered name of the task whose head the checkpoint holds, or `None`."""
        for task in bert_tf1.HEADS:
            if self._has_head(task):
                return f"bert_keras>{task}"
        return None

    def task_arguments(self, task_class_name):
        """Returns how many classes a classifier has, or one score; its head is on the pooler."""
        if task_class_name != "TextClassifier" or not self._has_head(task_class_name):
            return {}
        num_classes = self._weights().shapes["output_weights"][0]
        problem_type = "regression" if num_classes == 1 else "single_label"
        return {"num_classes": num_classes, "problem_type": problem_type, "pooling": "pooler"}

    def preprocessor_config(self, task_class_name):
        """Returns `None`: this format has no preprocessor of ours."""
        return None

    def load_head_weights(self, task):
        """Assigns the head's weights when the checkpoint has them; else they stay, with a warning.

        Raises:
            FileNotFoundError: a file of the checkpoint is missing.
            ValueError: a file is damaged, or a part of the head is missing or of another shape.
        """
        names = self._head_names(type(task).__name__)
        tensors = self._weights().only(name for name, _ in names.values())
        assign(
            {relative_path(v): v for v in task.head.weights},
            names,
            tensors,
            optional=_absent_parts(tensors) if len(tensors) else ("head/",),
            source=f"The checkpoint {self.name!r}",
        )

    def _head_names(self, task_class_name):
        rows = bert_tf1.HEADS.get(task_class_name, [])
        return expand(rows, 1, bert_tf1.KINDS, separator="")

    def _has_head(self, task_class_name):
        names = self._head_names(task_class_name)
        return bool(names) and all(name in self._weights() for name, _ in names.values())

    def _weights(self):
        """Returns the checkpoint without what only its training needed."""
        if self._tensors is None:
            tensors = read_tensor_bundle(_prefix_of_checkpoint(self.folder))
            _check_is_tf1(tensors, self.folder)
            self._tensors = tensors.only(
                name
                for name in tensors
                if name not in bert_tf1.NOT_WEIGHTS and not name.endswith(bert_tf1.SLOT_ENDINGS)
            )
        return self._tensors


def holds_tf1(folder):
    """Whether a folder's weights are a TensorFlow checkpoint and no other format's.

    Args:
        folder: `Path`.
    """
    return any(folder.glob("*.index")) and not any(
        any(folder.glob(pattern)) for pattern in _OTHER_WEIGHTS
    )


def _absent_parts(tensors):
    """Returns our prefixes of the parts of a head of which none of the tensors is."""
    return tuple(
        ours
        for ours, theirs in bert_tf1.HEAD_PARTS.items()
        if not any(name.startswith(theirs) for name in tensors)
    )


def _prefix_of_checkpoint(folder):
    """Returns what the names of the checkpoint's files begin with.

    Of several checkpoints it is the one that the file `checkpoint` names, else `bert_model.ckpt`.
    """
    names = sorted(path.name.removesuffix(".index") for path in folder.glob("*.index"))
    if len(names) == 1:
        return folder / names[0]
    last = None
    if (folder / "checkpoint").is_file():
        text = (folder / "checkpoint").read_text(encoding="utf-8", errors="replace")
        found = re.search(r'^model_checkpoint_path: "(?:.*[/\\])?([^"/\\]+)"', text, re.MULTILINE)
        last = found and found[1]
    for name in (last, "bert_model.ckpt"):
        if name in names:
            return folder / name
    raise ValueError(
        "A folder must hold one TensorFlow checkpoint, name the last in the file `checkpoint`, or "
        f"call it bert_model.ckpt. Received: {folder}, which holds {names or 'no *.index'}. Move "
        "the others away."
    )


def _check_is_tf1(tensors, folder):
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in tensors:
        raise ValueError(
            "A checkpoint of Google's BERT must be TensorFlow 1's, with names like "
            f"bert/embeddings/word_embeddings. Received: {folder}, an object-based checkpoint of "
            f"TensorFlow 2, whose names are like {next(iter(sorted(tensors)))!r}. Convert it with "
            "the library that wrote it."
        )
