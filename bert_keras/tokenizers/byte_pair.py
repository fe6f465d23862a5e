"""RoBERTa's tokenizer: bytes that are merged in pairs, in the order learned in training."""

import os
from collections.abc import Mapping, Sequence

import keras
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from bert_keras.checks import check_type, is_int, raise_at_first
from bert_keras.engine.atomic_files import read_json
from bert_keras.tokenizers.components import add_special_tokens
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.tokenizers.vocabulary import read_vocabulary, require_tokens
from bert_keras.types import Path


@keras.saving.register_keras_serializable(package="bert_keras")
class BytePairTokenizer(Tokenizer):
    """Splits text into the byte-level byte-pair tokens of GPT-2 and RoBERTa.

    Text is split into words, each with the space before it. Their bytes are written as 256
    printable characters (a space is `Ġ`), and neighbours are merged in the order in which training
    merged them. Text is not cleaned, and nothing is unknown. Pairs of texts are `<s> A </s></s> B
    </s>`, all in segment 0.

    Args:
        vocabulary: path of a vocab.json file, or a dict from token to id.
        merges: path of a merges.txt file, or a list of pairs of str or of `"first second"`.
        add_prefix_space: bool, put a space before the first word, so that it is tokenized like
            all others. Lists of words always get it.
        cls_token: str.
        sep_token: str.
        pad_token: str.
        mask_token: str; it includes the space before it.
        unknown_token: str; this and the mask may be absent from the vocabulary.
        model_max_length: int or None, the longest sequence of the model.

    Raises:
        TypeError: `merges` is neither a path nor a list.
        ValueError: the vocabulary lacks a special token, a byte, or a token of a merge, or its ids
            have gaps.

    Reference: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section
    2.2; Liu et al. 2019, https://arxiv.org/abs/1907.11692, section 4.4.
    """

    def __init__(
        self,
        vocabulary: Path | Mapping[str, int],
        merges: Path | Sequence[str] | Sequence[tuple[str, str]],
        add_prefix_space: bool = False,
        *,
        cls_token: str = "<s>",
        sep_token: str = "</s>",
        pad_token: str = "<pad>",
        mask_token: str = "<mask>",
        unknown_token: str = "<unk>",
        model_max_length: int | None = None,
    ) -> None:
        if not isinstance(vocabulary, dict):
            vocabulary = read_json(vocabulary)
        check_type("merges", merges, (list, tuple, str, os.PathLike), "a path or a list")
        if not isinstance(merges, (list, tuple)):
            merges = [line for line in read_vocabulary(merges) if line and line[:8] != "#version"]
        pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else merge for merge in merges]
        require_tokens(vocabulary, cls_token=cls_token, sep_token=sep_token, pad_token=pad_token)
        _check_vocabulary(vocabulary)
        try:
            backend = tokenizers.Tokenizer(models.BPE(vocabulary, pairs))
        except Exception as error:
            raise ValueError(
                f"Merges must join two tokens of the vocabulary to a third. Received: {error}. Do "
                "both files belong to the same tokenizer?"
            ) from error
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        backend.decoder = decoders.ByteLevel()
        sep, cls = ((token, vocabulary[token]) for token in (sep_token, cls_token))
        backend.post_processor = processors.RobertaProcessing(
            sep, cls, add_prefix_space=add_prefix_space
        )
        add_special_tokens(backend, [cls_token, pad_token, sep_token, unknown_token], mask_token)
        super().__init__(
            backend,
            cls_token=cls_token,
            sep_token=sep_token,
            pad_token=pad_token,
            mask_token=mask_token,
            unknown_token=unknown_token,
            model_max_length=model_max_length,
        )


def _check_vocabulary(ids):
    wrong = [not (is_int(id) and 0 <= id < len(ids)) for id in ids.values()]
    raise_at_first(wrong, list(ids.items()), "Ids must run from 0 without a gap")
    if missing := sorted(set(pre_tokenizers.ByteLevel.alphabet()) - ids.keys()):
        found = f"{len(missing)} of 256, the first are {missing[:5]}"
        raise ValueError(f"A byte-level vocabulary must hold all bytes. Missing: {found}.")
