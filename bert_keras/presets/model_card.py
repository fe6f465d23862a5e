"""The model card of a saved folder: its README.md, in the form that the Hugging Face Hub reads.

It says what follows from the model: the task, sizes, labels, tokenizer, and how to load the folder.

Reference: https://huggingface.co/docs/hub/model-cards.
"""

import pathlib

import bert_keras
from bert_keras.engine.atomic_files import write_text

README = "README.md"
# A README.md without this line is someone else's, and is kept.
MARK = "<!-- Saving the model again replaces this card. Delete this line to keep your changes. -->"


def write_card(new, model, folder, library, code="", facts=(), file=None):
    """Writes a README.md, unless the folder has one that bert_keras did not write.

    Args:
        new: `Path` of the folder to write into, which may be a temporary one.
        model: the saved backbone or task.
        folder: str or path, the folder that the card is for.
        library: str, the library that reads this format, by its name on the Hub.
        code: str, code that loads the folder with that library, where `"."` is the folder.
        facts: further lines of text.
        file: str, name of the `.keras` file in the folder, `None` if the folder is a preset.
    """
    path = pathlib.Path(folder) / README
    if path.is_file() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
        return
    answerer = next(iter(getattr(model, "answerers", ())), None)
    tag = answerer.tag if answerer else "feature-extraction"
    own_code = _own_code(model, library, answerer, file)
    blocks = "\n\n".join(f"```python\n{block}\n```" for block in (own_code, code) if block)
    paragraphs = [
        f"---\nlibrary_name: {library}\npipeline_tag: {tag}\ntags: [bert_keras, keras]\n---",
        MARK,
        f"# {path.resolve().parent.name}",
        "\n".join(f"- {fact}" for fact in (*_facts(model, library, answerer), *facts)),
        f"To load it, in this folder:\n\n{blocks}",
    ]
    write_text(new / README, "\n\n".join(paragraphs) + "\n")


def _facts(model, library, answerer):
    """Returns lines about the model."""
    backbone, kind = getattr(model, "backbone", model), _class_of(model, library).__name__
    facts = [
        f"Model: {f'a `{kind}`, which {answerer.does}, on ' if answerer else ''}a "
        f"`{type(backbone).__name__}` with {backbone.num_layers} layers, {backbone.hidden_dim} "
        f"wide, {backbone.num_heads} heads, {model.count_params():,} parameters",
    ]
    if getattr(model, "label_names", None):
        facts.append(f"Labels: {', '.join(map(str, model.label_names))}")
    if preprocessor := getattr(model, "preprocessor", None):
        tokenizer = preprocessor.tokenizer
        facts.append(
            f"Tokenizer: {tokenizer.settings['model']['type']}, {tokenizer.vocabulary_size:,} "
            f"tokens; texts are cut to {preprocessor.max_length} tokens"
        )
    return facts


def _class_of(model, library):
    """Returns the class that reads a folder; other libraries' know no user's subclass."""
    if library == "bert_keras":
        return type(model)
    return next(cls for cls in type(model).__mro__ if hasattr(bert_keras, cls.__name__))


def _own_code(model, library, answerer, file):
    """Returns code that loads the folder with this package, and asks it."""
    cls = _class_of(model if answerer else getattr(model, "backbone", model), library)
    preprocessor = getattr(model, "preprocessor", None)
    has_text = answerer is not None and preprocessor is not None
    options = "" if has_text or answerer is None else ", preprocessor=None"
    line, name = "import bert_keras", f"bert_keras.{cls.__name__}"
    if not hasattr(bert_keras, cls.__name__):
        module = "your_module" if cls.__module__ == "__main__" else cls.__module__
        line, name = f"from {module} import {cls.__name__}", cls.__name__
    load = f'bert_keras.load_model("{file}")' if file else f'{name}.from_preset("."{options})'
    lines = [line, "", f"model = {load}"]
    if has_text and answerer.call:
        mask = f"A {preprocessor.tokenizer.mask_token}."
        lines.append(f"print(model.{answerer.call.format(mask=mask)})")
    return "\n".join(lines)
