"""RoBERTa, XLM-R, CamemBERT and CodeBERT in Hugging Face's checkpoints, and in KerasHub's.

jina-reranker-v2 is an XLM-R with other names, and with queries, keys and values in one tensor.

References: https://github.com/huggingface/transformers, `models/roberta`;
https://github.com/keras-team/keras-hub, `models/roberta` and `models/xlm_roberta`.
"""

import numpy as np

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Field, Record, Tables, of_tasks


def _read_positions(config):
    """Returns the number of usable positions: those above the padding id."""
    return config["max_position_embeddings"] - config["pad_token_id"] - 1


def _write_positions(arguments):
    rows = arguments["max_sequence_length"] + arguments["padding_id"] + 1
    return {"max_position_embeddings": rows}


def _refuse_jina_embeddings(config):
    """Returns a copy of a config; refuses jina-embeddings-v3, which claims to be an XLM-R."""
    if adapters := config.get("lora_adaptations"):
        raise ValueError(
            "Weights must be those of one task. Received: jina-embeddings-v3 with Jina's LoRA "
            f"adapters for the tasks {adapters} in one file. Load the same encoder in the format "
            "of transformers, 'hf://jinaai/jina-embeddings-v3-hf'."
        )
    return dict(config)


def _split_joined(tensors, backbone, config):
    """Splits the tensors that hold queries, keys and values in Jina's files."""
    joint, arrays = [name for name in tensors if ".Wqkv." in name], {}
    for name in joint:
        for part, array in zip(bert.PROJECTIONS, np.split(tensors[name], 3), strict=True):
            arrays[name.replace("mixer.Wqkv", f"attention.self.{part}")] = array
    return tensors.without(joint).updated(arrays)


TEXT_CLASSIFIER = bert.TEXT_CLASSIFIER._replace(
    rows=bert.hidden_and_dense("classifier.dense", "classifier.out_proj"),
    options={"pooling": "cls", "hidden_activation": "tanh", "dropout_first": True},
)
HUGGING_FACE = Record(
    backbone="bert_keras>RobertaBackbone",
    names={"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"},
    config={**bert.SIZES, "type_vocab_size": "num_segments", "pad_token_id": "padding_id"},
    fields=(Field("max_sequence_length", _read_positions, _write_positions),),
    allowed=bert.ALLOWED,
    defaults={
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "pad_token_id": 1,
        "type_vocab_size": 2,
    },
    rows=bert.ROWS,
    prefix="roberta.",
    heads=of_tasks(
        masked_tokens=bert.masked_lm(
            "lm_head.dense", "lm_head.layer_norm", "lm_head", activation="gelu"
        ),
        choice=bert.MULTIPLE_CHOICE,
        span=bert.QUESTION_ANSWERING,
        sequence=TEXT_CLASSIFIER,
        token=bert.TOKEN_CLASSIFIER,
    ),
    tables=Tables(_split_joined),
    native=_refuse_jina_embeddings,
    spellings={
        r"\bemb_ln\.": "embeddings.LayerNorm.",
        r"\bencoder\.layers\.": "encoder.layer.",
        r"\.mixer\.out_proj\.": ".attention.output.dense.",
        r"\.norm1\.": ".attention.output.LayerNorm.",
        r"\.mlp\.fc1\.": ".intermediate.dense.",
        r"\.mlp\.fc2\.": ".output.dense.",
        r"\.norm2\.": ".output.LayerNorm.",
    },
)

_POSITIONS = "layers/token_and_position_embedding/position_embedding/vars/0"
_SEGMENT = "layers/segment_embedding/vars/0"


def _with_padding(tensors, backbone, config):
    """Adds zeros as the positions up to the padding id, and as the vector of the one segment."""
    positions = tensors[_POSITIONS] if _POSITIONS in tensors else np.zeros((0, 0))
    padded = np.pad(positions, ((backbone.padding_id + 1, 0), (0, 0)))
    return tensors.updated({_POSITIONS: padded, _SEGMENT: np.zeros_like(padded[:1])})


def _without_padding(arrays, backbone):
    """Adds the one segment's vector to all positions; drops those up to the padding id."""
    positions = arrays[_POSITIONS][backbone.padding_id + 1 :] + arrays[_SEGMENT]
    return {name: x for name, x in arrays.items() if name != _SEGMENT} | {_POSITIONS: positions}


KERAS_HUB = bert.KERAS_HUB._replace(
    backbone=HUGGING_FACE.backbone,
    names={"RobertaBackbone": "Roberta", "XLMRobertaBackbone": "XLMRoberta"},
    config=bert.HUB_SIZES,
    fixed={"activation": "gelu", "layer_norm_epsilon": 1e-5, "padding_id": 1, "num_segments": 1},
    rows=(
        *bert.HUB_TOKENS_AND_POSITIONS,
        ("embeddings/segment_embedding", "layers/segment_embedding", "embedding"),
        *bert.HUB_BLOCKS,
    ),
    heads=of_tasks(
        masked_tokens=bert.hub_masked_lm("gelu"),
        sequence=bert.hub_text_classifier(bert.HUB_HIDDEN, TEXT_CLASSIFIER.options),
    ),
    tables=Tables(_with_padding, _without_padding),
    tokenizers={"Roberta": "BPE", "XLMRoberta": "Unigram"},
)
