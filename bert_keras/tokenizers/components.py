"""Components of the `tokenizers` library that several kinds of tokenizers share."""

import tokenizers
from tokenizers import normalizers, processors


def bert_normalizer(lowercase, strip_accents, split_chinese):
    """Returns BERT's normalizer."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(split_chinese),
        strip_accents=None if strip_accents is None else bool(strip_accents),
        lowercase=bool(lowercase),
    )


def template(layout, tokens):
    """Returns the post-processor that puts the special tokens of a `Layout` around texts.

    Args:
        layout: `Layout`.
        tokens: list or dict, the token of each id.
    """
    before, between, after = ([tokens[id] for id in ids] for ids in layout[:3])
    second = layout.second_segment
    return processors.TemplateProcessing(
        single=[*before, "$A", *after],
        pair=[*before, "$A", *between, f"$B:{second}", *(f"{x}:{second}" for x in after)],
        special_tokens=[
            (tokens[id], id) for id in {*layout.before, *layout.between, *layout.after}
        ],
    )


def with_template(processor, new):
    """Returns a post-processor with another template. `ByteLevel`, which sets offsets, stays."""
    if isinstance(processor, processors.Sequence):
        return processors.Sequence([with_template(part, new) for part in processor])
    return processor if isinstance(processor, processors.ByteLevel) else new


def add_special_tokens(backend, tokens, mask_token):
    """Makes tokens of the vocabulary special in text. The mask includes a space before it."""
    known = [token for token in tokens if backend.token_to_id(token) is not None]
    if backend.token_to_id(mask_token) is not None:
        known.append(tokenizers.AddedToken(mask_token, lstrip=True))
    backend.add_special_tokens(known)
