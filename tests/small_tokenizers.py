"""Small vocabularies of byte pairs and of SentencePiece."""

import io
import json

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2

from bert_keras.tokenizers import BytePairTokenizer

SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def byte_pair_tokenizer(texts, vocabulary_size=400, **options):
    """Returns a `BytePairTokenizer` whose first five ids are `SPECIAL_TOKENS`."""
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(texts, vocabulary_size, special_tokens=SPECIAL_TOKENS)
    model = json.loads(trained.to_str())["model"]
    return BytePairTokenizer(model["vocab"], [tuple(pair) for pair in model["merges"]], **options)


def sentence_pieces(texts, kind="unigram", vocab_size=600, **options):
    """Returns the bytes of a SentencePiece file."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=kind,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def part(**specs):
    """Returns bytes that change settings of the SentencePiece file to whose end they are added."""
    return sentencepiece_model_pb2.ModelProto(**specs).SerializePartialToString()
