"""Hugging Face's checkpoint folder: `config.json`, `model.safetensors`, tokenizer files."""

import copy
import json
import os
import warnings
from pathlib import Path

import keras
import ml_dtypes
import numpy as np

from bert_keras.presets.assign import assign, relative_path
from bert_keras.presets.formats.keras_folder import registered_class
from bert_keras.presets.name_maps import bert
from bert_keras.presets.name_maps.name_map import expand, transformed
from bert_keras.presets.safetensors_io import read_safetensors, write_safetensors

# model_type -> our class and its name map.
FAMILIES = {"bert": ("bert_keras>BertBackbone", bert)}

# Their constructor argument -> ours.
_ARGUMENTS = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "hidden_size": "hidden_dim",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "layer_norm_eps": "layer_norm_epsilon",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "initializer_range": "initializer_range",
    "is_decoder": "causal",
}
_REQUIRED = (
    "vocab_size",
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_size",
    "intermediate_size",
)
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
# The tasks whose head is called "classifier" there.
_WITH_CLASSIFIER = ("TextClassifier", "TokenClassifier", "MultipleChoice")
_PROBLEM_TYPES = {
    "single_label_classification": "single_label",
    "multi_label_classification": "multi_label",
    "regression": "regression",
}


class HuggingFaceFolder:
    """An opened checkpoint folder in Hugging Face's layout."""

    def __init__(self, folder, config):
        self.folder = Path(folder)
        self.name = self.folder.name  # in messages
        self._config = config
        model_type = config.get("model_type", "bert")
        if model_type not in FAMILIES:
            raise ValueError(
                f"{self.folder / 'config.json'} has the model_type {model_type!r}. Supported: "
                f"{sorted(FAMILIES)}."
            )
        self._registered_name, self._name_map = FAMILIES[model_type]
        self._tensors = None

    @staticmethod
    def recognizes(config):
        """Whether a parsed `config.json` is of this format."""
        return "model_type" in config or "hidden_size" in config

    @property
    def tokenizer_folder(self):
        """Path of the folder with the tokenizer's files."""
        return self.folder

    def backbone_class(self, base):
        """Returns the backbone's class, which must derive from `base`."""
        return registered_class(self._registered_name, base, self.folder)

    def backbone(self, base, **overrides):
        """Returns a new backbone with initial weights, of a class that derives from `base`."""
        return self.backbone_class(base)(**{**self._backbone_arguments(), **overrides})

    def _backbone_arguments(self):
        missing = [name for name in _REQUIRED if name not in self._config]
        if missing:
            raise ValueError(
                f"{self.folder / 'config.json'} lacks {missing}, without which the model's shape "
                "is unknown."
            )
        positions = self._config.get("position_embedding_type", "absolute")
        if positions != "absolute":
            raise ValueError(
                f"{self.folder / 'config.json'} asks for {positions!r} position embeddings. "
                "Supported: 'absolute', as in BERT."
            )
        if self._config.get("add_cross_attention"):
            raise ValueError(
                f"{self.folder / 'config.json'} asks for add_cross_attention, a decoder that reads "
                "an encoder's output. Supported: models of one text or pair."
            )
        activation = self._config.get("hidden_act", "gelu")
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise ValueError(
                f"{self.folder / 'config.json'} asks for the activation {activation!r}. Supported: "
                f"{sorted(_ACTIVATIONS)}."
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
            ValueError: a name or a shape does not fit; both lists are printed.
        """
        assign(
            {relative_path(v): v for v in backbone.weights},
            expand(self._name_map.BACKBONE, backbone.num_layers),
            self._renamed_tensors(),
            optional=self._name_map.OPTIONAL,
            ignored=self._name_map.NOT_WEIGHTS + self._name_map.HEAD_PREFIXES,
            source=f"The checkpoint {self.name!r}",
        )

    def task_name(self):
        """Returns the registered name of the task whose head the checkpoint holds, or `None`."""
        for task, architecture in self._name_map.ARCHITECTURES.items():
            if task in self._name_map.HEADS and architecture in self._architectures():
                return f"bert_keras>{task}"
        return None

    def task_arguments(self, task_class_name):
        """Returns what `config.json` says of that task: classes, label names, problem, dropout.

        The pooling is said by the architecture: there each text's head stands on the pooler.
        """
        if task_class_name not in _WITH_CLASSIFIER or not self._has_head(task_class_name):
            return {}
        arguments = {}
        if task_class_name != "TokenClassifier":
            arguments["pooling"] = "pooler"
        if task_class_name != "MultipleChoice":
            arguments["num_classes"] = self._tensor_shape("classifier.weight")[0]
            names = self._label_names()
            if names is not None and len(names) == arguments["num_classes"]:
                arguments["label_names"] = names
        if task_class_name == "TextClassifier":
            problem_type = _PROBLEM_TYPES.get(self._config.get("problem_type"))
            if problem_type is None and arguments["num_classes"] == 1:
                problem_type = "regression"
            if problem_type:
                arguments["problem_type"] = problem_type
        if self._config.get("classifier_dropout") is not None:
            arguments["dropout"] = self._config["classifier_dropout"]
        return arguments

    def _label_names(self):
        """Returns the labels' names in their order, or `None` where there are none to use."""
        labels = self._config.get("id2label") or {}
        if not isinstance(labels, dict) or set(labels) != set(map(str, range(len(labels)))):
            raise ValueError(
                f"{self.folder / 'config.json'} must have an 'id2label' from the numbers 0, 1, ... "
                f"to the labels' names. Received: {labels!r}."
            )
        names = [labels[str(number)] for number in range(len(labels))]
        # LABEL_0, LABEL_1 ... stand for "no names given".
        if names == [f"LABEL_{i}" for i in range(len(names))]:
            return None
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return names
        warnings.warn(
            f"{self.folder / 'config.json'} has labels that are not different names, {names}, so "
            "numbers stand for the classes. Pass `label_names` to name them.",
            stacklevel=4,  # the line that called from_preset
        )
        return None

    def preprocessor_config(self, task_class_name):
        """Returns `None`: this format has no preprocessor of ours."""
        return None

    def load_head_weights(self, task):
        """Assigns the head's weights when the checkpoint has them; else they stay, with a warning.

        Raises:
            ValueError: a shape does not fit.
        """
        rows = self._name_map.HEADS.get(type(task).__name__, [])
        is_ours = not self._has_namesake_of(type(task).__name__)
        prefixes = tuple(f"{theirs}." for _, theirs, _ in rows if is_ours)
        tensors = self._renamed_tensors().only(prefixes)
        tied = tuple(name for name in self._name_map.TIED if name in tensors)
        for name in tied:
            self._check_tied(name, self._name_map.TIED[name])
        assign(
            {relative_path(v): v for v in task.head.weights},
            expand(rows, task.backbone.num_layers),
            tensors,
            optional=("head/crf/", *self._absent_parts()) if len(tensors) else ("head/",),
            ignored=tied,
            source=f"The checkpoint {self.name!r}",
        )

    def _absent_parts(self):
        """Returns our prefixes of the parts of heads that the checkpoint lacks as a whole."""
        names = list(self._renamed_tensors())
        return tuple(
            ours
            for ours, theirs in self._name_map.HEAD_PARTS.items()
            if not any(name.startswith(theirs) for name in names)
        )

    def _check_tied(self, name, original):
        tensors = self._renamed_tensors()
        if not np.array_equal(tensors[name], tensors[original]):
            raise ValueError(
                f"The checkpoint {self.name!r} has a {name!r} that differs from its "
                f"{original!r}. Supported: heads whose decoder is the token table, as in BERT "
                "(tie_word_embeddings)."
            )

    def _architectures(self):
        return self._config.get("architectures") or []

    def _has_head(self, task_class_name):
        rows = self._name_map.HEADS.get(task_class_name, [])
        return (
            bool(rows)
            and not self._has_namesake_of(task_class_name)
            and all(f"{theirs}.weight" in self._renamed_tensors() for _, theirs, _ in rows)
        )

    def _has_namesake_of(self, task_class_name):
        """Whether the head is another task's that names its tensors as this task does.

        `classifier` is the head of text classification, of tagging and of multiple choice.
        """
        heads, architectures = self._name_map.HEADS, self._name_map.ARCHITECTURES
        names = {theirs for _, theirs, _ in heads.get(task_class_name, [])}
        namesakes = [
            architectures[task]
            for task, rows in heads.items()
            if task != task_class_name and {theirs for _, theirs, _ in rows} == names
        ]
        held = self._architectures()
        return architectures.get(task_class_name) not in held and any(
            namesake in held for namesake in namesakes
        )

    def _tensor_shape(self, name):
        return self._renamed_tensors().shapes[name]

    def _renamed_tensors(self):
        """Returns the tensors under BertModel's own names, whatever the file calls them."""
        if self._tensors is None:
            self._tensors = _Renamed(read_safetensors(self.folder), self._name_map)
        return self._tensors


class _Renamed:
    """A mapping of tensors by canonical name: no `bert.` prefix, no `gamma` and `beta`."""

    def __init__(self, tensors, name_map):
        self._tensors = tensors
        self._names = {}
        for name in tensors:
            canonical = name.removeprefix(name_map.PREFIX)
            for old, new in name_map.OLD_ENDINGS.items():
                if canonical.endswith(old):
                    canonical = canonical.removesuffix(old) + new
            if canonical in self._names:
                raise ValueError(
                    f"The checkpoint holds {canonical!r} twice: as {self._names[canonical]!r} and "
                    f"as {name!r}."
                )
            self._names[canonical] = name
        for name, original in name_map.TIED.items():
            # Of tensors that are one, a file may hold either.
            if name in self._names and original not in self._names:
                self._names[original] = self._names.pop(name)

    @property
    def shapes(self):
        """Dict of shapes by canonical name."""
        return {name: self._tensors.shapes[theirs] for name, theirs in self._names.items()}

    def only(self, prefixes):
        """Returns the mapping of the tensors whose canonical names start with one of `prefixes`."""
        part = copy.copy(self)
        part._names = {k: v for k, v in self._names.items() if prefixes and k.startswith(prefixes)}
        return part

    def __len__(self):
        return len(self._names)

    def __iter__(self):
        return iter(self._names)

    def __contains__(self, name):
        return name in self._names

    def __getitem__(self, name):
        return self._tensors[self._names[name]]


def export(backbone, folder, task=None, tokenizer=None, dtype=None):
    """Writes a folder that `transformers.AutoModel...from_pretrained` loads.

    Args:
        backbone: a backbone of a family in `FAMILIES`.
        folder: str or path, made when missing; each file is written in one step.
        task: the task whose head and labels go along, or `None`.
        tokenizer: the `WordPieceTokenizer` that goes along, or `None` for the task's, if any.
        dtype: of the weights in the file: `"float32"`, `"float16"` or `"bfloat16"`; `None` keeps
            the variables'.

    Raises:
        ValueError: the family, the task or the activation has no counterpart there, or a weight
            is too large for the dtype.
    """
    if dtype not in (None, "float32", "float16", "bfloat16"):
        raise ValueError(
            f"`dtype` must be 'float32', 'float16', 'bfloat16' or None. Received: {dtype!r}."
        )
    folder = Path(folder)
    model_type, name_map = _family_of(backbone)
    exported = backbone if task is None else task
    if type(exported).__name__ not in name_map.ARCHITECTURES:
        raise ValueError(
            f"{type(exported).__name__} has no counterpart in Hugging Face transformers. These "
            f"have: {sorted(name_map.ARCHITECTURES)}. Export its backbone instead."
        )
    if getattr(task, "pooling", "pooler") != "pooler" and hasattr(task, "classify"):
        raise ValueError(
            "transformers' classifier stands on the pooler. Received a task with "
            f"pooling={task.pooling!r}, which has no counterpart there. Export "
            "its backbone instead, or train with pooling='pooler'."
        )
    if tokenizer is None and getattr(task, "preprocessor", None) is not None:
        tokenizer = task.preprocessor.tokenizer
    config = _config_for_transformers(backbone, model_type)
    config["pad_token_id"] = 0 if tokenizer is None else tokenizer.pad_token_id
    config["architectures"] = [name_map.ARCHITECTURES[type(exported).__name__]]
    rows = list(name_map.BACKBONE)
    variables = {relative_path(v): v for v in backbone.weights}
    if task is not None:
        rows += name_map.HEADS[type(task).__name__]
        variables |= {relative_path(v): v for v in task.head.weights}
        config |= _labels_for_transformers(task)
    names = expand(rows, backbone.num_layers)
    without_place = [path for path in variables if path not in names]
    if without_place:
        raise ValueError(
            f"Hugging Face's {config['architectures'][0]} has no place for these weights of the "
            f"{type(task).__name__}: {without_place}. Without them it would answer otherwise. Use "
            "`save_to_preset`, or make the task without them (a CRF by crf=False)."
        )
    tensors = {}
    for path, variable in variables.items():
        name, transform = names[path]
        is_prefixed = task is not None and not path.startswith("head/")
        array = _converted(keras.ops.convert_to_numpy(variable.value), dtype, path)
        array = np.ascontiguousarray(transformed(array, transform))
        tensors[(name_map.PREFIX if is_prefixed else "") + name] = array
    config["dtype"] = str(next(iter(tensors.values())).dtype)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors, metadata={"format": "pt"})
    partial = folder / f".partial-{os.getpid()}-config.json"
    partial.write_text(json.dumps(config, indent=2, ensure_ascii=False), encoding="utf-8")
    os.replace(partial, folder / "config.json")
    if tokenizer is not None:
        tokenizer.save(folder)


def _converted(array, dtype, path):
    """Returns the weight `path` in another dtype, which must hold it."""
    if dtype is None:
        return array
    with np.errstate(over="ignore"):
        converted = array.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    if np.isfinite(array).all() and not np.isfinite(converted.astype(np.float32)).all():
        raise ValueError(
            f"{dtype} must hold every weight. Received: up to {np.abs(array).max():.3g} in {path}. "
            "Export as 'bfloat16' or 'float32'."
        )
    return converted


def _family_of(backbone):
    registered = keras.saving.get_registered_name(type(backbone))
    for model_type, (name, name_map) in FAMILIES.items():
        if name == registered:
            return model_type, name_map
    raise ValueError(
        f"{type(backbone).__name__} has no counterpart in Hugging Face transformers. These have: "
        f"{[name for name, _ in FAMILIES.values()]}."
    )


def _config_for_transformers(backbone, model_type):
    ours = backbone.get_config()
    activations = {"gelu_tanh": "gelu_pytorch_tanh", "gelu": "gelu"}
    activation = activations.get(ours["activation"], ours["activation"])
    if activation not in _ACTIVATIONS:
        raise ValueError(
            f"The activation {activation!r} has no counterpart in Hugging Face transformers. These "
            f"have: {sorted(set(_ACTIVATIONS.values()))}."
        )
    return {
        "model_type": model_type,
        **{theirs: ours[name] for theirs, name in _ARGUMENTS.items()},
        "hidden_act": activation,
        "position_embedding_type": "absolute",
    }


def _labels_for_transformers(task):
    config = task.get_config()
    if "label_names" not in config:
        return {}
    names = config["label_names"] or [f"LABEL_{i}" for i in range(config["num_classes"])]
    labels = {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
        "classifier_dropout": config["dropout"],
    }
    if "problem_type" in config:
        problem_types = {ours: theirs for theirs, ours in _PROBLEM_TYPES.items()}
        labels["problem_type"] = problem_types[config["problem_type"]]
    return labels
