"""GLiNER's folders: `gliner_config.json`, weights, tokenizer files.

Supported are the span models with one encoder for texts and labels. The config of older folders
lacks the encoder's own config, and these folders lack a tokenizer: both are read from the encoder's
checkpoint, which `model_name` names.

Reference: https://github.com/urchade/GLiNER, `gliner/config.py` and `gliner/modeling`.
"""

import numpy as np
import tokenizers

from bert_keras.checks import check_choice, check_int, check_settings
from bert_keras.engine.atomic_files import read_json
from bert_keras.presets.assign import arrays_of, assign, head_weights
from bert_keras.presets.families import has_head_of
from bert_keras.presets.formats.checkpoint import counterpart, merged, write_folder, written_config
from bert_keras.presets.formats.huggingface import KINDS, HuggingFaceFolder, backbone_tensors
from bert_keras.presets.name_map import expand, transformed
from bert_keras.presets.resolve import HUGGING_FACE, download
from bert_keras.tokenizers import tokenizer_files as files
from bert_keras.tokenizers.tokenizer import Tokenizer

_TASK = "ZeroShotTagger"
_ENCODER = "token_rep_layer.bert_layer.model."
_SPAN = "span_rep_layer.span_rep_layer."
_HEAD = ("token_rep_layer.projection.", "rnn.", "span_rep_layer.", "prompt_rep_layer.")
# The reference code makes it, and never calls it.
_UNUSED = "cross_fuser."
_ROWS = (
    ("head/projection", "token_rep_layer.projection", "dense"),
    *((f"head/{end}_hidden", f"{_SPAN}project_{end}.0", "dense") for end in ("start", "end")),
    *((f"head/{end}", f"{_SPAN}project_{end}.3", "dense") for end in ("start", "end")),
    ("head/label_hidden", "prompt_rep_layer.0", "dense"),
    ("head/label", "prompt_rep_layer.3", "dense"),
)
_DIRECTIONS = {"forward": "", "backward": "_reverse"}
_OUT = f"{_SPAN}out_project"
_KINDS = {
    **KINDS,
    "lstm": [
        (f"{direction}_{ours}", f".{theirs}_l0{ending}", "transpose")
        for direction, ending in _DIRECTIONS.items()
        for ours, theirs in (("kernel", "weight_ih"), ("recurrent_kernel", "weight_hh"))
    ],
    "span": [("label_to_span/kernel", ".weight", None), ("span_bias", ".bias", None)],
}
_MARKERS = ("[FLERT]", "<<ENT>>", "<<SEP>>")
# Key of the config -> our argument.
_SETTINGS = {"hidden_size": "dim", "max_width": "max_width", "max_types": "max_labels"}
_SETTINGS |= {"dropout": "dropout", "span_mode": "span_mode", "max_len": "max_words"}
_DEFAULTS = {"max_types": 25, "dropout": 0.4, "num_rnn_layers": 1, "max_len": 384}
# Key of the config -> the values that are supported, the default first.
_ALLOWED = {
    "span_mode": ("markerV0", "marker"),
    "num_rnn_layers": (1, 0),
    "subtoken_pooling": ("first",),
    "embed_ent_token": (True,),
    "fuse_layers": (False, None),
    "words_splitter_type": ("whitespace", None),
}
# A bi-encoder, a model that generates labels, and one of relations.
_VARIANTS = dict.fromkeys(("labels_encoder", "labels_decoder", "relations_layer"), (None, ""))


class GlinerFolder(HuggingFaceFolder):
    """An opened folder of a GLiNER."""

    config_file = "gliner_config.json"

    def __init__(self, folder, config, path, name):
        advice = f"A {_TASK} reads span models with one encoder, as urchade/gliner_medium-v2.1."
        check_settings(path, config, _ALLOWED | _VARIANTS, advice)
        self.gliner = _DEFAULTS | config
        check_int(f"max_len` in `{path}", self.gliner["max_len"], 1, 2**16)
        encoder = config.get("encoder_config") or read_json(_file_of_encoder(folder, config), dict)
        super().__init__(folder, dict(encoder), path, name)
        # The markers changed the number of rows.
        if self._token_table in self.tensors:
            self.config["vocab_size"] = self.tensors.shapes[self._token_table][0]

    def _wrapper(self, checkpoint):
        return _ENCODER

    def tokenizer(self):
        """Returns the tokenizer of the folder, or that of its encoder with the markers added."""
        config, folder = self.gliner, self.folder
        if not any((folder / name).is_file() for name in files.VOCABULARY_FILES):
            folder = _file_of_encoder(folder, config).parent
        tokenizer, label_id = _load_tokenizer(folder), config.get("class_token_index", -1)
        markers = [_MARKERS[0], *self._marker_tokens()]
        if label_id < 0 or folder != self.folder:
            backend = tokenizers.Tokenizer.from_str(tokenizer.to_json())
            backend.add_special_tokens(markers)
            tokenizer = Tokenizer(backend, **tokenizer.get_config())
        found = tokenizer.token_to_id(markers[1])
        advice = f"It is the id of {markers[1]!r} in {folder}. Download the folder again."
        check_choice("class_token_index", label_id, (found, -1), advice)
        return tokenizer

    def _marker_tokens(self):
        keys = zip(("ent_token", "sep_token"), _MARKERS[1:], strict=True)
        return [self.gliner.get(key) or usual for key, usual in keys]

    def max_length(self, task, tokenizer):
        """Returns the longest row: room for eight tokens a word, if the tokenizer has no limit."""
        longest, is_tagger = super().max_length(task, tokenizer), has_head_of(task, _TASK)
        return 8 * self.gliner["max_len"] if longest is None and is_tagger else longest

    def task_name(self):
        """Returns the registered name of the task."""
        return f"bert_keras>{_TASK}"

    def task_arguments(self, task, chosen=()):
        """Returns the arguments of a `ZeroShotTagger`; for other tasks none."""
        if not has_head_of(task, _TASK):
            return {}
        config, (label_token, separator_token) = self.gliner, self._marker_tokens()
        return {
            **{ours: config[theirs] for theirs, ours in _SETTINGS.items()},
            "lstm": config["num_rnn_layers"] == 1,
            "label_token": label_token,
            "separator_token": separator_token,
        }

    def load_head_weights(self, task):
        if not has_head_of(task, _TASK):
            return super().load_head_weights(task)
        names, joined = expand(_rows_of(task), _KINDS), _joined(self.tensors, task)
        names |= {path: (path, None) for path in joined}
        of_joined = (f"{_first_layer(task)}.", "rnn.lstm.bias")
        of_head = (x for x in self.tensors if x.startswith(_HEAD) and not x.startswith(of_joined))
        tensors = self.tensors.only(of_head).updated(joined)
        assign(head_weights(task), names, tensors, source=self.source)

    def _ignorable_head_tensors(self, task):
        return {name for name in self.tensors if name.startswith((*_HEAD, _UNUSED))}


def _load_tokenizer(folder):
    """Returns the tokenizer in a folder.

    The reference code writes a template in which a pair is two whole texts, `[CLS] A [SEP] [CLS] B
    [SEP]`, and never uses it. Here it is `[CLS] A [SEP] B [SEP]`.
    """
    path = folder / files.TOKENIZER_FILE
    saved = read_json(path, dict) if path.is_file() else {}
    pair = (saved.get("post_processor") or {}).get("pair") or ()
    names = [part["id"] for item in pair for part in item.values()]
    if len(names) != 6 or names[3:] != [names[0], "B", names[2]]:
        return Tokenizer.load(folder)
    _, settings = files.read_tokenizer(folder, {})
    cls, sep = ((x, settings["backend"].token_to_id(x)) for x in (names[0], names[2]))
    settings["backend"].post_processor = tokenizers.processors.BertProcessing(sep, cls)
    known = {name: settings[name] for name in ("backend", *files.ARGUMENTS) if name in settings}
    return Tokenizer(**known)


def _file_of_encoder(folder, config):
    """Returns the path of the config of a GLiNER's encoder, with the tokenizer files beside it.

    They are in the folder itself, or in the Hub's repository that `model_name` names.
    """
    path, name = folder / "config.json", str(config.get("model_name"))
    if path.is_file():
        return path
    if not HUGGING_FACE.fullmatch(f"hf://{name}"):
        raise ValueError(
            f"{folder} must hold the config and the tokenizer of its encoder. Received: neither, "
            f"and the encoder's name {name!r:.100}, which is no repository. Copy config.json and "
            "the tokenizer files into the folder."
        )
    return download(f"hf://{name}", ["config.json", *files.TOKENIZER_FILES]) / "config.json"


def _rows_of(task):
    """Returns the rows of the weights that correspond to one tensor each, see `name_map`."""
    rows = [*_ROWS, ("head/lstm", "rnn.lstm", "lstm")] if task.lstm else [*_ROWS]
    return rows if task.span_mode == "marker" else [*rows, ("head", f"{_OUT}.3", "span")]


def _first_layer(task):
    """Returns the name of the layer that combines both ends of a span; another may follow."""
    return _OUT if task.span_mode == "marker" else f"{_OUT}.0"


def _joined(tensors, task):
    """Returns the arrays of our weights whose tensors are split or summed, by path."""
    arrays, name = {}, f"{_first_layer(task)}.weight"
    if name in tensors:
        halves = tensors[name][:, : task.dim], tensors[name][:, task.dim :]
        for end, half in zip(("start", "end"), halves, strict=True):
            arrays[f"head/{end}_to_span/kernel"] = half.T
    if (name := f"{_first_layer(task)}.bias") in tensors:
        arrays["head/start_to_span/bias"] = tensors[name]
    for direction, ending in _DIRECTIONS.items():
        names = [f"rnn.lstm.{name}_l0{ending}" for name in ("bias_ih", "bias_hh")]
        if all(name in tensors for name in names):
            arrays[f"head/lstm/{direction}_bias"] = np.add(*(tensors[name] for name in names))
    return arrays


def _split(arrays, task):
    """Returns the tensors of arrays by our paths, the inverse of `_joined`."""
    kernels = [arrays[f"head/{name}_to_span/kernel"] for name in ("start", "end")]
    tensors = {
        f"{_first_layer(task)}.weight": np.concatenate(kernels).T,
        f"{_first_layer(task)}.bias": arrays["head/start_to_span/bias"],
    }
    for direction, ending in _DIRECTIONS.items() if task.lstm else ():
        bias = arrays[f"head/lstm/{direction}_bias"]
        tensors[f"rnn.lstm.bias_ih_l0{ending}"] = bias
        tensors[f"rnn.lstm.bias_hh_l0{ending}"] = np.zeros_like(bias)
    return tensors


def write(task, folder):
    """Writes a folder that `gliner.GLiNER.from_pretrained` loads, with merged adapters.

    Args:
        task: a `ZeroShotTagger` with a preprocessor.
        folder: str or path, made when missing. Either all files are replaced, or on an error none.

    Raises:
        ValueError: the encoder's family has no counterpart in transformers.
    """
    task = merged(task)
    backbone, tokenizer = task.backbone, task.tokenizer
    record, _ = counterpart(backbone, "GLiNER")
    encoder = {"model_type": next(iter(record.names)), **written_config(record, backbone, "GLiNER")}
    encoder["pad_token_id"] = tokenizer.pad_token_id
    tensors = backbone_tensors(record, backbone, "GLiNER", _ENCODER)
    arrays, names = arrays_of(head_weights(task)), expand(_rows_of(task), _KINDS)
    tensors |= {n: transformed(arrays[path], x) for path, (n, x) in names.items() if path in arrays}
    tensors |= _split(arrays, task)
    settings = task.answer_settings()
    config = {
        "model_type": None,
        "model_name": f"{encoder['model_type']}",
        "name": "bert_keras",
        "encoder_config": encoder,
        "vocab_size": backbone.vocabulary_size,
        "class_token_index": settings["label_id"],
        "ent_token": tokenizer.id_to_token(settings["label_id"]),
        "sep_token": tokenizer.id_to_token(settings["separator_id"]),
        "max_neg_type_ratio": task.negative_ratio,
        **{key: values[0] for key, values in _ALLOWED.items()},
        **{theirs: getattr(task, ours) for theirs, ours in _SETTINGS.items()},
        "num_rnn_layers": int(task.lstm),
    }
    code = 'import gliner\n\nmodel = gliner.GLiNER.from_pretrained(".")'
    stale = (*files.TOKENIZER_FILES, "config.json", "task.json", "modules.json")
    configs = {GlinerFolder.config_file: config}
    write_folder(folder, task, tensors, configs, tokenizer, stale, "gliner", code)
