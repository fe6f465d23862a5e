"""The kinds of tokenizers, put together from the parts of the `tokenizers` library."""

import json

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bert_keras.tokenizers.sentence_pieces import read_sentence_pieces
from bert_keras.tokenizers.vocabulary import numbered, read_vocabulary

# What stands before the pieces of a SentencePiece file, and how many of its own it replaces.
UNIGRAM_IDS = {
    "xlm_roberta": (["<s>", "<pad>", "</s>", "<unk>"], 3),
    "camembert": (["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"], 1),
}


def require(ids, **tokens):
    """Raises `ValueError` unless the vocabulary holds the tokens; their names are arguments'."""
    missing = [f"{name}={token!r}" for name, token in tokens.items() if token not in ids]
    if missing:
        raise ValueError(
            f"The vocabulary must hold every special token. Missing: {', '.join(missing)}. "
            f"Received: {len(ids)} tokens, the first are {list(ids)[:5]}. Name the vocabulary's "
            "own special tokens, or check that this vocabulary is the one you mean."
        )


def bert_template(ids, cls_token, sep_token):
    """Returns the post-processor that makes `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`."""
    return processors.TemplateProcessing(
        single=[cls_token, "$A", sep_token],
        pair=[cls_token, "$A", sep_token, "$B:1", f"{sep_token}:1"],
        special_tokens=[(cls_token, ids[cls_token]), (sep_token, ids[sep_token])],
    )


def wordpiece_backend(
    vocabulary,
    lowercase=True,
    strip_accents=None,
    split_chinese=True,
    unknown_token="[UNK]",
    cls_token="[CLS]",
    sep_token="[SEP]",
    pad_token="[PAD]",
    mask_token="[MASK]",
    added_tokens=(),
    special_tokens_in_text=True,
    max_characters_per_word=100,
):
    """Returns BERT's tokenizer; the arguments are those of `WordPieceTokenizer`."""
    ids = numbered(vocabulary)
    required = {"cls_token": cls_token, "sep_token": sep_token, "pad_token": pad_token}
    required |= {f"added_tokens[{i}]": token for i, token in enumerate(added_tokens)}
    require(ids, unknown_token=unknown_token, **required)
    model = models.WordPiece(
        ids, unk_token=unknown_token, max_input_chars_per_word=int(max_characters_per_word)
    )
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = bert_normalizer(lowercase, strip_accents, split_chinese)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    backend.post_processor = bert_template(ids, cls_token, sep_token)
    never_split = list(added_tokens)
    if special_tokens_in_text:
        never_split += [pad_token, unknown_token, cls_token, sep_token, mask_token]
    backend.add_special_tokens([token for token in never_split if token in ids])
    return backend


def bert_normalizer(lowercase, strip_accents, split_chinese):
    """Returns BERT's cleaning of text."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(split_chinese),
        strip_accents=None if strip_accents is None else bool(strip_accents),
        lowercase=bool(lowercase),
    )


def byte_pair_backend(
    vocabulary,
    merges,
    add_prefix_space=False,
    *,
    cls_token="<s>",
    sep_token="</s>",
    pad_token="<pad>",
    mask_token="<mask>",
    unknown_token="<unk>",
):
    """Returns RoBERTa's tokenizer; the arguments are those of `BytePairTokenizer`."""
    if not isinstance(vocabulary, dict):
        with open(vocabulary, encoding="utf-8") as file:
            vocabulary = json.load(file)
    if isinstance(merges, (list, tuple)):
        merges = [tuple(merge.split(" ")) if isinstance(merge, str) else merge for merge in merges]
    else:
        lines = [line for line in read_vocabulary(merges) if line and not line.startswith("#vers")]
        merges = [tuple(line.split(" ")) for line in lines]
    require(vocabulary, cls_token=cls_token, sep_token=sep_token, pad_token=pad_token)
    try:
        backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    except Exception as error:
        raise ValueError(
            f"Merges must join two tokens of the vocabulary to a third. Received: {error}. Are the "
            "two files of one tokenizer?"
        ) from error
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(
        (sep_token, vocabulary[sep_token]),
        (cls_token, vocabulary[cls_token]),
        add_prefix_space=add_prefix_space,
    )
    _add_special(backend, [cls_token, pad_token, sep_token, unknown_token], mask_token)
    return backend


def unigram_backend(model, ids="xlm_roberta"):
    """Returns XLM-R's tokenizer; the arguments are those of `UnigramTokenizer`."""
    pieces, charsmap = read_sentence_pieces(model)
    first, num_replaced = UNIGRAM_IDS[ids]
    scores = [(token, -100.0 if token == "<unk>NOTUSED" else 0.0) for token in first]
    scores += [*pieces[num_replaced:], ("<mask>", 0.0)]
    backend = tokenizers.Tokenizer(models.Unigram(scores, unk_id=3, byte_fallback=False))
    if charsmap:
        backend.normalizer = normalizers.Precompiled(charsmap)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    backend.decoder = decoders.Metaspace(prepend_scheme="always")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(token, backend.token_to_id(token)) for token in ("<s>", "</s>")],
    )
    unused = [token for token in first if token.endswith("NOTUSED")]
    _add_special(backend, ["<s>", "<pad>", "</s>", "<unk>", *unused], "<mask>")
    return backend


def _add_special(backend, tokens, mask_token):
    """Has tokens of the vocabulary found in text as they stand; the mask takes a space with it."""
    known = [token for token in tokens if backend.token_to_id(token) is not None]
    backend.add_special_tokens(known)
    if backend.token_to_id(mask_token) is not None:
        backend.add_special_tokens([tokenizers.AddedToken(mask_token, lstrip=True)])
