"""The model card of a saved folder: its README.md, in the form that the Hugging Face Hub reads.

A `card` may hold these keys, all optional:

| key | value |
|---|---|
| `description` | str, the first paragraph |
| `license`, `language` | str, such as `"apache-2.0"` and `"en"`; `language` may be a list |
| `datasets`, `tags` | list of str, the training data, and words to find the model by |
| `metrics` | dict, name -> number, measured on the first of the `datasets` |

The rest follows from the model: the task, sizes, labels, tokenizer, and how to load the folder.

Reference: https://huggingface.co/docs/hub/model-cards.
"""

import json
import pathlib

import bert_keras
from bert_keras.checks import check_choice, check_number

README = "README.md"
# A README.md without this line is someone else's, and is kept.
MARK = "<!-- Saving the model again replaces this card. Delete this line to keep your changes. -->"
_FIELDS = {
    "description": ((str,), "a str"),
    "license": ((str,), "a str"),
    "language": ((str, list, tuple), "a str or a list of str"),
    "datasets": ((list, tuple), "a list of str"),
    "tags": ((list, tuple), "a list of str"),
    "metrics": ((dict,), "a dict of numbers by their names"),
}


def card_of(model, folder, card, library, code=""):
    """Returns the text of the README.md, or `None` to keep one that bert_keras did not write.

    Args:
        model: the backbone or task to save.
        folder: str or path, the folder to save it in.
        card: dict, see the module, or `None`.
        library: str, the library that reads this format, by its name on the Hub.
        code: str, code that loads the folder with that library, where `"."` is the folder.

    Raises:
        ValueError: the card has an unknown key or a wrong value, or would replace a file that
            bert_keras did not write.
    """
    path = pathlib.Path(folder) / README
    is_foreign = path.is_file() and MARK not in path.read_text(encoding="utf-8", errors="replace")
    if is_foreign and card is not None:
        raise ValueError(
            f"`card` can only replace a README.md that bert_keras wrote. Received: {path}, written "
            "by someone else. Move the file away, or leave out `card` to keep it."
        )
    card, name = _check_card(card or {}), pathlib.Path(folder).resolve().name
    if is_foreign:
        return None
    return _front_matter(model, name, card, library) + _body(model, name, card, library, code)


def _check_card(card):
    for key, value in card.items():
        check_choice("card", key, _FIELDS)
        types, rule = _FIELDS[key]
        items = value if isinstance(value, (list, tuple, dict)) else ()
        if not isinstance(value, types) or not all(isinstance(item, str) for item in items):
            raise ValueError(f"`card` must hold {rule} as {key!r}. Received: {value!r}.")
    for name, value in card.get("metrics", {}).items():
        check_number(f"metrics` of `{name}", value, least=-float("inf"))
    if card.get("metrics") and not card.get("datasets"):
        raise ValueError(
            "A `card` with 'metrics' must name in 'datasets' what they were measured on. Received: "
            f"{dict(card)}."
        )
    return card


def _front_matter(model, name, card, library):
    """Returns the YAML front matter. Each value is written as JSON, which is also YAML."""
    answerer = _answerer_of(model)
    tag = answerer.tag if answerer else "feature-extraction"
    fields = {"library_name": library, "pipeline_tag": tag}
    fields |= {key: card[key] for key in ("license", "language", "datasets") if key in card}
    fields["tags"] = list(dict.fromkeys(("bert_keras", "keras", *card.get("tags", ()))))
    if card.get("metrics"):
        dataset = {"type": card["datasets"][0], "name": card["datasets"][0]}
        scores = [{"type": kind, "value": float(x)} for kind, x in card["metrics"].items()]
        results = [{"task": {"type": tag}, "dataset": dataset, "metrics": scores}]
        fields["model-index"] = [{"name": name, "results": results}]
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return "\n".join(("---", *lines, "---", ""))


def _body(model, name, card, library, code):
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    answerer, kind = _answerer_of(model), _class_of(model, library).__name__
    facts = [
        f"Model: {f'a `{kind}`, which {answerer.does}, on ' if answerer else ''}a "
        f"`{type(backbone).__name__}` with {backbone.num_layers} layers, {backbone.hidden_dim} "
        f"wide, {backbone.num_heads} heads, {model.count_params():,} parameters",
    ]
    if getattr(model, "label_names", None):
        facts.append(f"Labels: {', '.join(map(str, model.label_names))}")
    if preprocessor is not None:
        tokenizer = preprocessor.tokenizer
        facts.append(
            f"Tokenizer: {tokenizer.settings['model']['type']}, {tokenizer.vocabulary_size:,} "
            f"tokens; texts are cut to {preprocessor.max_length} tokens"
        )
    if card.get("datasets"):
        facts.append(f"Data: {', '.join(card['datasets'])}")
    facts += [f"{metric}: {value:g}" for metric, value in card.get("metrics", {}).items()]
    fact_list = "\n".join(f"- {fact}" for fact in facts)
    own_code = _own_code(
        _class_of(model if answerer else backbone, library), answerer, preprocessor
    )
    blocks = "\n\n".join(f"```python\n{block}\n```" for block in (own_code, code) if block)
    paragraphs = [
        MARK,
        f"# {name}",
        card.get("description"),
        fact_list,
        f"To load it, in this folder:\n\n{blocks}",
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _answerer_of(model):
    """Returns how a task mainly answers, or `None` for a backbone."""
    return next(iter(getattr(model, "answerers", ())), None)


def _class_of(model, library):
    """Returns the class that reads a folder; other libraries' know no user's subclass."""
    if library == "bert_keras":
        return type(model)
    return next(cls for cls in type(model).__mro__ if hasattr(bert_keras, cls.__name__))


def _own_code(cls, answerer, preprocessor):
    has_text = answerer is not None and preprocessor is not None
    options = "" if has_text or answerer is None else ", preprocessor=None"
    line, name = "import bert_keras", f"bert_keras.{cls.__name__}"
    if not hasattr(bert_keras, cls.__name__):
        module = "your_module" if cls.__module__ == "__main__" else cls.__module__
        line, name = f"from {module} import {cls.__name__}", cls.__name__
    lines = [line, "", f'model = {name}.from_preset("."{options})']
    if has_text and answerer.call:
        mask = f"A {preprocessor.tokenizer.mask_token}."
        lines.append(f"print(model.{answerer.call.format(mask=mask)})")
    return "\n".join(lines)
