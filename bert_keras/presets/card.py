"""The README.md of a folder that others load: a model card, as the Hugging Face Hub reads it.

What a `card` may say, all of it optional:

| key | what it is |
|---|---|
| `description` | str, the first paragraph |
| `license`, `language` | str, such as `"apache-2.0"` and `"en"`; `language` may be a list |
| `datasets`, `tags` | list of str, what the model was trained on, and words to find it by |
| `metrics` | dict, name -> number, measured on the first of the `datasets` |

The rest is known: the task, sizes, labels, tokenizer, and how to load the folder.

Reference: https://huggingface.co/docs/hub/model-cards.
"""

import json
import pathlib
from typing import NamedTuple

from bert_keras.checks import check_choice, check_number
from bert_keras.presets.families import kind_of

README = "README.md"
# A file with this line is replaced by the next that is written, any other is its author's.
MARK = "<!-- This card is written anew with the model; without this line it stays as it is. -->"
_KINDS = {
    "description": ((str,), "a str"),
    "license": ((str,), "a str"),
    "language": ((str, list, tuple), "a str or a list of str"),
    "datasets": ((list, tuple), "a list of str"),
    "tags": ((list, tuple), "a list of str"),
    "metrics": ((dict,), "a dict of numbers by their names"),
}


class _Task(NamedTuple):
    """What is said of a task: its name on the Hub, what it does, and a call that answers."""

    tag: str
    does: str
    call: str


_TASKS = {
    "MaskedLM": _Task("fill-mask", "guesses hidden tokens", "fill_mask({mask!r})"),
    "MultipleChoice": _Task(
        "multiple-choice", "chooses what fits a text best", "choose('A text.', ['One.', 'Two.'])"
    ),
    "NextSentencePrediction": _Task(
        "text-classification", "tells whether a text follows another", "is_next('One.', 'Two.')"
    ),
    "QuestionAnswering": _Task(
        "question-answering", "finds answers in texts", "answer('What is it?', 'It is a text.')"
    ),
    "ReplacedTokenDetector": _Task(
        "token-classification", "finds tokens that are not a text's own", "is_replaced('A text.')"
    ),
    "TextClassifier": _Task("text-classification", "classifies texts", "classify(['A text.'])"),
    "TextEmbedder": _Task("sentence-similarity", "makes vectors of texts", "embed(['A text.'])"),
    "TokenClassifier": _Task("token-classification", "tags words", "tag(['A text.'])"),
}


def card_of(model, folder, card, library, code=""):
    """Returns the text of the README.md, or `None` where the folder has one that is not ours.

    Args:
        model: the backbone or task that is written.
        folder: str or path, where to.
        card: dict, see the module, or `None`.
        library: str, the library whose format it is, by its name on the Hub.
        code: str, what loads the folder by that library, `"."` being the folder.

    Raises:
        ValueError: the card says something unknown or of another kind, or is to take the place of a
            file that is not ours.
    """
    path = pathlib.Path(folder) / README
    is_theirs = path.is_file() and MARK not in path.read_text(encoding="utf-8", errors="replace")
    if is_theirs and card is not None:
        raise ValueError(
            f"A card takes the place of one of bert_keras alone. Received a card for {path}, which "
            "is another's. Move the file away, or leave `card` out to keep it."
        )
    said, name = _checked(card or {}), pathlib.Path(folder).resolve().name
    return (
        None if is_theirs else _front(model, name, said, library) + _body(model, name, said, code)
    )


def _checked(card):
    for key, value in card.items():
        check_choice("card", key, _KINDS)
        kinds, rule = _KINDS[key]
        items = value if isinstance(value, (list, tuple, dict)) else ()
        if not isinstance(value, kinds) or not all(isinstance(item, str) for item in items):
            raise ValueError(f"`card` must hold {rule} as {key!r}. Received: {value!r}.")
    for name, value in card.get("metrics", {}).items():
        check_number(f"metrics` of `{name}", value, least=-float("inf"))
    if card.get("metrics") and not card.get("datasets"):
        raise ValueError(
            "`card` must say by 'datasets' what its 'metrics' were measured on. Received: "
            f"{dict(card)}."
        )
    return card


def _front(model, name, said, library):
    """Returns the front matter. JSON in one line is YAML."""
    tag = _TASKS.get(kind_of(model, _TASKS), _Task("feature-extraction", "", "")).tag
    front = {"library_name": library, "pipeline_tag": tag}
    front |= {key: said[key] for key in ("license", "language", "datasets") if key in said}
    front["tags"] = list(dict.fromkeys(("bert_keras", "keras", *said.get("tags", ()))))
    if said.get("metrics"):
        data = {"type": said["datasets"][0], "name": said["datasets"][0]}
        scores = [{"type": kind, "value": float(x)} for kind, x in said["metrics"].items()]
        results = [{"task": {"type": tag}, "dataset": data, "metrics": scores}]
        front["model-index"] = [{"name": name, "results": results}]
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items())
    return "\n".join(("---", *lines, "---", ""))


def _body(model, name, said, code):
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    kind = kind_of(model, _TASKS)
    task = _TASKS.get(kind)
    facts = [
        f"Model: {f'a `{kind}`, which {task.does}, on ' if task else ''}a "
        f"`{type(backbone).__name__}` with {backbone.num_layers} layers, {backbone.hidden_dim} "
        f"wide, {backbone.num_heads} heads, {model.count_params():,} parameters",
    ]
    if getattr(model, "label_names", None):
        facts.append(f"Labels: {', '.join(map(str, model.label_names))}")
    if preprocessor is not None:
        tokenizer = preprocessor.tokenizer
        facts.append(
            f"Text: {tokenizer.settings['model']['type']}, {tokenizer.vocabulary_size:,} tokens; a "
            f"text has {preprocessor.max_length} of them at most"
        )
    if said.get("datasets"):
        facts.append(f"Data: {', '.join(said['datasets'])}")
    facts += [f"{metric}: {value:g}" for metric, value in said.get("metrics", {}).items()]
    listed = "\n".join(f"- {fact}" for fact in facts)
    ours = _own_code(kind if task else type(backbone).__name__, task, preprocessor)
    blocks = "\n\n".join(f"```python\n{block}\n```" for block in (ours, code) if block)
    parts = [
        MARK,
        f"# {name}",
        said.get("description"),
        listed,
        f"Loaded in this folder:\n\n{blocks}",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _own_code(kind, task, preprocessor):
    has_text = task is not None and preprocessor is not None
    options = "" if has_text or task is None else ", preprocessor=None"
    lines = ["import bert_keras", "", f'model = bert_keras.{kind}.from_preset("."{options})']
    if has_text:
        mask = f"A {preprocessor.tokenizer.mask_token}."
        lines.append(f"print(model.{task.call.format(mask=mask)})")
    return "\n".join(lines)
