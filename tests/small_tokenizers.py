"""A small tokenizer of RoBERTa's kind."""

import json

import tokenizers

from bert_keras.tokenizers import BytePairTokenizer

SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def byte_pair_tokenizer(texts, vocabulary_size=400, **options):
    """Returns a `BytePairTokenizer` whose first five ids are `SPECIAL_TOKENS`."""
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(texts, vocabulary_size, special_tokens=SPECIAL_TOKENS)
    model = json.loads(trained.to_str())["model"]
    return BytePairTokenizer(model["vocab"], [tuple(pair) for pair in model["merges"]], **options)
