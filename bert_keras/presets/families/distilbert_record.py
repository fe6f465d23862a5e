"""DistilBERT in Hugging Face's checkpoints and in KerasHub's.

References: https://github.com/huggingface/transformers, `models/distilbert`;
https://github.com/keras-team/keras-hub, `models/distil_bert`.
"""

from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families.record import Head, Record, of_tasks

_LAYER = {
    **{f"attention/{x}": f"attention.{x[0]}_lin" for x in bert.PROJECTIONS},
    "attention/output": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "feed_forward/intermediate": "ffn.lin1",
    "feed_forward/output": "ffn.lin2",
    "feed_forward_norm": "output_layer_norm",
}
_CLASSIFIER = bert.hidden_and_dense("pre_classifier", "classifier")
_OPTIONS = {"pooling": "cls", "hidden_activation": "relu", "dropout": 0.2}
_DROPOUT = "seq_classif_dropout"

HUGGING_FACE = Record(
    backbone="bert_keras>DistilBertBackbone",
    names={"distilbert": "DistilBert"},
    config={
        "vocab_size": "vocabulary_size",
        "n_layers": "num_layers",
        "n_heads": "num_heads",
        "dim": "hidden_dim",
        "hidden_dim": "intermediate_dim",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "max_position_embeddings": "max_sequence_length",
        "initializer_range": "initializer_range",
    },
    activation_key="activation",
    fixed={"layer_norm_epsilon": 1e-12},
    rows=(
        *(row for row in bert.ROWS[:4] if "segment" not in row[0]),
        *bert.block_rows("transformer.layer.{i}", _LAYER),
    ),
    prefix="distilbert.",
    heads=of_tasks(
        masked_tokens=bert.masked_lm(
            "vocab_transform", "vocab_layer_norm", "vocab_projector", has_decoder=False
        ),
        choice=Head(_CLASSIFIER, "ForMultipleChoice", _OPTIONS, _DROPOUT),
        span=bert.QUESTION_ANSWERING._replace(options={"dropout": 0.1}, dropout="qa_dropout"),
        sequence=bert.TEXT_CLASSIFIER._replace(
            rows=_CLASSIFIER, options=_OPTIONS, dropout=_DROPOUT
        ),
        token=bert.TOKEN_CLASSIFIER,
    ),
)

KERAS_HUB = bert.KERAS_HUB._replace(
    backbone=HUGGING_FACE.backbone,
    names={"DistilBertBackbone": "DistilBert"},
    config=bert.HUB_SIZES,
    fixed={"activation": "gelu", "layer_norm_epsilon": 1e-12},
    rows=(*bert.HUB_TOKENS_AND_POSITIONS, *bert.HUB_BLOCKS),
    heads=of_tasks(
        masked_tokens=bert.hub_masked_lm("gelu"),
        sequence=bert.hub_text_classifier(bert.HUB_HIDDEN, _OPTIONS),
    ),
    tokenizers={"DistilBert": "WordPiece"},
)
