"""Writes a page for each family: docs/LANGUAGE/families/NAME.md, with facts from the code below the prose.

The facts come from the package itself, so they stay up to date: sizes are counted on small models of
the same shape, arguments compared with BERT's, presets read from the registry.
"""

import functools
import inspect
import pathlib

import api_pages
import numpy as np

import bert_keras
from bert_keras.presets import families

DOCS = pathlib.Path(__file__).resolve().parent
# Page -> its backbone, and what the names of its presets begin with.
_OTHER_BERTS = ("arctic_", "bge_base_", "bge_large_", "bge_small_", "e5_small_", "ms_marco_")
_OTHER_BERTS += ("mxbai_embed_", "paraphrase_minilm_", "roberta_wwm_")
_OTHER_ROBERTAS = ("bge_m3_", "bge_reranker_", "e5_base_", "e5_large_", "paraphrase_mpnet_")
FAMILIES = {
    "bert": ("BertBackbone", ("bert_", "minilm_", *_OTHER_BERTS)),
    "roberta": (
        "RobertaBackbone",
        ("roberta_base_", "roberta_large_", "xlm_roberta_", *_OTHER_ROBERTAS),
    ),
    "albert": ("AlbertBackbone", ("albert_",)),
    "distilbert": ("DistilBertBackbone", ("distilbert_",)),
    "spanbert": ("BertBackbone", ()),
    "electra": ("ElectraBackbone", ()),
    "ernie": ("BertBackbone", ()),
    "mpnet": ("MPNetBackbone", ("mpnet_",)),
    "deberta_v2": ("DebertaV2Backbone", ("deberta_", "mdeberta_", "mxbai_rerank_")),
    "nomic_bert": ("NomicBertBackbone", ("gte_", "nomic_")),
    "modernbert": ("ModernBertBackbone", ("modernbert_",)),
}
SIZES = {"vocabulary_size": 8000, "num_heads": 4, "hidden_dim": 64, "intermediate_dim": 256}
WORDS = {
    "en": {
        "facts": "What the code says",
        "class": "class",
        "inputs": "inputs",
        "outputs": "outputs",
        "more": "arguments that `BertBackbone` does not have",
        "less": "arguments of `BertBackbone` that it does not have",
        "heads": "heads read from a transformers checkpoint",
        "weights": "weights of 4 layers, 64 wide, 8,000 tokens",
        "deeper": "added by each further layer",
        "none": "none",
        "presets": "Registered presets",
        "columns": "| preset | weights | text | licence |",
        "note": "Counted when this site was built.",
    },
    "zh": {
        "facts": "代码里的事实",
        "class": "类",
        "inputs": "输入",
        "outputs": "输出",
        "more": "比 `BertBackbone` 多的参数",
        "less": "比 `BertBackbone` 少的参数",
        "heads": "能从 transformers 检查点读取的预测头",
        "weights": "4 层、64 维、8,000 个词元时的参数量",
        "deeper": "其中每多一层增加",
        "none": "无",
        "presets": "注册过的预设",
        "columns": "| 预设 | 参数量 | 说明 | 许可证 |",
        "note": "以上数字在构建网站时由代码统计。",
    },
}


@functools.cache
def models_of(cls):
    """Returns a small backbone, its outputs by name, and one that has one layer more."""
    backbone, deeper = (cls(num_layers=layers, **SIZES) for layers in (4, 5))
    return backbone, backbone({"token_ids": np.array([[5, 6, 7]])}), deeper


def facts(name, words):
    """Yields the lines of the facts that the code holds about a family."""
    cls = getattr(bert_keras, FAMILIES[name][0])
    backbone, outputs, deeper = models_of(cls)
    own, of_bert = (
        list(inspect.signature(one.__init__).parameters) for one in (cls, bert_keras.BertBackbone)
    )
    record = families.record_of(backbone)
    count, added = backbone.count_params(), deeper.count_params() - backbone.count_params()

    def code(values):
        return ", ".join(f"`{value}`" for value in values) or words["none"]

    yield f"## {words['facts']}\n"
    yield "| | |\n|---|---|"
    for key, value in (
        ("class", f"[`{cls.__name__}`](../{api_pages.page_of(f'bert_keras.{cls.__name__}')}.rst)"),
        ("inputs", code(backbone.input_names)),
        ("outputs", code(sorted(outputs))),
        ("more", code(x for x in own if x not in of_bert)),
        ("less", code(x for x in of_bert if x not in own)),
        ("heads", code(sorted(record.heads))),
        ("weights", f"{count:,}"),
        ("deeper", f"{added:,}"),
    ):
        yield f"| {words[key]} | {value} |"
    yield f"\n{words['note']}\n"


def presets(name, words):
    """Yields the lines of the table of a family's presets, if it has any."""
    rows = [row for row in bert_keras.presets() if row["name"].startswith(FAMILIES[name][1] or "-")]
    if rows:
        yield f"## {words['presets']}\n\n{words['columns']}\n|---|---|---|---|"
    for row in rows:
        parts = (f"`{row['name']}`", f"{row['parameters']:,}", row["description"], row["license"])
        yield f"| {' | '.join(parts)} |"


def pages(language):
    """Yields (file name, text) of the families' pages."""
    for name in FAMILIES:
        prose = (DOCS / language / "families" / f"{name}.md").read_text(encoding="utf-8")
        lines = [prose, *facts(name, WORDS[language]), *presets(name, WORDS[language])]
        yield f"families/{name}.md", "\n".join(lines) + "\n"
