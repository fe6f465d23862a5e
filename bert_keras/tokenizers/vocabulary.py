"""Reading, checking and writing of vocab.txt: one token a line, the line number is the id."""

import os
import pathlib
import re
import uuid
import warnings

from bert_keras.tokenizers.texts import describe

# The folders of Google's checkpoints: multi_cased_L-12_H-768_A-12, chinese_L-12_H-768_A-12, ...
_GOOGLE_FOLDER = re.compile(r"(uncased|cased|chinese|multilingual)_L-\d+_H-\d+_A-\d+")


def read_vocabulary(path):
    """Reads a vocab.txt file.

    Lines end at `"\\n"` (or `"\\r\\n"`) and nowhere else: the Chinese vocabulary holds U+2028 as a
    token, which `str.splitlines` would take for the end of a line. Nothing is stripped from tokens.

    Args:
        path: str or path of a UTF-8 file, with or without a byte order mark.

    Returns:
        A list of str; the index is the id.

    Raises:
        ValueError: the file is empty or not UTF-8.
    """
    with open(path, "rb") as file:
        raw = file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A vocabulary file must be UTF-8 text. Received: {os.fspath(path)}, invalid at byte "
            f"{error.start} ({error.reason})."
        ) from error
    if not text:
        raise ValueError(f"A vocabulary file must not be empty. Received: {os.fspath(path)}.")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def write_vocabulary(path, vocabulary):
    """Writes the tokens to a vocab.txt file: UTF-8, one a line, `"\\n"` after each.

    The file appears when it is complete: one that was cut short would pass for another vocabulary.
    """
    partial = f"{os.fspath(path)}.{uuid.uuid4().hex}.partial"
    try:
        with open(partial, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in vocabulary)
        os.replace(partial, path)
    except BaseException:
        pathlib.Path(partial).unlink(missing_ok=True)
        raise


def check_vocabulary(vocabulary, required_tokens):
    """Returns the vocabulary as a list, or says what is wrong with it.

    A token that occurs twice keeps its last id, as in Google's `load_vocab`, because a checkpoint
    trained with such a file was trained with that id; a warning names the lines.

    Args:
        vocabulary: list or tuple of str.
        required_tokens: dict from an argument's name to the special token it names.

    Raises:
        TypeError: an entry is not a str.
        ValueError: an entry holds a line end, or a required token is missing.
    """
    tokens = list(vocabulary)
    for index, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(
                f"`vocabulary` must hold str only. Received: vocabulary[{index}] is "
                f"{describe(token)}."
            )
        if "\n" in token or token.endswith("\r"):
            raise ValueError(
                "A token must not hold a line end, vocab.txt could not keep it. Received: "
                f"vocabulary[{index}] = {token!r}."
            )
    last_index = {token: index for index, token in enumerate(tokens)}
    missing = {name: token for name, token in required_tokens.items() if token not in last_index}
    if missing:
        listed = ", ".join(f"{name}={token!r}" for name, token in missing.items())
        raise ValueError(
            f"`vocabulary` must hold every special token. Missing: {listed}. Received: "
            f"{len(tokens)} tokens, the first are {tokens[:5]}. Name the vocabulary's own special "
            "tokens in the constructor, or check that this is a WordPiece vocabulary."
        )
    if len(last_index) < len(tokens):
        twice = [index + 1 for index, token in enumerate(tokens) if last_index[token] != index]
        warnings.warn(
            f"The vocabulary repeats {len(twice)} token(s) further down; the later one counts. "
            f"Repeated lines: {twice[:10]}{'...' if len(twice) > 10 else ''}.",
            stacklevel=4,
        )
    return tokens


def looks_lowercased(vocabulary):
    """Tells whether a vocabulary was made from lowercased text: no token has an upper case letter.

    Tokens in brackets such as `[CLS]`, `[unused1]` or `<S>` do not count. True for Google's uncased
    and Chinese vocabularies, False for the cased and the multilingual cased ones.
    """
    return not any(
        token != token.lower() and not (token[0] in "[<" and token[-1] in "]>")
        for token in vocabulary
        if token
    )


def named_lowercased(source):
    """Tells by the folder's name whether a checkpoint of Google's was trained on lowercased text.

    Args:
        source: str or path of a folder, or of a file in it.

    Returns:
        True for `uncased_L-...`, `chinese_L-...` and `multilingual_L-...`, False for
        `cased_L-...` and `multi_cased_L-...`, and None for a name that is not Google's.

    Reference: `validate_case_matches_checkpoint` in google-research/bert, `tokenization.py`.
    """
    path = pathlib.Path(source)
    folder = path if path.is_dir() else path.parent
    found = _GOOGLE_FOLDER.search(folder.resolve().name)
    return None if found is None else found[1] != "cased"
