"""Writes the pages of the API from docstrings: one for each class and each function."""

import inspect
import re

import bert_keras
from bert_keras import (
    corpora,
    datasets,
    heads,
    layers,
    metrics,
    preprocessing,
    search,
    tokenizers,
    training,
)
from bert_keras.models.backbone import Backbone

TITLES = {
    "tasks": ("Tasks", "任务"),
    "backbones": ("Backbones", "骨干网络"),
    "functions": ("Functions and the rest", "函数与其他"),
    "tokenizers": ("Tokenizers", "分词器"),
    "preprocessing": ("Preprocessing", "预处理"),
    "training": ("Training", "训练"),
    "metrics": ("Metrics", "指标"),
    "heads": ("Heads", "预测头"),
    "layers": ("Layers", "层"),
    "datasets": ("Data sets", "数据集"),
    "corpora": ("Corpora", "语料"),
    "search": ("Search", "检索"),
}
ROOMS = {
    room.__name__.split(".")[1]: room
    for room in (
        tokenizers,
        preprocessing,
        training,
        metrics,
        heads,
        layers,
        datasets,
        corpora,
        search,
    )
}
# The tasks that most readers look for come first, base classes last.
FIRST = (
    "TextClassifier",
    "TokenClassifier",
    "QuestionAnswering",
    "TextEmbedder",
    "Reranker",
    "MultipleChoice",
    "LongTextClassifier",
    "ZeroShotClassifier",
    "FewShotClassifier",
    "MaskedLM",
)
LAST = ("Task", "Backbone")
INTRODUCTION = {
    "en": "Signatures and descriptions come from the code. Write `import bert_keras`, then "
    "`bert_keras.TextClassifier`, or for a submodule `bert_keras.training.Lamb`.",
    "zh": "签名与说明直接取自代码中的文档字符串（英文）。先 `import bert_keras`，"
    "再写 `bert_keras.TextClassifier`；各子模块里的名字写作 `bert_keras.training.Lamb`。",
}
WORDS = {
    "en": {
        "methods": "Methods",
        "hooks": "Rarely needed: what Keras calls, and what a class of your own overrides",
        "inherited": "Inherited from",
    },
    "zh": {
        "methods": "方法",
        "hooks": "很少用到：由 Keras 调用的，以及写子类时可以改写的",
        "inherited": "继承自",
    },
}
# What Keras or a base class calls. Readers who write no class of their own need none of it.
HOOK = re.compile(
    r"(add_hidden|build|check|compute|default|encode_labels|encode_ready|encode_texts|has_classes"
    r"|form$|ignores|label_per_token$|loss_arg|untrained_variables|make|needs_labels$|non_trainable|on_epoch"
    r"|exports_backbone|predict_batches|predict_rows|reads_pooled|rows_of$|save_weights|settle"
    r"|summary|has_imbalanced_targets|tasks$|serving_signature|through|trainable|write_hub)"
    r"|.*(_assets|_columns|_config|_multipliers|_on_batch|_outputs|_step|_with|row_labels)$"
    r"|from_config$"
)


def _public(module):
    return {
        name: value
        for name in dir(module)
        if not name.startswith("_")
        and (inspect.isclass(value := getattr(module, name)) or inspect.isfunction(value))
    }


def _place(name):
    short = name.rpartition(".")[2]
    return short in LAST, FIRST.index(short) if short in FIRST else len(FIRST)


def contents():
    """Returns {page: {full name: value}}: every public name once."""
    found = {page: {} for page in TITLES}
    seen = set()
    for name, value in _public(bert_keras).items():
        if value is bert_keras.ZeroShotClassifier or (
            inspect.isclass(value) and issubclass(value, bert_keras.Task)
        ):
            page = "tasks"
        elif inspect.isclass(value) and issubclass(value, Backbone):
            page = "backbones"
        elif "Tokenizer" in name or value is bert_keras.train_wordpiece:
            page = "tokenizers"
        else:
            page = "functions"
        found[page][f"bert_keras.{name}"] = value
        seen.add(value)
    found["backbones"]["bert_keras.models.backbone.Backbone"] = Backbone
    for name in bert_keras.distribution.__all__:
        found["functions"][f"bert_keras.distribution.{name}"] = getattr(
            bert_keras.distribution, name
        )
    for page, room in ROOMS.items():
        for name, value in _public(room).items():
            if value not in seen:
                found[page][f"bert_keras.{page}.{name}"] = value
                seen.add(value)
    return {
        page: {name: values[name] for name in sorted(values, key=_place)}
        for page, values in found.items()
    }


def page_of(name):
    """Returns the page of a class or function, without a suffix, from its full name."""
    room = next(room for room, values in contents().items() if name in values)
    return f"api/{room}/{name.rpartition('.')[2]}"


def members(cls, documented):
    """Returns the public bases of a class, and the names of the members that it documents itself.

    A base that has no page of its own, such as a mixin, counts as a part of the class.
    """
    bases = [base for base in cls.__mro__[1:] if base in documented]
    owners = [
        owner
        for owner in cls.__mro__
        if owner.__module__.startswith("bert_keras")
        and (owner is cls or not any(issubclass(base, owner) for base in bases))
    ]
    names = {}
    for owner in owners:
        for name, value in vars(owner).items():
            value = getattr(value, "__func__", value)
            is_member = inspect.isfunction(value) or isinstance(value, property)
            if is_member and value.__doc__ and not name.startswith("_"):
                names.setdefault(name, value)
    # A class that sets an attribute over a property has nothing to say about it.
    kept = (classmethod, property, staticmethod, type(members))
    return bases, [name for name in names if isinstance(inspect.getattr_static(cls, name), kept)]


def _heading(title, line):
    return [title, line * 2 * len(title), ""]


def _directive(name, cls, member):
    kind = "property" if isinstance(inspect.getattr_static(cls, member), property) else "method"
    return [f".. auto{kind}:: {name}.{member}", ""]


def class_page(name, cls, names, words):
    """Returns the text of the page of one class.

    Args:
        name: the full name of the class.
        cls: the class.
        names: dict from each class that has a page to its full name.
        words: the headings, in the language of the page.
    """
    bases, own = members(cls, names)
    lines = [*_heading(name.rpartition(".")[2], "="), f".. autoclass:: {name}", ""]
    if used := [member for member in own if not HOOK.match(member)]:
        lines += _heading(words["methods"], "-")
        lines += [line for member in used for line in _directive(name, cls, member)]
    taken = set(own)
    for base in bases:
        inherited = [x for x in members(base, names)[1] if x not in taken and not HOOK.match(x)]
        links = (f":py:obj:`{x} <{names[base]}.{x}>`" for x in inherited)
        taken |= set(inherited)
        if inherited:
            lines += [f"{words['inherited']} :py:class:`~{names[base]}`: {', '.join(links)}.", ""]
    if hooks := [member for member in own if HOOK.match(member)]:
        summary = f"<details><summary>{words['hooks']}</summary>"
        lines += [".. raw:: html", "", f"   {summary}", ""]
        lines += [line for member in hooks for line in _directive(name, cls, member)]
        lines += [".. raw:: html", "", "   </details>", ""]
    return "\n".join(lines)


def room_page(title, room, values):
    """Returns the text of the page of a room: a table of its classes and functions."""
    lines = [*_heading(title, "="), ".. list-table::", ""]
    shorts = {name: name.rpartition(".")[2] for name in values}
    for name, short in shorts.items():
        sentence = inspect.getdoc(values[name]).split("\n\n")[0].replace("\n", " ")
        sentence = re.sub(r"`([^`]+)`", r"``\1``", sentence)
        lines += [f"   * - :doc:`{short} <{room}/{short}>`", f"     - {sentence}"]
    pages = [f"   {room}/{short}" for short in shorts.values()]
    return "\n".join([*lines, "", ".. toctree::", "   :hidden:", "", *pages, ""])


def pages(language):
    """Yields (file name, text) of the API's pages."""
    which = ("en", "zh").index(language)
    words = WORDS[language]
    rooms = contents()
    names = {
        value: name
        for values in rooms.values()
        for name, value in values.items()
        if inspect.isclass(value)
    }
    index = [f"# {('API', 'API 参考')[which]}\n\n{INTRODUCTION[language]}\n"]
    for room, values in rooms.items():
        title = TITLES[room][which]
        yield f"api/{room}.rst", room_page(title, room, values)
        listed = []
        for name, value in values.items():
            short = name.rpartition(".")[2]
            listed.append(f"[{short}]({room}/{short}.rst)")
            text = "\n".join([*_heading(short, "="), f".. autofunction:: {name}", ""])
            if inspect.isclass(value):
                text = class_page(name, value, names, words)
            yield f"api/{room}/{short}.rst", text
        index.append(f"**[{title}]({room}.rst)**: {', '.join(listed)}\n")
    toctree = "\n".join(rooms)
    yield "api/index.md", "\n".join([*index, f"```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"])
