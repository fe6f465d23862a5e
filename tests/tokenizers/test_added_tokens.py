"""Tokens that files beside a vocabulary add to it, against Hugging Face's reading of them."""

import json

import pytest
import tokenizers
import transformers
from checks import cases
from files import write_json
from small_tokenizers import sentence_pieces
from test_deberta_tokenizer import OPTIONS

from bert_keras.tokenizers import Tokenizer
from bert_keras.tokenizers.vocabulary import write_vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = [*SPECIAL, *LETTERS, *("##" + x for x in LETTERS), "the", "cat", "[unused1]", "[E1]"]
LINES = ["def the cat sat, on [unused1] mat"] * 5
TEXTS = [
    *("the New York cat", "new york", "COVIDs covid 19COVID", "precovids", "Zürich  zurich, the"),
    *("[E1]cat[E1] sat", "the [unused1] [MASK] a[MASK] b", "e1 [e1] [cls] [CLS]", "x<ctl>y <ctl>"),
]


def byte_pairs(folder):
    trained = tokenizers.ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(LINES, 300, special_tokens=special)
    trained.save_model(str(folder))
    return {"tokenizer_class": "RobertaTokenizer", "mask_token": "<mask>"}, trained.get_vocab_size()


def word_pieces(folder):
    write_vocabulary(folder / "vocab.txt", WORDS)
    return {"tokenizer_class": "BertTokenizer", "do_lower_case": True}, len(WORDS)


def deberta(folder):
    model = sentence_pieces(LINES, **OPTIONS, normalization_rule_name="identity")
    (folder / "spm.model").write_bytes(model)
    write_json(folder / "config.json", {"model_type": "deberta-v2"})
    size = len(transformers.DebertaV2Tokenizer.from_pretrained(folder))
    return {"tokenizer_class": "DebertaV2Tokenizer"}, size


def described(size, **flags):
    """The `added_tokens_decoder` of three new tokens."""
    plain = {"special": False, "normalized": True, "lstrip": False, "rstrip": False} | flags
    names = ("covid", "New York", "Zürich")
    return {str(size + i): {"content": name, **plain} for i, name in enumerate(names)}


# Name -> the files that add tokens, by the size of the vocabulary.
FILES = {
    **{
        f"{flag}={value}": lambda size, flag=flag, value=value: {
            "tokenizer_config.json": {"added_tokens_decoder": described(size, **{flag: value})}
        }
        for flag, value in (
            *((name, True) for name in ("single_word", "lstrip", "rstrip", "special")),
            *((name, False) for name in ("normalized", "special")),
        )
    },
    "added_tokens.json": lambda size: {
        "added_tokens.json": {"New York": size, "covid": size + 1, "[E2]": size + 2},
        "special_tokens_map.json": {"additional_special_tokens": ["[E2]", "[unused1]"]},
    },
    "map": lambda size: {
        "special_tokens_map.json": {
            "additional_special_tokens": ["[E1]"],
            "mask_token": {"content": "[E1]", "lstrip": False},
        }
    },
    "config of dicts": lambda size: {
        "tokenizer_config.json": {
            "additional_special_tokens": [
                {"__type": "AddedToken", "content": "[E1]", "lstrip": True, "normalized": False}
            ]
        }
    },
    "config": lambda size: {
        "tokenizer_config.json": {"additional_special_tokens": ["[E1]", "[unused1]"]}
    },
    "config and decoder": lambda size: {
        "tokenizer_config.json": {
            "added_tokens_decoder": described(size),
            "additional_special_tokens": ["[E1]", "covid"],
        },
        "added_tokens.json": {"[E1]": 3},
        "special_tokens_map.json": {"additional_special_tokens": ["cat"]},
    },
    "extra": lambda size: {"tokenizer_config.json": {"extra_special_tokens": ["[unused1]"]}},
}


@pytest.mark.parametrize(
    ("make", "name"),
    # Hugging Face's library drops lists of further tokens beside a SentencePiece file.
    [(m, n) for m in (word_pieces, byte_pairs, deberta) for n in FILES if m != deberta or "=" in n],
)
@pytest.mark.parametrize("has_json", [False, True])
def test_added_tokens_equal_hugging_faces(tmp_path, make, name, has_json):
    config, size = make(tmp_path)
    files = FILES[name](size)
    if make is deberta:  # The file lacks the mask, so that real folders describe it too.
        mask = {"content": "[MASK]", "special": True}
        files["tokenizer_config.json"]["added_tokens_decoder"][str(size - 1)] = mask
    write_json(tmp_path / "tokenizer_config.json", config)
    if has_json:  # A tokenizer.json that lacks the tokens.
        Tokenizer.load(tmp_path).save_assets(tmp_path)
        if make is not word_pieces:
            config["tokenizer_class"] = "PreTrainedTokenizerFast"
            roles = Tokenizer.load(tmp_path).get_config()
            roles = {r.replace("unknown", "unk"): t for r, t in roles.items() if t is not None}
            config |= roles
    for file, content in {"tokenizer_config.json": {}, **files}.items():
        own = config if file == "tokenizer_config.json" else {}
        write_json(tmp_path / file, own | content)
    ours = Tokenizer.load(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert ours.mask_token_id == theirs.mask_token_id
    for text in TEXTS:
        assert ours(text) == theirs(text, add_special_tokens=False)["input_ids"], text
    ours.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved")(TEXTS) == ours(TEXTS)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert again(TEXTS, add_special_tokens=False)["input_ids"] == ours(TEXTS)


@cases(
    ({"additional_special_tokens": [3]}, "must be a str, or a dict .* Received: 3"),
    ({"additional_special_tokens": 3}, r"` a list\. Received: 3"),
    ({"extra_special_tokens": [{"lstrip": True}]}, "the str `content`"),
    ({"added_tokens_decoder": {"0": {"content": "[PAD]", "lstrip": 1}}}, "the bools"),
    ({"added_tokens_decoder": ["a"]}, r"must be a dict from ids.* Received: \["),
    ({"added_tokens_decoder": {"x": {"content": "a"}}}, "must be a dict from ids"),
    ({"added_tokens_decoder": {"99": {"content": "new"}}}, "by the ids that follow.*'new': 99"),
    ({"added_tokens_decoder": {"9" * 30: {"content": "new"}}}, "`new` in .* must be an int"),
)
@pytest.mark.parametrize("has_json", [False, True])
def test_damaged_lists_of_added_tokens_are_refused(tmp_path, has_json, config, message):
    if has_json:
        word_pieces(tmp_path)
        Tokenizer.load(tmp_path).save_assets(tmp_path)
    own, _ = word_pieces(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(own | config))
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("lstrip", [False, True])
def test_the_files_decide_whether_the_mask_includes_the_space_before_it(tmp_path, lstrip):
    config, _ = byte_pairs(tmp_path)
    mask = {"content": "<mask>", "lstrip": lstrip, "normalized": False, "special": True}
    write_json(tmp_path / "tokenizer_config.json", config | {"added_tokens_decoder": {"4": mask}})
    ids = Tokenizer.load(tmp_path)("the <mask>")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert ids == theirs("the <mask>", add_special_tokens=False)["input_ids"]
    assert len(ids) == len(Tokenizer.load(tmp_path)("the<mask>")) + (not lstrip)
