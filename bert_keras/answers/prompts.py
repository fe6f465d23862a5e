"""Prompts: what a checkpoint was trained to see before a text, such as "query: "."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..checks import check_choice
from .answerer import Option

# The prompts of an embedder that has none, as in sentence-transformers, so that programs can pass
# these names to any embedder.
USUAL = {"query": "", "document": ""}
# What goes before each text; `prompt_text` checks it.
PROMPT = Option(
    "prompt",
    str,
    None,
    "Name or text of what goes before each text or query.",
    is_checked=False,
)


def check_prompts(prompts: Mapping[str, str] | None, default_prompt: str | None) -> dict[str, str]:
    """Returns prompts as a dict, `{}` for `None`.

    Raises:
        ValueError: a name or a prompt is not a str, or there is no prompt of the default's name.
    """
    prompts = {} if prompts is None else prompts
    if not isinstance(prompts, Mapping) or not all(
        isinstance(text, str) for item in prompts.items() for text in item
    ):
        raise ValueError(
            "`prompts` must be a dict from names to texts, both str. Received: "
            f"{prompts!r:.200}. Pass {{}} for none."
        )
    check_choice("default_prompt", default_prompt, (None, *prompts), "See `prompts`.")
    return dict(prompts)


def prompt_text(
    prompt: str | None, prompts: Mapping[str, str], default_prompt: str | None = None
) -> str:
    """Returns the text that belongs before each text, `""` for none.

    Args:
        prompt: a name in `prompts`, a text, or `None` for the default.
        prompts: dict, name -> text.
        default_prompt: a name in `prompts`, or `None`.

    Raises:
        ValueError: `prompt` is not a str, or a word that names no prompt.
    """
    if prompt is None:
        return prompts.get(default_prompt, "")
    if not isinstance(prompt, str) or (
        prompt not in prompts and re.fullmatch("[A-Za-z0-9_.-]+", prompt)
    ):
        names = f"a name, one of {list(prompts)[:20]}, or " if prompts else ""
        raise ValueError(
            f"`prompt` must be {names}a text that ends with a colon or a space, such as 'query: '. "
            f"Received: {prompt!r:.60}."
        )
    return prompts.get(prompt, prompt)


def split_marker(tokenizer: Any, marker: str) -> tuple[list[int], str]:
    """Returns the id of the token that a marker is or begins with, and the text after it.

    Args:
        tokenizer: a `TextEncoder`.
        marker: a token such as `"[unused0]"`, a text such as `"query: "`, or a token in brackets
            and a text.

    Returns:
        A list of at most one id, and a str.
    """
    first = re.match(r"(\[\w+\]|<\w+>)?", marker)[0]
    for token, text in ((marker, ""), (marker.strip(), ""), (first, marker.removeprefix(first))):
        id = tokenizer.find(token) if token else None
        if id is not None:
            return [id], text
    return [], marker
