"""Writes tiny folders with the files of the forty encoders that people download most.

`forty.json` describes them: the keys of each config, and for each repository on the Hugging Face
Hub its files, the names of its tensors and the kind of its tokenizer. Sizes are tiny, and weights
are random.
"""

import functools
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import safetensors.torch
import tokenizers
import torch
import transformers
from checks import perturbed
from files import contents, read_json, write_json
from small_tokenizers import SPECIAL_TOKENS, sentence_pieces

TEXTS = ["the low town of New York, and the lower ones!", "a new town", "下町 is low"]
QUERY = "where is the low town?"
CORPUS = [*TEXTS, QUERY, "query: search_query: passage: Represent this sentence for: "] * 3
_NOTHING = MappingProxyType({})
_DATA = read_json(Path(__file__).parent / "forty.json")


class Encoder(NamedTuple):
    """A checkpoint of the table.

    Attributes:
        number: int, its row in the documentation's table.
        name: str, owner and repository.
        task: str, the class that people load it as; `""` if it is refused.
        architecture: str, the class of transformers that gives the reference's outputs.
        tokenizer: str, see `TOKENIZERS`.
        config: str, the kind of its config.json, without the size of the vocabulary.
        keys: dict, what the config has besides, or with another value.
        labels: list of str, the names in the config.
        sentences: dict, arguments of `sentence_files`, if it has the files of
            sentence-transformers.
        files: dict, other JSON files by name.
        beside: list of str, files of other libraries, which are not read.
        names: str, how its tensors' names differ from those of transformers, see `NAMES`.
        weights: str, the file of its weights.
        dtype: str, that of its weights.
        pairs: bool, whether it reads pairs of texts.
    """

    number: int
    name: str
    task: str
    architecture: str
    tokenizer: str
    config: str = ""
    keys: Mapping = _NOTHING
    labels: tuple = ()
    sentences: Mapping | None = None
    files: Mapping = _NOTHING
    beside: tuple = ()
    names: str = ""
    weights: str = "model.safetensors"
    dtype: str = "float32"
    pairs: bool = False

    @property
    def prompts(self):
        return (self.sentences or {}).get("prompts", {})


FORTY = {row["name"]: Encoder(**row) for row in _DATA["encoders"]}


# Tokenizers


def _write_lines(folder, first=(), last=()):
    usual = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set("".join(CORPUS).lower() + "ABNY") - {" "})
    words = ("[unused0]", "[unused1]", "the", "town", "low")
    lines = [*first, *usual, *letters, *(f"##{x}" for x in letters), *words, *last]
    text = "".join(f"{line}\n" for line in lines)
    (folder / "vocab.txt").write_text(text, encoding="utf-8")


def _write_tokenizer(folder, tokenizer, **config):
    """Writes the tokenizer.json of a tokenizer of transformers, and its config."""
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)


def word_pieces(folder, do_lower_case=True, has_json=True):
    """BERT's vocab.txt, with capitals if the case is kept; with a tokenizer.json or alone."""
    _write_lines(folder, last=() if do_lower_case else ("New", "York"))
    if has_json:
        options = {"do_lower_case": do_lower_case}
        tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"), **options)
        _write_tokenizer(folder, tokenizer, **options, model_max_length=512)


def mpnet_words(folder):
    _write_lines(folder, ("<s>", "<pad>", "</s>", "<unk>"), ("<mask>",))
    tokenizer = transformers.MPNetTokenizer(str(folder / "vocab.txt"))
    roles = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>"}
    roles |= {"unk_token": "[UNK]", "pad_token": "<pad>", "mask_token": "<mask>"}
    config = {"do_lower_case": True, "tokenizer_class": "MPNetTokenizer"}
    _write_tokenizer(folder, tokenizer, **roles, **config)


def _byte_pairs(special):
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(CORPUS, vocab_size=330, special_tokens=special)
    return trained


def byte_pairs(folder, has_json=True):
    """RoBERTa's vocab.json and merges.txt, with a tokenizer.json or with the roles alone."""
    _byte_pairs(SPECIAL_TOKENS).save_model(str(folder))
    if has_json:
        files = {"vocab": str(folder / "vocab.json"), "merges": str(folder / "merges.txt")}
        return _write_tokenizer(folder, transformers.RobertaTokenizer(**files))
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>"}
    mask = {"content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False}
    roles |= {"pad_token": "<pad>", "cls_token": "<s>", "mask_token": mask}
    write_json(folder / "special_tokens_map.json", roles)


def modern_byte_pairs(folder):
    """ModernBERT's tokenizer.json alone."""
    trained = _byte_pairs(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    trained.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    trained.save(str(folder / "tokenizer.json"))
    config = {f"{role}_token": f"[{role.upper()}]" for role in ("unk", "cls", "sep", "pad", "mask")}
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 8192}
    config |= {"model_input_names": ["input_ids", "attention_mask"]}
    write_json(folder / "tokenizer_config.json", config)


def unigram(folder, tokenizer_class="XLMRobertaTokenizer", has_json=True):
    """XLM-R's SentencePiece file, with a tokenizer.json or alone."""
    model = sentence_pieces(CORPUS, vocab_size=120)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    if has_json:
        tokenizer = transformers.XLMRobertaTokenizer.from_pretrained(folder)
        roles = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>"}
        roles |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
        config = {"model_max_length": 512, "tokenizer_class": tokenizer_class}
        _write_tokenizer(folder, tokenizer, **roles, **config)


def deberta_pieces(folder, has_json=True):
    """DeBERTa's spm.model, with what transformers saves beside it or alone."""
    options = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "vocab_size": 120}
    options |= {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"}
    (folder / "spm.model").write_bytes(sentence_pieces(CORPUS, unk_piece="[UNK]", **options))
    config = {"do_lower_case": False, "vocab_type": "spm"}
    write_json(folder / "tokenizer_config.json", config)
    if has_json:
        tokenizer = transformers.DebertaV2Tokenizer.from_pretrained(folder)
        roles = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
        roles = {f"{role}_token": getattr(tokenizer, f"{role}_token") for role in roles}
        config |= {"split_by_punct": False, "tokenizer_class": "DebertaV2Tokenizer"}
        write_json(folder / "added_tokens.json", {"[MASK]": tokenizer.mask_token_id})
        write_json(folder / "special_tokens_map.json", roles)
        _write_tokenizer(folder, tokenizer, **roles, **config)


TOKENIZERS = {
    "word pieces": word_pieces,
    "cased word pieces": functools.partial(word_pieces, do_lower_case=False),
    "vocab.txt": functools.partial(word_pieces, do_lower_case=False, has_json=False),
    "MPNet": mpnet_words,
    "byte pairs": byte_pairs,
    "byte pairs without tokenizer.json": functools.partial(byte_pairs, has_json=False),
    "ModernBERT": modern_byte_pairs,
    "Unigram": unigram,
    "Unigram of no class": functools.partial(unigram, tokenizer_class="PreTrainedTokenizerFast"),
    "SentencePiece": functools.partial(unigram, has_json=False),
    "spm.model": functools.partial(deberta_pieces, has_json=False),
    "DeBERTa": deberta_pieces,
}


@functools.cache
def _tokenizer_files(kind, model_type):
    """Returns the files of a tokenizer, bytes by name, and the number of its tokens."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        TOKENIZERS[kind](folder)
        files = contents(folder)
        write_json(folder / "config.json", {"model_type": model_type})
        return files, len(transformers.AutoTokenizer.from_pretrained(folder))


# Names of tensors


def _replacing(names):
    """Returns a function that replaces parts of the names of tensors."""

    def rename(tensors):
        return {
            functools.reduce(lambda name, old: name.replace(old, names[old]), names, name): tensor
            for name, tensor in tensors.items()
        }

    return rename


def _joining(joined):
    """Returns a function that joins tensors whose names differ in one part, in order."""

    def join(tensors):
        found = dict(tensors)
        for whole, parts in joined.items():
            for name in [name for name in tensors if f".{parts[0]}." in name]:
                pieces = [found.pop(name.replace(f".{parts[0]}.", f".{part}.")) for part in parts]
                found[name.replace(f".{parts[0]}.", f".{whole}.")] = torch.cat(pieces)
        return found

    return join


def _adding(shapes):
    """Returns a function that adds tensors of the given shapes."""
    ramps = {name: torch.linspace(-1, 1, math.prod(shape)).sin() for name, shape in shapes.items()}
    return lambda tensors: tensors | {name: ramps[name].reshape(shapes[name]) for name in shapes}


def _under(prefix):
    """Returns a function that puts a prefix before all names but those of a classifier."""
    return lambda tensors: {
        name if name.startswith("classifier") else prefix + name.removeprefix("gte."): tensor
        for name, tensor in tensors.items()
    }


_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
_DETECTOR = {"dense.weight": (16, 16), "dense.bias": (16,), "classifier.weight": (1, 16)}
_DETECTOR |= {"classifier.bias": (1,), "LayerNorm.weight": (16,), "LayerNorm.bias": (16,)}
_NEW = [
    _joining({"attention.qkv_proj": _QKV, "mlp.up_gate_proj": ("mlp.up_proj", "mlp.gate_proj")}),
    _under("new."),
    _replacing({"self_attn.o_proj": "attention.o_proj", "layers.": "encoder.layer."}),
    _replacing({"post_attention_layernorm": "attn_ln", "post_mlp_layernorm": "mlp_ln"}),
]
_NORMS = {"attention.output.LayerNorm": "norm1", "output.LayerNorm": "norm2"}
_NORMS |= {"post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}
NAMES = {
    "gamma": [
        _replacing({"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"})
    ],
    "buffers": [lambda tensors: tensors | {"embeddings.position_ids": torch.arange(128)[None]}],
    "ColBERT": [_under("bert."), _adding({"linear.weight": (8, 16)})],
    "discriminator": [
        _replacing({"cls.predictions.transform": "lm_predictions.lm_head"}),
        _replacing({"cls.predictions.bias": "lm_predictions.lm_head.bias"}),
        _adding({f"mask_predictions.{name}": shape for name, shape in _DETECTOR.items()}),
        _adding({"deberta.embeddings.position_embeddings.weight": (128, 16)}),
    ],
    "nomic": [
        _joining({"attn.Wqkv": _QKV}),
        _replacing({"layers.": "encoder.layers.", "embeddings.LayerNorm": "emb_ln"} | _NORMS),
        _replacing({"self_attn.o_proj": "attn.out_proj", "down_proj": "fc2"}),
        _replacing({"up_proj": "fc11", "gate_proj": "fc12"}),
    ],
    "new": _NEW,
    "new with a classifier": [
        *_NEW,
        _adding({"classifier.weight": (1, 16), "classifier.bias": (1,)}),
    ],
    "flash": [
        _joining({"mixer.Wqkv": [f"attention.self.{x}" for x in ("query", "key", "value")]}),
        _replacing(
            {"encoder.layer.": "encoder.layers.", "embeddings.LayerNorm": "emb_ln"} | _NORMS
        ),
        _replacing({"attention.output.dense": "mixer.out_proj", "intermediate.dense": "mlp.fc1"}),
        _replacing({"output.dense": "mlp.fc2"}),
    ],
}

# Folders


def sentence_files(modules=(), pooling="mean", lower=False, **config):
    """Returns the files of sentence-transformers with modules after the encoder and the pooling."""
    kinds = ["Transformer", "Pooling", *modules]
    package = "sentence_transformers.models"
    listed = [
        {"idx": i, "name": f"{i}", "path": f"{i}_{kind}" if i else "", "type": f"{package}.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    names = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    flags = {f"pooling_mode_{theirs}": pooling == ours for ours, theirs in names.items()}
    versions = {"__version__": {"sentence_transformers": "2.2.2", "pytorch": "1.12.1"}}
    return {
        "modules.json": listed,
        "1_Pooling/config.json": {"word_embedding_dimension": 16, **flags},
        "sentence_bert_config.json": {"max_seq_length": 128, "do_lower_case": lower},
        "config_sentence_transformers.json": versions | config,
    }


def write_encoder(encoder, folder):
    """Writes an encoder's files, and returns the model of transformers that has its weights."""
    config = _DATA["configs"].get(encoder.config, {}) | dict(encoder.keys)
    files, size = _tokenizer_files(encoder.tokenizer, config.get("model_type", "roberta"))
    for name, data in {**files, **dict.fromkeys(encoder.beside, b"")}.items():
        (folder / name).write_bytes(data)
    if encoder.labels:
        config["id2label"] = {str(i): label for i, label in enumerate(encoder.labels)}
        config["label2id"] = {label: i for i, label in enumerate(encoder.labels)}
    config = {"architectures": [encoder.architecture], "vocab_size": size, **config}
    files = {} if encoder.sentences is None else sentence_files(**encoder.sentences)
    for name, value in {"config.json": config, **files, **encoder.files}.items():
        write_json(folder / name, value)
    if not encoder.task:
        (folder / encoder.weights).write_bytes(b"never read")
        if not encoder.config and not encoder.keys:
            (folder / "config.json").unlink()
        return None
    model = _random_model(encoder, config)
    tied = model.all_tied_weights_keys
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    for change in NAMES.get(encoder.names, ()):
        tensors = change(tensors)
    dtype = getattr(torch, encoder.dtype)
    tensors = {name: x.to(dtype) if x.is_floating_point() else x for name, x in tensors.items()}
    if encoder.weights == "pytorch_model.bin":
        torch.save(tensors, folder / encoder.weights)
    else:
        safetensors.torch.save_file(tensors, folder / encoder.weights, {"format": "pt"})
    return model


def _random_model(encoder, config):
    """Returns the model of transformers, whose weights the dtype of the file represents."""
    torch.manual_seed(0)
    cls = getattr(transformers, encoder.architecture)
    config = config | _DATA["native"].get(encoder.config, {})
    skipped = ("model_type", "architectures", "transformers_version")
    config = {name: x for name, x in config.items() if x is not None and name not in skipped}
    if "id2label" in config:
        config["id2label"] = dict(enumerate(encoder.labels))
    model = perturbed(cls(cls.config_class(**config)).eval())
    return model.to(getattr(torch, encoder.dtype)).float()
