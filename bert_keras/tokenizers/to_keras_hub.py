"""A tokenizer as the settings and files of KerasHub's, where that has one like it.

Its classes clean and split text by rules of their own: on common text they give the same ids, on
characters that Unicode folds, control characters, and long numbers in byte-pair vocabularies, not
always.
"""

import json

from bert_keras.tokenizers.layout import Layout
from bert_keras.tokenizers.saved import ROLES

_NO_TOKENIZER = "Set the task's `preprocessor` to None to export it for ready inputs."


def to_keras_hub(tokenizer):
    """Returns a tokenizer in KerasHub's form.

    Args:
        tokenizer: a `Tokenizer`.

    Returns:
        settings: dict, arguments of KerasHub's tokenizer.
        files: dict, name in `assets/tokenizer` -> text.

    Raises:
        ValueError: KerasHub has no tokenizer that does the same.
    """
    kind = tokenizer.settings["model"]["type"]
    if kind not in _WRITERS:
        _refuse(f"one of the type {kind}", f"those of {sorted(_WRITERS)}")
    number, write, pair, is_plain = _WRITERS[kind]
    for role, names in ROLES.items():
        if getattr(tokenizer, role) != names[number]:
            _refuse(f"{role}={getattr(tokenizer, role)!r}", repr(names[number]))
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    if tokenizer.layout != (layout := Layout((cls,), (sep,) * pair, (sep,), int(pair == 1))):
        _refuse(str(tokenizer.layout), str(layout))
    found = [
        (tokenizer.settings[part] or {}).get("type") for part in ("normalizer", "pre_tokenizer")
    ]
    if found != is_plain:
        _refuse(f"cleaning and splitting by {found}", str(is_plain))
    return write(tokenizer, json.loads(tokenizer.to_json()))


def _word_piece(tokenizer, saved):
    vocabulary, normalizer = tokenizer.vocabulary, tokenizer.settings["normalizer"]
    if [line.rstrip() for line in vocabulary] != vocabulary or len({*vocabulary}) < len(vocabulary):
        _refuse("one that ends with a space, or twice the same", "different tokens")
    if saved["model"]["continuing_subword_prefix"] != "##":
        _refuse(repr(saved["model"]["continuing_subword_prefix"]), "'##' within words")
    in_text = [token["content"] for token in saved["added_tokens"]]
    roles = [getattr(tokenizer, role) for role in ROLES]
    if in_text and not {*roles} <= {*in_text}:
        _refuse(f"{in_text} in text", "all special tokens there, or none")
    strip_accents = normalizer["strip_accents"]
    settings = {
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer["lowercase"] if strip_accents is None else strip_accents,
        "split": True,
        "split_on_cjk": normalizer["handle_chinese_chars"],
        "suffix_indicator": "##",
        "oov_token": tokenizer.unknown_token,
        "special_tokens": [token for token in in_text if token not in roles] or None,
        "special_tokens_in_strings": bool(in_text),
    }
    return settings, {"vocabulary.txt": "".join(f"{token}\n" for token in vocabulary)}


def _byte_pair(tokenizer, saved):
    if not saved["added_tokens"]:
        _refuse("one that takes special tokens in text for characters", "no such")
    merges = [m if isinstance(m, str) else " ".join(m) for m in saved["model"]["merges"]]
    ids = {token: id for id, token in enumerate(tokenizer.vocabulary)}
    files = {
        "vocabulary.json": json.dumps(ids, ensure_ascii=False),
        "merges.txt": "".join(f"{merge}\n" for merge in merges),
    }
    return {"add_prefix_space": saved["pre_tokenizer"]["add_prefix_space"]}, files


def _refuse(found, known):
    raise ValueError(
        f"KerasHub's tokenizers have {known}. Received: {found}, which they cannot have. "
        f"{_NO_TOKENIZER}"
    )


# Type of the model -> which of the roles' usual names, how it is written, how many tokens stand
# between texts, and what cleans and splits text.
_WRITERS = {
    "WordPiece": (0, _word_piece, 1, ["BertNormalizer", "BertPreTokenizer"]),
    "BPE": (1, _byte_pair, 2, [None, "ByteLevel"]),
}
