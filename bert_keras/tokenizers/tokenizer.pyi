from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import tokenizers
from numpy.typing import NDArray

from bert_keras._types import Path, Texts
from bert_keras.tokenizers.layout import Layout

TEXTS_AT_ONCE: int

class Encoding(NamedTuple):
    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]
    segment_ids: list[int]

class Tokenizer:
    # An absent role has no token; those that every tokenizer has are str.
    cls_token: str
    sep_token: str
    pad_token: str
    mask_token: str | None
    unknown_token: str | None
    model_max_length: int | None
    layout: Layout
    settings: dict[str, Any]
    def __init_subclass__(cls, made_of: str | None = None, **options: Any) -> None: ...
    def __init__(
        self,
        backend: tokenizers.Tokenizer | None = None,
        *,
        cls_token: str | None = None,
        sep_token: str | None = None,
        pad_token: str | None = None,
        mask_token: str | None = None,
        unknown_token: str | None = None,
        model_max_length: int | None = None,
    ) -> None: ...
    # Always a `Tokenizer`: the checkpoint's tokenizer.json says which one it is, not the class.
    @classmethod
    def from_preset(
        cls,
        preset: Path,
        *,
        cls_token: str = ...,
        sep_token: str = ...,
        pad_token: str = ...,
        mask_token: str = ...,
        unknown_token: str = ...,
        model_max_length: int | None = ...,
        lowercase: bool = ...,
        strip_accents: bool | None = ...,
        split_chinese: bool = ...,
        added_tokens: Sequence[str] = ...,
        special_tokens_in_text: bool = ...,
        max_characters_per_word: int = ...,
        add_prefix_space: bool = ...,
    ) -> Tokenizer: ...
    @classmethod
    def load(
        cls,
        source: Path,
        *,
        cls_token: str = ...,
        sep_token: str = ...,
        pad_token: str = ...,
        mask_token: str = ...,
        unknown_token: str = ...,
        model_max_length: int | None = ...,
        lowercase: bool = ...,
        strip_accents: bool | None = ...,
        split_chinese: bool = ...,
        added_tokens: Sequence[str] = ...,
        special_tokens_in_text: bool = ...,
        max_characters_per_word: int = ...,
        add_prefix_space: bool = ...,
    ) -> Tokenizer: ...
    @staticmethod
    def resolve(source: Path) -> str: ...
    @property
    def has_vocabulary(self) -> bool: ...
    @property
    def vocabulary(self) -> list[str]: ...
    @property
    def vocabulary_size(self) -> int: ...
    @cached_property
    def continues_word(self) -> NDArray[np.bool_] | None: ...
    @property
    def cls_token_id(self) -> int: ...
    @property
    def sep_token_id(self) -> int: ...
    @property
    def pad_token_id(self) -> int: ...
    @property
    def mask_token_id(self) -> int: ...
    @property
    def unknown_token_id(self) -> int: ...
    @property
    def special_token_ids(self) -> list[int]: ...
    def get_vocabulary(self) -> list[str]: ...
    def token_to_id(self, token: str) -> int: ...
    def id_to_token(self, id: int) -> str: ...
    def readable(self, id: int) -> str: ...
    @overload
    def __call__(self, texts: str) -> list[int]: ...
    @overload
    def __call__(self, texts: Texts) -> list[list[int]]: ...
    @overload
    def flat_ids(
        self, texts: Texts, word_starts: Literal[False] = False
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    @overload
    def flat_ids(
        self, texts: Texts, word_starts: Literal[True]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]: ...
    @overload
    def tokenize(self, text: str) -> list[str]: ...
    @overload
    def tokenize(self, text: Texts) -> list[list[str]]: ...
    @overload
    def encode(
        self, text: str, pair: str | None = None, special_tokens: bool = True
    ) -> Encoding: ...
    @overload
    def encode(
        self, text: Texts, pair: Texts | None = None, special_tokens: bool = True
    ) -> list[Encoding]: ...
    @overload
    def encode_words(  # type: ignore[overload-overlap]
        self, words: Sequence[str], special_tokens: bool = True
    ) -> Encoding: ...
    @overload
    def encode_words(
        self, words: Sequence[Sequence[str]], special_tokens: bool = True
    ) -> list[Encoding]: ...
    @overload
    def detokenize(self, ids: Sequence[int]) -> str: ...
    @overload
    def detokenize(self, ids: Sequence[Sequence[int]]) -> list[str]: ...
    @overload
    def detokenize(self, ids: NDArray[Any]) -> Any: ...
    def plain(self) -> Tokenizer: ...
    def save(self, folder: Path, input_names: Iterable[str] | None = None) -> None: ...
    def save_assets(self, folder: Path) -> None: ...
    def to_json(self) -> str: ...
    def load_assets(self, folder: Path) -> None: ...
    def get_config(self) -> dict[str, Any]: ...
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Tokenizer: ...
