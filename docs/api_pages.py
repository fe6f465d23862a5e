"""Writes the pages of the API: what each room of the package shows, from its docstrings."""

import inspect

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
INTRODUCTION = {
    "en": "Signatures and descriptions as they stand in the code. Import `bert_keras` and write "
    "`bert_keras.TextClassifier`; what is in a room is `bert_keras.training.Lamb`.",
    "zh": "签名与说明直接取自代码中的文档字符串（英文）。先 `import bert_keras`，"
    "再写 `bert_keras.TextClassifier`；各子模块里的名字写作 `bert_keras.training.Lamb`。",
}


def _public(module):
    return {
        name: value
        for name in dir(module)
        if not name.startswith("_")
        and (inspect.isclass(value := getattr(module, name)) or inspect.isfunction(value))
    }


def contents():
    """Returns {page: {full name: value}}: every public name once."""
    found = {page: {} for page in TITLES}
    seen = set()
    for name, value in _public(bert_keras).items():
        if inspect.isclass(value) and issubclass(value, bert_keras.Task):
            page = "tasks"
        elif inspect.isclass(value) and issubclass(value, Backbone):
            page = "backbones"
        elif "Tokenizer" in name or value is bert_keras.train_wordpiece:
            page = "tokenizers"
        else:
            page = "functions"
        found[page][f"bert_keras.{name}"] = value
        seen.add(value)
    for name in bert_keras.distribution.__all__:
        found["functions"][f"bert_keras.distribution.{name}"] = getattr(
            bert_keras.distribution, name
        )
    for page, room in ROOMS.items():
        for name, value in _public(room).items():
            if value not in seen:
                found[page][f"bert_keras.{page}.{name}"] = value
                seen.add(value)
    found["tasks"] = {
        "bert_keras.Task": bert_keras.Task,
        **found["tasks"],
    }
    return found


def pages(language):
    """Yields (file name, text) of the API's pages."""
    which = ("en", "zh").index(language)
    title = ("API", "API 参考")[which]
    names = "\n".join(TITLES)
    yield "api/index.md", f"# {title}\n\n{INTRODUCTION[language]}\n\n```{{toctree}}\n{names}\n```\n"
    for page, values in contents().items():
        title = TITLES[page][which]
        lines = [title, "=" * 2 * len(title), ""]
        for name, value in values.items():
            kind = "class" if inspect.isclass(value) else "function"
            lines.append(f".. auto{kind}:: {name}")
            if kind == "class":
                lines.append("   :members:")
                if not issubclass(value, tuple) and value.__mro__[1] is not object:
                    lines.append("   :show-inheritance:")
            lines.append("")
        yield f"api/{page}.rst", "\n".join(lines)
