"""DeBERTa's tokenizer, made from spm.model alone, against Hugging Face's class on the same file."""

import pytest
import sentencepiece
import transformers
from files import write_json
from hard_texts import HARD_TEXTS
from small_tokenizers import part, sentence_pieces
from test_family_parity import check_same, check_same_pairs
from tokenizers import normalizers

from bert_keras.tokenizers import Layout, Tokenizer, UnigramTokenizer
from bert_keras.tokenizers.sentencepiece_model import read_sentence_pieces

OPTIONS = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
OPTIONS |= {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
OPTIONS |= {"control_symbols": ["<ctl>"], "user_defined_symbols": ["<user>"]}
TEXTS = [
    *HARD_TEXTS,
    "  a  low\n\t town \u3000 here  ",
    "[CLS] a [MASK]b[SEP] <ctl> low",
    "Ｈａｌｆ ｶﾞｷﾞ cafe\u0301 ﬁne, don't (stop).",
]


@pytest.fixture(scope="module")
def model():
    """The bytes of an spm.model as DeBERTa's, which could spell bytes."""
    return sentence_pieces(TEXTS, **OPTIONS, byte_fallback=True)


@pytest.mark.parametrize("do_lower_case", [False, True])
def test_spm_model_alone_gives_hugging_faces_tokens(tmp_path, model, do_lower_case):
    (tmp_path / "spm.model").write_bytes(model)
    config = {"do_lower_case": do_lower_case, "split_by_punct": False}
    write_json(tmp_path / "tokenizer_config.json", config)
    write_json(tmp_path / "config.json", {"model_type": "deberta-v2", "vocab_size": 999})
    theirs = transformers.DebertaV2Tokenizer.from_pretrained(tmp_path)
    # Version 5 only composes characters. Version 4 applied the map of the file, as here.
    steps = [normalizers.Lowercase()] if do_lower_case else []
    first = tuple(OPTIONS[f"{name}_piece"] for name in ("pad", "bos", "eos", "unk"))
    steps.append(read_sentence_pieces(tmp_path / "spm.model", first)[-1])
    theirs.backend_tokenizer.normalizer = normalizers.Sequence(steps)
    ours = Tokenizer.load(tmp_path)
    assert ours.vocabulary == theirs.convert_ids_to_tokens(range(len(theirs)))
    assert (ours.layout, ours.mask_token_id) == (Layout((1,), (2,), (2,), 1), len(theirs) - 1)
    for text in TEXTS:
        check_same(ours, theirs, text)
    check_same_pairs(ours, theirs)
    ours.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").encode(TEXTS) == ours.encode(TEXTS)


def test_the_first_pieces_of_the_file_name_its_kind(tmp_path, model):
    path = tmp_path / "spm.model"
    path.write_bytes(model)
    assert UnigramTokenizer(path).layout == UnigramTokenizer(path, "deberta").layout
    with pytest.raises(ValueError, match=r"\['strip_accents'\] mean nothing .* deberta's"):
        UnigramTokenizer(path, strip_accents=True)
    path.write_bytes(model + part(trainer_spec={"treat_whitespace_as_suffix": True}))
    with pytest.raises(ValueError, match="treat_whitespace_as_suffix=False"):
        UnigramTokenizer(path)


def test_symbols_of_the_file_are_found_as_sentencepiece_finds_them(tmp_path):
    path = tmp_path / "spm.model"
    path.write_bytes(sentence_pieces(TEXTS, **OPTIONS))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = UnigramTokenizer(path)
    for text in ("low<user>er", "<user>low a", "a <user> low", "low\u2026 \uff21", "a\u00a0low"):
        assert ours(text) == theirs.encode(text)
