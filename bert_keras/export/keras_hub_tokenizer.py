"""Writes a tokenizer as the settings and files of its KerasHub counterpart, if there is one.

KerasHub's classes clean and split text by rules of their own: on common text they return the same
ids, but not always on characters that Unicode folds, on control characters, and on long numbers in
byte-pair vocabularies. SentencePiece files are not written.
"""

import json

from bert_keras.tokenizers.text_encoder import Layout
from bert_keras.tokenizers.tokenizer_files import ROLES

_NO_TOKENIZER = "Set the task's `preprocessor` to None to export it for ready inputs."


def to_keras_hub(tokenizer):
    """Returns a tokenizer in KerasHub's form.

    Args:
        tokenizer: a `Tokenizer`.

    Returns:
        settings: dict, arguments of KerasHub's tokenizer.
        files: dict, name in `assets/tokenizer` -> bytes.

    Raises:
        ValueError: KerasHub has no equal tokenizer.
    """
    kind = tokenizer.settings["model"]["type"]
    if kind not in _WRITERS:
        _refuse(f"one of the type {kind}", f"those of {sorted(_WRITERS)}")
    number, write, pair, allowed = _WRITERS[kind]
    for role, names in ROLES.items():
        if getattr(tokenizer, role) != names[number]:
            _refuse(f"{role}={getattr(tokenizer, role)!r}", repr(names[number]))
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    if tokenizer.layout != (layout := Layout((cls,), (sep,) * pair, (sep,), int(pair == 1))):
        _refuse(str(tokenizer.layout), str(layout))
    parts = tokenizer.settings["normalizer"], tokenizer.settings["pre_tokenizer"]
    types = [(part or {}).get("type") for part in parts]
    if types != allowed:
        _refuse(f"cleaning and splitting by {types}", str(allowed))
    return write(tokenizer, json.loads(tokenizer.to_json()))


def _word_piece(tokenizer, saved):
    vocabulary, normalizer = tokenizer.vocabulary, tokenizer.settings["normalizer"]
    if [line.rstrip() for line in vocabulary] != vocabulary or len({*vocabulary}) < len(vocabulary):
        _refuse("one that ends with a space, or the same one twice", "different tokens")
    if saved["model"]["continuing_subword_prefix"] != "##":
        _refuse(repr(saved["model"]["continuing_subword_prefix"]), "'##' within words")
    in_text = [token["content"] for token in saved["added_tokens"]]
    roles = [getattr(tokenizer, role) for role in ROLES]
    if in_text and not {*roles} <= {*in_text}:
        _refuse(f"{in_text} in text", "all special tokens in text, or none")
    strip_accents = normalizer["strip_accents"]
    settings = {
        "vocabulary": None,
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer["lowercase"] if strip_accents is None else strip_accents,
        "split": True,
        "split_on_cjk": normalizer["handle_chinese_chars"],
        "suffix_indicator": "##",
        "oov_token": tokenizer.unknown_token,
        "special_tokens": [token for token in in_text if token not in roles] or None,
        "special_tokens_in_strings": bool(in_text),
    }
    return settings, {"vocabulary.txt": _lines(vocabulary)}


def _byte_pair(tokenizer, saved):
    if not saved["added_tokens"]:
        _refuse("one that treats special tokens in text as characters", "none of this kind")
    merges = [m if isinstance(m, str) else " ".join(m) for m in saved["model"]["merges"]]
    ids = {token: id for id, token in enumerate(tokenizer.vocabulary)}
    files = {
        "vocabulary.json": json.dumps(ids, ensure_ascii=False).encode(),
        "merges.txt": _lines(merges),
    }
    prefix = saved["pre_tokenizer"]["add_prefix_space"]
    return {"vocabulary": None, "merges": None, "add_prefix_space": prefix}, files


def _lines(tokens):
    return "".join(f"{token}\n" for token in tokens).encode()


def _refuse(received, rule):
    raise ValueError(
        f"KerasHub's tokenizers have {rule}. Received: {received}, which they cannot have. "
        f"{_NO_TOKENIZER}"
    )


# Type of the model -> which of the roles' usual names, the function that writes it, the number of
# tokens between texts, and the types that clean and split text.
_WRITERS = {
    "WordPiece": (0, _word_piece, 1, ["BertNormalizer", "BertPreTokenizer"]),
    "BPE": (1, _byte_pair, 2, [None, "ByteLevel"]),
}
