"""vocab.txt, one token per line, where the line number is the id; and checks of vocabularies."""

import os
from collections.abc import Iterable, Mapping, Set

from bert_keras.checks import as_texts, check_not_empty, raise_at_first
from bert_keras.engine.atomic_files import reading, write_text
from bert_keras.types import Path


def read_vocabulary(path: Path) -> list[str]:
    """Reads a vocab.txt file.

    Only `"\\n"` and `"\\r\\n"` end a line: the Chinese vocabulary has the token U+2028, at which
    `str.splitlines` would split. White space at the end of a token is cut, as in the `tokenizers`
    library, except from the tokens that stand for white space, such as `##` and U+2028.

    Args:
        path: str or path of a UTF-8 file, with or without a byte order mark.

    Returns:
        A list of str; the index is the id.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty or not UTF-8, or it is a folder.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # A pipe, for example, never ends.
        raise ValueError(
            "A vocabulary must be a list or an ordinary file, such as vocab.txt. Received: "
            f"{os.fspath(path)}. Read a folder with `Tokenizer.from_preset(folder)`."
        )
    with reading(path), open(path, encoding="utf-8-sig", newline="") as file:
        text = file.read()
    check_not_empty(text, f"A vocabulary file must not be empty: {os.fspath(path)}")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [x.removesuffix("\r") if x.rstrip() in ("", "##") else x.rstrip() for x in lines]


def write_vocabulary(path: Path, vocabulary: Iterable[str]) -> None:
    """Writes the tokens to a vocab.txt file in UTF-8, each followed by `"\\n"`."""
    write_text(path, "".join(f"{token}\n" for token in vocabulary))


def numbered(vocabulary: Path | Iterable[str]) -> dict[str, int]:
    """Returns the ids of a vocabulary's tokens, and checks them.

    A repeated token keeps its last id, as in Google's `load_vocab`, because a checkpoint with such
    a file was trained with that id. The earlier ones become the token, a line end and the number of
    their line, so that every id has a token.

    Args:
        vocabulary: list or tuple of str, or the path of a vocab.txt.

    Returns:
        A dict of str to int.

    Raises:
        TypeError: an entry is not a str, or the vocabulary is a set, which has no order.
        ValueError: an entry contains a line end.
    """
    if isinstance(vocabulary, (str, os.PathLike)):
        vocabulary = read_vocabulary(vocabulary)
    if isinstance(vocabulary, (Set, Mapping)):
        found = f"a {type(vocabulary).__name__}"
        raise TypeError(f"`vocabulary` must have an order, that of the ids. Received: {found}.")
    tokens = as_texts(list(vocabulary), "vocabulary")
    ends_line = ["\n" in token or token.endswith("\r") for token in tokens]
    raise_at_first(ends_line, tokens, "A token must not contain a line end")
    ids = {token: index for index, token in enumerate(tokens)}
    twice = [index for index, token in enumerate(tokens) if ids[token] != index]
    return ids | {f"{tokens[index]}\n{index}": index for index in twice}


def require_tokens(ids, **tokens):
    """Raises `ValueError` unless the vocabulary holds the tokens, given by argument name."""
    missing = [f"{name}={token!r}" for name, token in tokens.items() if token not in ids]
    if missing:
        raise ValueError(
            f"The vocabulary must hold every special token. Missing: {', '.join(missing)}. "
            f"Received: {len(ids)} tokens, the first are {list(ids)[:5]}. Pass the names of the "
            "vocabulary's own special tokens, or check that it is the right vocabulary."
        )


def looks_lowercased(vocabulary: Iterable[str]) -> bool:
    """Whether a vocabulary was made from lowercased text: no token has an upper-case letter.

    Tokens in brackets such as `[CLS]`, `[unused1]` or `<S>` are ignored. The result is True for
    Google's uncased and Chinese vocabularies, and False for the cased and multilingual cased ones.
    """
    return not any(
        token != token.lower() and not (token[0] in "[<" and token[-1] in "]>")
        for token in vocabulary
        if token
    )
