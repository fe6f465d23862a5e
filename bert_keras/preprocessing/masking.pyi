from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bert_keras._types import Array
from bert_keras.tokenizers.tokenizer import Tokenizer

_Strategy: TypeAlias = Literal["pieces", "whole_words", "spans", "n_grams"]

STRATEGIES: tuple[_Strategy, ...]

class MaskedTokens(NamedTuple):
    token_ids: Array
    mask_positions: Array
    labels: Array
    weights: Array

class TokenKinds(NamedTuple):
    mask_id: int
    is_special: NDArray[np.bool_]
    continues_word: NDArray[np.bool_] | None
    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> Self: ...
    def word_starts(self, token_ids: Array) -> NDArray[np.bool_]: ...

class Masking:
    rate: float
    mask_share: float
    random_share: float
    strategy: _Strategy
    max_predictions: int | None
    span_probability: float
    max_span_length: int
    def __init__(
        self,
        rate: float = 0.15,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        strategy: _Strategy = "pieces",
        max_predictions: int | None = None,
        span_probability: float = 0.2,
        max_span_length: int | None = None,
    ) -> None: ...
    def num_predictions(self, sequence_length: int) -> int: ...
    def span_lengths(self) -> NDArray[np.float64]: ...
    def __call__(
        self,
        token_ids: Array,
        kinds: TokenKinds,
        generator: np.random.Generator,
        padding_mask: Array | None = None,
        word_starts: Array | None = None,
    ) -> MaskedTokens: ...
    def get_config(self) -> dict[str, Any]: ...
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self: ...

def mask_rows_alike(
    token_ids: Array,
    kinds: TokenKinds,
    numbers: ArrayLike,
    masking: Masking,
    padding_mask: Array,
    word_starts: Array | None = None,
) -> MaskedTokens: ...
def mask_tokens(
    token_ids: Array,
    kinds: TokenKinds,
    generator: np.random.Generator,
    masking: Masking | None = None,
    padding_mask: Array | None = None,
    word_starts: Array | None = None,
) -> MaskedTokens: ...
