"""Components of the `tokenizers` library that several kinds of tokenizers share."""

import tokenizers
from tokenizers import normalizers, processors


def require_tokens(ids, **tokens):
    """Raises `ValueError` unless the vocabulary holds the tokens, given by argument name."""
    missing = [f"{name}={token!r}" for name, token in tokens.items() if token not in ids]
    if missing:
        raise ValueError(
            f"The vocabulary must hold every special token. Missing: {', '.join(missing)}. "
            f"Received: {len(ids)} tokens, the first are {list(ids)[:5]}. Pass the names of the "
            "vocabulary's own special tokens, or check that it is the right vocabulary."
        )


def bert_normalizer(lowercase, strip_accents, split_chinese):
    """Returns BERT's normalizer."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(split_chinese),
        strip_accents=None if strip_accents is None else bool(strip_accents),
        lowercase=bool(lowercase),
    )


def bert_template(ids, cls_token, sep_token):
    """Returns the post-processor that makes `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`."""
    return processors.TemplateProcessing(
        single=[cls_token, "$A", sep_token],
        pair=[cls_token, "$A", sep_token, "$B:1", f"{sep_token}:1"],
        special_tokens=[(cls_token, ids[cls_token]), (sep_token, ids[sep_token])],
    )


def in_one_segment(tokenizer, processor):
    """Returns a tokenizer's post-processor with the segment 0 for both texts of a pair."""
    if isinstance(processor, processors.Sequence):
        return processors.Sequence([in_one_segment(tokenizer, part) for part in processor])
    if isinstance(processor, processors.ByteLevel):  # It sets offsets, and adds no tokens.
        return processor
    layout, token = tokenizer.layout, tokenizer.id_to_token
    before, between, after = (list(map(token, ids)) for ids in layout[:3])
    return processors.TemplateProcessing(
        single=[*before, "$A", *after],
        pair=[*before, "$A", *between, "$B", *after],
        special_tokens=[(token(id), id) for id in {*layout.before, *layout.between, *layout.after}],
    )


def add_special_tokens(backend, tokens, mask_token):
    """Makes tokens of the vocabulary special in text. The mask includes a space before it."""
    known = [token for token in tokens if backend.token_to_id(token) is not None]
    if backend.token_to_id(mask_token) is not None:
        known.append(tokenizers.AddedToken(mask_token, lstrip=True))
    backend.add_special_tokens(known)
