"""What preprocessing refuses: the call, and what the message says."""

import types

import numpy as np
import pytest
from checks import refusals

from bert_keras.preprocessing import BucketedBatches, Masking, Ragged, TextPreprocessor
from bert_keras.preprocessing.batching import bucket_lengths
from bert_keras.preprocessing.collate import Rows, TextPacker
from bert_keras.preprocessing.masking import TokenKinds
from bert_keras.tokenizers import Layout, Tokenizer, WordPieceTokenizer

pytestmark = pytest.mark.once

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
KINDS = TokenKinds(4, np.arange(9) < 5, np.zeros(9, bool))
ROW = np.array([[2, 9, 3]])
BERT, ROBERTA = Layout((2,), (3,), (3,), 1), Layout((0,), (2, 2), (2,), 0)


def batches(lengths, labels=None, sample_weight=None, **options):
    return BucketedBatches(Rows(lengths).labelled(labels, sample_weight), **options)


def packed(*rows, layout=BERT, max_length=8, **options):
    tokenizer = types.SimpleNamespace(layout=layout, pad_token_id=0)
    return TextPacker(tokenizer, max_length, **options).pack(*map(Ragged.from_rows, rows))


def kinds(*tokens):
    return TokenKinds.from_tokenizer(WordPieceTokenizer(tokens))


def preprocessor(tokenizer=None, **options):
    tokenizer = tokenizer or WordPieceTokenizer([*SPECIAL_TOKENS, "a"])
    return TextPreprocessor(tokenizer, **options)


ONE = [[7]]
UNEQUAL = [[5] * 6, [5]], [[6], [6] * 6]
LIMITS = ("max_predictions", "span_probability", "max_span_length")
test_impossible_arguments_are_refused = refusals(
    # Batches
    (lambda: bucket_lengths([3, 65], (16, 64)), r"an int from 65\. Received: 64"),
    (lambda: batches([]), "at least one row"),
    (lambda: batches([5], batch_size=0), r"`batch_size` must be an int from 1\. Received: 0"),
    (lambda: batches([5, 5], [1, 2, 3]), r"`labels` must have one .*row\. .*2 rows, 3 labels"),
    (lambda: batches([5, 5], {"a": [1]}), r"labels\['a'\]"),
    (
        lambda: batches([3, 1], Ragged.from_rows([[1, 1, 1], [1, 1]])),
        r"as many entries as a row has tokens, .* Received \(2, 1\) at the index 1",
    ),
    (lambda: batches([5, 5], [1, 2], sample_weight=[1.0]), "`sample_weight`"),
    # Masking
    *((lambda x=x: Masking(**{x: 0}), f"`{x}`.*Received") for x in ("rate", *LIMITS)),
    (lambda: Masking(rate=1.0), "`rate`.*Received"),
    (lambda: Masking(mask_share=-0.1), "`mask_share`.*Received"),
    (lambda: Masking(strategy="words"), "`strategy`.*Received"),
    (lambda: Masking(mask_share=0.8, random_share=0.3), "share.*Received"),
    (lambda: kinds(*SPECIAL_TOKENS[:4], "a"), "hold a `mask_token`. Received: 5 tokens without"),
    (lambda: kinds(*SPECIAL_TOKENS), "more than special tokens"),
    (lambda: Masking()(ROW, KINDS, np.random.default_rng(0), ROW), "0 to 8"),
    # Packing
    (lambda: packed(ONE, max_length=1), r"`max_length` must be an int from 2\. Received: 1"),
    (lambda: packed(ONE, ONE, max_length=2), r"`max_length` must be an int from 3\. Received: 2"),
    (lambda: packed(ONE, ONE, max_length=3, layout=ROBERTA), "`max_length` .* int from 4"),
    (lambda: preprocessor(max_length=8)(["a"], ["b", "c"]), "1 first, 2 second"),
    (lambda: packed(ONE, truncation="only_second"), r"'head', .*'only_second'\. Pairs allow"),
    *(
        (lambda x=x: packed(ONE, ONE, truncation=x), f"'only_second'.*'{x}'. Single")
        for x in ("head", "tail", "head_tail", "longest")
    ),
    (lambda: packed(*UNEQUAL, truncation="only_first"), "Received 6 at the index 1"),
    (lambda: packed(*UNEQUAL, truncation="only_second"), "index 0"),
    # Rows
    (lambda: Ragged.from_flat(np.array([1, 2]), [1, 2]), "sum 3, 2 values"),
    (lambda: Ragged.from_rows([[1, 2]]).to_dense(1), r"`width` .* an int from 2\. Received: 1"),
    # The preprocessor
    (lambda: preprocessor(max_length=2), "max_length"),
    (lambda: preprocessor(max_length="8"), "max_length"),
    (lambda: preprocessor(truncation="cut"), "truncation"),
    (lambda: preprocessor(input_names=("token",)), "`input_names` .* one of .* Received: 'token'"),
    (lambda: preprocessor("vocab.txt"), TypeError, "must be a `Tokenizer`"),
    (lambda: preprocessor(Tokenizer()).room(), "has no vocabulary"),
    (lambda: preprocessor(max_length=8)(["a"], length=9), r"`length` .* from 0 to 8\. .*: 9"),
)
