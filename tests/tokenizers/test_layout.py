"""Layouts are read off a tokenizer's post-processor."""

import pytest
import tokenizers
from checks import cases
from tokenizers import processors

from bert_keras.tokenizers import Layout, Tokenizer, WordPieceTokenizer
from bert_keras.tokenizers.text_encoder import read_layout

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
CLS, SEP, A, B = 2, 3, 5, 6
ENDS = (("[SEP]", SEP), ("[CLS]", CLS))


IDS = {token: i for i, token in enumerate(TOKENS)}


def template(single, pair):
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[*ENDS])


BERT = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
OF_BERT = Layout((CLS,), (SEP,), (SEP,), 1)


@cases(
    (BERT, OF_BERT),
    (processors.BertProcessing(*ENDS), OF_BERT),
    (processors.RobertaProcessing(*ENDS), ((CLS,), (SEP, SEP), (SEP,), 0)),
    (processors.Sequence([processors.ByteLevel(), BERT]), OF_BERT),
    (template("$A [SEP]", "$A $B [SEP]"), ((), (), (SEP,), 0)),
    (template("$A", "$A $B:1"), ((), (), (), 1)),
    (processors.ByteLevel(), None),
)
def test_a_layout_is_read_off_a_post_processor(processor, layout):
    found = read_layout(processor)
    assert found == layout
    if layout is not None:
        backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(IDS))
        backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        backend.post_processor = processor
        single, pair = backend.encode("a a"), backend.encode("a", "b")
        assert single.ids == [*found.before, A, A, *found.after]
        assert pair.ids == [*found.before, A, *found.between, B, *found.after]
        num_after = 1 + len(found.after)
        assert pair.type_ids[-num_after:] == [found.second_segment] * num_after
        assert (len(single.ids) - 2, len(pair.ids) - 2) == tuple(map(found.num_special, (0, 1)))


@cases(
    ("[CLS] $A [SEP]", "[CLS] $B:1 [SEP] $A [SEP]"),
    ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [CLS]"),
    ("[CLS]:2 $A [SEP]", "[CLS]:2 $A [SEP] $B:1 [SEP]:1"),
    ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:2 [SEP]:2"),
    ("[CLS] $A [SEP]", "[CLS] $A [SEP]:1 $B [SEP]:1"),
    ("$A $A", "$A $A $B"),
    ("[CLS] $A", "$A $B:1"),
)
def test_other_forms_are_refused(single, pair):
    with pytest.raises(ValueError, match="special tokens of a tokenizer"):
        read_layout(template(single, pair))


@pytest.mark.parametrize("processor", [None, processors.ByteLevel(trim_offsets=False)])
def test_without_a_template_the_layout_is_berts(processor):
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(IDS, unk_token="[UNK]"))
    if processor is not None:
        backend.post_processor = processor
    tokenizer = Tokenizer(backend)
    expected = WordPieceTokenizer(TOKENS)
    assert tokenizer.layout == expected.layout == OF_BERT
    assert tokenizer.encode("a", "b").ids == [CLS, A, SEP, B, SEP]
    assert tokenizer.encode("a", "b", special_tokens=False).ids == [A, B]
    assert tokenizer.get_config() == expected.get_config()


def test_a_token_may_be_a_whole_word(tmp_path):
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(IDS, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.RobertaProcessing(*ENDS)
    backend.save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.load(tmp_path).encode("a ab b").pieces == ["[CLS]", "a", "[UNK]", "b", "[SEP]"]


def test_a_layout_of_one_value_has_the_same_lengths():
    assert Layout((7,), (8, 8), (9,), 0).of(1) == Layout((1,), (1, 1), (1,), 0)
