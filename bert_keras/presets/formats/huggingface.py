"""Hugging Face's checkpoint folder: `config.json`, weights, tokenizer files.

Weights are read from `model.safetensors` or, without one, from `pytorch_model.bin`. Both may be in
shards with an index. Weights are written as safetensors.
"""

import copy
import functools
import re

import numpy as np

from bert_keras.answers.prompts import check_prompts
from bert_keras.checks import check_choice, check_settings
from bert_keras.engine.atomic_files import read_json, reading
from bert_keras.presets.assign import by_path, head_weights, warn
from bert_keras.presets.families import RECORDS, has_head_of
from bert_keras.presets.families.record import TASKS
from bert_keras.presets.formats import checkpoint as base
from bert_keras.presets.formats.late_interaction import METADATA, SENTENCES_FILE, read_stanford
from bert_keras.presets.name_map import expand
from bert_keras.presets.safetensors_io import read_safetensors
from bert_keras.presets.torch_pickle import read_torch
from bert_keras.tokenizers.tokenizer_files import SENTENCE_FILES, TOKENIZER_FILES

_LIBRARY = "Hugging Face transformers"
_NO_PLACE = "Use `save_to_preset`, or make the task without them (a CRF with crf=False)."
_LATE = "MultiVectorEmbedder"
PROMPTS = {"prompts": "prompts", "default_prompt_name": "default_prompt"}
# Buffers in old files, and the endings of the first PyTorch port, before 2019.
_NOT_WEIGHTS = (".position_ids", ".token_type_ids")
_OLD_SPELLINGS = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}
_PROBLEM_TYPES = {
    "single_label_classification": "single_label",
    "multi_label_classification": "multi_label",
    "regression": "regression",
}
# Type in a config -> the family's record.
_RECORDS = {name: record for record in RECORDS["HUGGING_FACE"] for name in record.names}
KINDS = {
    "embedding": [("embeddings", ".weight", None)],
    "norm": [("gamma", ".weight", None), ("beta", ".bias", None)],
    "scale": [("gamma", ".weight", None)],
    "dense": [("kernel", ".weight", "transpose"), ("bias", ".bias", None)],
    "kernel": [("kernel", ".weight", "transpose")],
    "bias": [("bias", ".bias", None)],
}

# Our name of an activation -> the class in PyTorch, which sentence-transformers names.
_CLASSES = {"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "ReLU", "gelu": "GELU", "silu": "SiLU"}
TORCH_NAMES = {ours: f"torch.nn.modules.activation.{name}" for ours, name in _CLASSES.items()}
TORCH_NAMES["linear"] = "torch.nn.modules.linear.Identity"
# Names, without ending, of heads that SetFit and bge-m3 have beside an encoder -> the tasks that
# they are of. They are downloaded too, so that they are not called missing.
UNREAD_HEADS = {
    "model_head": TASKS["sequence"],
    "sparse_linear": "SparseTextEmbedder",
    "colbert_linear": _LATE,
}


class HuggingFaceFolder(base.Checkpoint):
    """An opened checkpoint folder in Hugging Face's layout."""

    kinds = KINDS

    def __init__(self, folder, config, path, name):
        self._classes = repr(config.get("architectures"))
        # Without a type, the class tells it. The oldest configs, BERT's, lack both.
        classes = {f"'{record.names[name]}(For|Model)": name for name, record in _RECORDS.items()}
        types = [name for pattern, name in classes.items() if re.search(pattern, self._classes)]
        model_type = config.get("model_type", [*types, "bert"][0])
        advice = "A model with a decoder, such as bart, t5 or llama, is no encoder."
        record = _RECORDS[check_choice(f"model_type` in `{path}", model_type, _RECORDS, advice)]
        with reading(path):
            config = record.native(config)
        super().__init__(folder, config, path, name, record)
        self.root = folder
        allowed = {"quantization_config": (None,), "problem_type": (None, *_PROBLEM_TYPES)}
        check_settings(path, config, allowed, self._advice)

    @functools.cached_property
    def tensors(self):
        """The tensors under the names of a bare model, whatever their names in the file."""
        checkpoint, names = read_weights(self.folder), {}
        wrapper, spellings = self._wrapper(checkpoint), {**self.record.spellings, **_OLD_SPELLINGS}
        for name in checkpoint:
            canonical = name.removeprefix(wrapper)
            for spelling, native in spellings.items():
                canonical = re.sub(spelling, native, canonical)
            canonical = canonical.removeprefix(self.record.prefix)
            if canonical in names:
                raise ValueError(
                    f"The checkpoint holds {canonical!r} twice: as {names[canonical]!r} and as "
                    f"{name!r}."
                )
            if not canonical.endswith(_NOT_WEIGHTS):
                names[canonical] = name
        for head in self.record.heads.values():
            for name, original in head.tied.items():
                # Of two tied tensors a file may have only the copy.
                if name in names and original not in names:
                    names[original] = names.pop(name)
        return checkpoint.renamed(names)

    @property
    def _token_table(self):
        """The name of the token table's tensor."""
        return f"{self.record.rows[0][1]}.weight"

    def _wrapper(self, checkpoint):
        """Returns the prefix that a wrapper gave all names, such as `module.` or `_orig_mod.`."""
        table = self._token_table
        first = next((name for name in checkpoint if name.endswith(f".{table}")), table)
        wrapper = first.removesuffix(table).removesuffix(self.record.prefix)
        # A file of a whole SentenceTransformer has its other modules beside the encoder, "0.".
        others = r"[1-9]\d*\." if wrapper.startswith("0.") else r"(?!)"
        is_known = (name.startswith(wrapper) or re.match(others, name) for name in checkpoint)
        return wrapper if all(is_known) else ""

    def task_name(self):
        """Returns the registered name of the task whose head the checkpoint has, or `None`."""
        return "bert_keras>Reranker" if self._has_activated_score() else super().task_name()

    def task_arguments(self, task, chosen=()):
        found = super().task_arguments(task, chosen)
        if has_head_of(task, "Reranker"):
            found |= self._prompts()
        if has_head_of(task, _LATE) and _LATE in self.saved_tasks:
            found |= read_stanford(self.folder)
        return found

    def _prompts(self):
        """Returns the prompts that sentence-transformers saved, as our arguments."""
        config = self.sentence_settings()
        prompts = {ours: config.get(theirs) for theirs, ours in PROMPTS.items()}
        check_prompts(*prompts.values())
        return prompts

    def _has_activated_score(self):
        """Whether this is a cross-encoder with an activation between its output and its score."""
        if str(self._activation_name() or "Identity").endswith("Identity"):
            return False
        found = self._head_of(TASKS["sequence"])
        return found.is_whole and self._num_outputs(found) == 1

    def _activation_name(self):
        """Returns the class that sentence-transformers applies to the outputs, or `None`."""
        for settings in (self.sentence_settings(), self.config.get("sentence_transformers") or {}):
            if name := settings.get("activation_fn"):
                return name
        return self.config.get("sbert_ce_default_activation_function")

    def sentence_settings(self):
        """Returns the content of `config_sentence_transformers.json`, `{}` without that file."""
        path = self.root / SENTENCES_FILE
        return read_json(path, dict) if path.is_file() else {}

    def load_head_weights(self, task):
        for name, kind in UNREAD_HEADS.items():
            if has_head_of(task, kind) and (found := [*self.root.glob(f"{name}.*")]):
                raise ValueError(
                    f"{found[0]} holds a head for this task, of a kind that is not read here. For "
                    f"a new {type(task).__name__}, copy the folder without this file. If it is "
                    "SetFit's, train a `FewShotClassifier` on the same examples."
                )
        if type(task).__name__ == TASKS["sequence"] and self._has_activated_score():
            warn(
                f"{self.source} is a cross-encoder: it applies {self._activation_name()} to its "
                f"outputs to make scores. A {type(task).__name__} answers with the outputs. Load "
                "it as a `Reranker` for the scores."
            )
        tensors = self.tensors
        for name, original in self._head_of(task).head.tied.items():
            if name in tensors and not np.array_equal(tensors[name], tensors[original]):
                raise ValueError(
                    f"{self.source} has a {name!r} that differs from its {original!r}. Supported: "
                    "heads whose decoder is the token table, as in BERT (tie_word_embeddings)."
                )
        super().load_head_weights(task)

    @functools.cached_property
    def saved_tasks(self):
        """Class names of the tasks that the config's architectures name."""
        heads = self.record.heads.items()
        return [task for task, head in heads if f"{head.architecture}'" in self._classes]

    def _tensors_of_head(self, kind, names):
        # Several heads have a `classifier`; the architecture tells which task's head this one is.
        is_of_other_task = kind not in self.saved_tasks and any(
            self._expanded(self.record.heads[saved].rows).items() & names.items()
            for saved in self.saved_tasks
        )
        return self.tensors.only(()) if is_of_other_task else super()._tensors_of_head(kind, names)

    def _arguments_of_head(self, found, names):
        arguments = super()._arguments_of_head(found, names)
        if problem_type := self.config.get("problem_type"):
            arguments["problem_type"] = _PROBLEM_TYPES[problem_type]
        if "label_names" in names:
            arguments["label_names"] = self._label_names(found)
        if "activation" in names and (name := self._activation_name()):
            arguments["activation"] = read_activation(name, self.path)
        return arguments

    def _label_names(self, found):
        """Returns the names of the classes in order, or `None` if the config has none of use."""
        by_id = self.config.get("id2label") or {}
        names = [by_id.get(str(i)) for i in range(len(by_id))]
        if names == [f"LABEL_{i}" for i in range(len(names))]:  # They stand for numbers.
            return None
        num_classes = self._num_outputs(found)
        are_different = all(isinstance(name, str) for name in names) and len({*names}) == len(names)
        if are_different and len(names) == num_classes:
            return names
        warn(
            f"{self.path} has labels that are not different names for the {num_classes} classes of "
            f"its head, {names}, so classes are numbers. Pass `label_names` to name them."
        )
        return None


def read_activation(name, path):
    """Returns our name for the activation that a file names by its class in PyTorch.

    Args:
        name: the value in the file.
        path: str or path of the file, for the message.

    Raises:
        ValueError: the value is not the class of a supported activation.
    """
    # Compare class names alone: PyTorch has moved its modules.
    known = {theirs.rpartition(".")[2]: ours for ours, theirs in TORCH_NAMES.items()}
    package, _, kind = str(name).rpartition(".")
    kind = kind if package.partition(".")[0] == "torch" else name
    advice = "These classes of PyTorch are supported."
    return known[check_choice(f"activation` in `{path}", kind, known, advice)]


def read_weights(folder):
    """Returns the tensors in a folder, from safetensors unless it has only PyTorch's files."""
    if any(folder.glob("model*.safetensors")) or not any(folder.glob("pytorch_model*")):
        return read_safetensors(folder)
    return read_torch(folder)


def export_to_huggingface(model, folder, described=None, write_settings=None):
    """Writes a folder that `transformers.AutoModel...from_pretrained` loads, with merged adapters.

    Args:
        model: a backbone of a family with a record of this format, or a task, which is exported
            with its head and labels.
        folder: str or path, made when missing. Either all files are replaced, or on an error none.
        described: the task that the card and the tokenizer belong to, or `None` for `model`.
        write_settings: function of the new folder that adds files, or `None`.

    Raises:
        ValueError: transformers does not support the family, the task, its head or the activation.
    """
    model = base.merged(model)
    backbone = getattr(model, "backbone", model)
    task, described = None if backbone is model else model, described or model
    tokenizer = copy.copy(getattr(described, "tokenizer", None))
    if tokenizer is not None:
        # Where `truncation=True` cuts.
        tokenizer.model_max_length = described.preprocessor.max_length
    record, head = base.counterpart(model, _LIBRARY)
    config = {"model_type": next(iter(record.names))}
    config |= base.written_config(record, backbone, _LIBRARY)
    ending = "Model" if task is None else head.architecture
    config.setdefault("pad_token_id", 0 if tokenizer is None else tokenizer.pad_token_id)
    config["architectures"] = [next(iter(record.names.values())) + ending]
    place = f"Hugging Face's {config['architectures'][0]}"
    if task is None:
        tensors = backbone_tensors(record, backbone, place)
    else:
        config |= _task_settings(task, head)
        # A head that reads no pooler has a model without one in transformers.
        left_out = () if head.options.get("pooling", "pooler") == "pooler" else (base.POOLER,)
        tensors = backbone_tensors(record, backbone, place, record.prefix, left_out)
        tensors |= base.tensors_of(head_weights(task), expand(head.rows, KINDS), place, _NO_PLACE)
    config["dtype"] = str(next(iter(tensors.values())).dtype)
    library = "transformers" if write_settings is None else "sentence-transformers"
    # Files that sentence-transformers reads for an embedder must not stay beside another model.
    stale = ("task.json", "modules.json", METADATA, SENTENCES_FILE, *SENTENCE_FILES)
    # A backbone without a tokenizer keeps the one that the folder may have.
    stale += () if task is None and tokenizer is None else TOKENIZER_FILES
    configs, code = {"config.json": config}, _loading_code(ending, tokenizer)
    base.write_folder(
        folder, described, tensors, configs, tokenizer, stale, library, code, write_settings
    )


def backbone_tensors(record, backbone, library, prefix="", left_out=()):
    """Returns the tensors of a backbone by their names in a bare model of transformers.

    Args:
        record: `Record` of its family.
        backbone: a `Backbone`.
        library: str, whose model it is, for the message.
        prefix: str, which names begin with in a model with a head.
        left_out: tuple of the prefixes of our paths that are not written.
    """
    names = expand(record.rows, KINDS, record.counts, backbone)
    weights = {k: w for k, w in by_path(backbone.weights).items() if not k.startswith(left_out)}
    tensors = base.tensors_of(weights, names, library, _NO_PLACE)
    tensors = tensors if record.tables is None else record.tables.write(tensors, backbone)
    return {prefix + name: array for name, array in tensors.items()}


def _loading_code(ending, tokenizer):
    """Returns the code that loads the folder with transformers."""
    ending = ending.removeprefix("Model")
    lines = ["import transformers", ""]
    if tokenizer is not None:
        lines.append('tokenizer = transformers.AutoTokenizer.from_pretrained(".")')
    return "\n".join((*lines, f'model = transformers.AutoModel{ending}.from_pretrained(".")'))


def _task_settings(task, head):
    """Returns a task's part of their config: labels, problem type, dropout, pooling."""
    settings = {}
    if hasattr(task, "num_classes"):
        names = task.label_names or [f"LABEL_{i}" for i in range(task.num_classes)]
        settings["id2label"] = {str(i): name for i, name in enumerate(names)}
        settings["label2id"] = {name: i for i, name in enumerate(names)}
    if hasattr(task, "problem_type"):
        theirs = {ours: name for name, ours in _PROBLEM_TYPES.items()}
        settings["problem_type"] = theirs[task.problem_type]
        if (task.problem_type, task.num_classes) == ("regression", 1):
            # Without this entry sentence-transformers' `CrossEncoder` would apply the sigmoid.
            activation = getattr(task, "activation", "linear")
            settings["sentence_transformers"] = {"activation_fn": TORCH_NAMES[activation]}
    if head.dropout:
        settings[head.dropout] = task.dropout
    if head.pooling:
        settings[head.pooling] = task.pooling
    return settings
