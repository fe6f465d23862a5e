"""RoBERTa, XLM-R, CamemBERT and CodeBERT in Hugging Face's checkpoints.

Reference: https://github.com/huggingface/transformers, `models/roberta`.
"""

from bert_keras.presets.families import bert
from bert_keras.presets.families.record import Field, Record


def _positions(config):
    """Returns the usable positions: those up to the padding's id are no token's."""
    return config["max_position_embeddings"] - config["pad_token_id"] - 1


def _rows(arguments):
    rows = arguments["max_sequence_length"] + arguments["padding_id"] + 1
    return {"max_position_embeddings": rows}


HUGGING_FACE = Record(
    backbone="bert_keras>RobertaBackbone",
    names={"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"},
    config={**bert.SIZES, "layer_norm_eps": "layer_norm_epsilon", "pad_token_id": "padding_id"},
    activation=("hidden_act", bert.ACTIVATIONS),
    fields=(Field("max_sequence_length", _positions, _rows),),
    allowed={**bert.ALLOWED, "type_vocab_size": (1,), "is_decoder": (False,)},
    defaults={
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "pad_token_id": 1,
        "type_vocab_size": 2,
    },
    rows=bert.ROWS,
    prefix="roberta.",
    heads={
        "MaskedLM": bert.masked_lm(
            "lm_head.dense", "lm_head.layer_norm", "lm_head", activation="gelu"
        ),
        "MultipleChoice": bert.MULTIPLE_CHOICE,
        "QuestionAnswering": bert.QUESTION_ANSWERING,
        "TextClassifier": bert.TEXT_CLASSIFIER._replace(
            rows=bert.hidden_and_dense("classifier.dense", "classifier.out_proj"),
            options={"pooling": "cls", "hidden_activation": "tanh", "dropout_first": True},
        ),
        "TokenClassifier": bert.TOKEN_CLASSIFIER,
    },
)
