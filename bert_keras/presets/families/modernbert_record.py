"""ModernBERT in Hugging Face's checkpoints.

Before transformers 5, configs had separate keys for the pattern of layers and each rotary base. Now
they have `layer_types` and `rope_parameters`. A config with neither, or without the window, is an
error: transformers would take the values of ModernBERT-base, and no weight's shape would show the
mistake.

The heads of all tasks begin with a dense layer and a norm, like the head for masked tokens. From a
checkpoint for masked tokens, a task takes these two layers, as in transformers.

Reference: https://github.com/huggingface/transformers, `models/modernbert`.
"""

from bert_keras.presets.families.record import Field, Head, Record, of_tasks

_WINDOW = "local_attention"
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_BASES = {_GLOBAL: "global_rope_theta", _LOCAL: "local_rope_theta"}


def _pattern(num_layers, every):
    return [_LOCAL if i % every else _GLOBAL for i in range(num_layers)]


def _read_period(config):
    """Returns the n for which every n-th layer attends to the whole text."""
    kinds = config.get("layer_types")
    if kinds is None:
        return config["global_attn_every_n_layers"]
    for every in range(1, len(kinds) + 1):
        if kinds == _pattern(len(kinds), every):
            return every
    raise ValueError(
        f"`layer_types` must be {_GLOBAL!r} for the first and each n-th layer, and {_LOCAL!r} for "
        f"all others. Received: {kinds}. ModernBERT has no other patterns."
    )


def _base_field(kind, argument):
    """Returns the `Field` of the rotary base for one kind of layers."""

    def read(config):
        of_kinds = config.get("rope_parameters") or {}
        rope = of_kinds.get(kind) or {}
        is_plain = rope.get("rope_type", "default") == "default"
        if not is_plain or of_kinds.keys() - _BASES.keys() or config.get("rope_scaling"):
            raise ValueError(
                "Rotary positions must be plain, of `rope_type` 'default' for each kind of layers, "
                f"and no `rope_scaling`. Received: {of_kinds}, {config.get('rope_scaling')}. "
                "ModernBERT has no others."
            )
        return rope["rope_theta"] if "rope_theta" in rope else config[_BASES[kind]]

    return Field(argument, read)


def _write_pattern_and_bases(arguments):
    """Returns the keys of both versions: each ignores those of the other."""
    bases = {_GLOBAL: arguments["global_rotary_base"], _LOCAL: arguments["local_rotary_base"]}
    every = arguments["global_attention_every"]
    return {
        "global_attn_every_n_layers": every,
        **{_BASES[kind]: base for kind, base in bases.items()},
        "layer_types": _pattern(arguments["num_layers"], every),
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()
        },
    }


_HIDDEN = {"hidden_activation": "gelu", "norm": True}
_ROWS = (
    ("head/hidden", "head.dense", "kernel"),
    ("head/hidden_norm", "head.norm", "scale"),
    ("head/dense", "classifier", "dense"),
)
_DROPOUT = "classifier_dropout"
_TOKEN_HEAD = Head(
    _ROWS,
    "ForTokenClassification",
    _HIDDEN,
    _DROPOUT,
    parts=("head/hidden", "head/dense/"),
)
_TEXT_HEAD = _TOKEN_HEAD._replace(
    options={**_HIDDEN, "pooling": "cls"}, pooling="classifier_pooling"
)

HUGGING_FACE = Record(
    backbone="bert_keras>ModernBertBackbone",
    names={"modernbert": "ModernBert"},
    config={
        "vocab_size": "vocabulary_size",
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "hidden_size": "hidden_dim",
        "intermediate_size": "intermediate_dim",
        "mlp_dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "embedding_dropout": "embedding_dropout",
        "norm_eps": "layer_norm_epsilon",
        "max_position_embeddings": "max_sequence_length",
        "initializer_range": "initializer_range",
    },
    activation_key="hidden_activation",
    fields=(
        Field(_WINDOW, lambda config: config[_WINDOW], lambda sizes: {_WINDOW: sizes[_WINDOW]}),
        Field("global_attention_every", _read_period, _write_pattern_and_bases),
        _base_field(_GLOBAL, "global_rotary_base"),
        _base_field(_LOCAL, "local_rotary_base"),
    ),
    allowed={
        **dict.fromkeys(("attention_bias", "classifier_bias", "mlp_bias", "norm_bias"), (False,)),
        "classifier_activation": ("gelu",),
        "decoder_bias": (True,),
    },
    rows=(
        ("embeddings/token_embedding", "embeddings.tok_embeddings", "embedding"),
        ("embeddings/layer_norm", "embeddings.norm", "scale"),
        ("encoder/layer_{i}/attention_norm", "layers.{i}.attn_norm", "scale", 1),
        ("encoder/layer_{i}/attention/query_key_value", "layers.{i}.attn.Wqkv", "kernel"),
        ("encoder/layer_{i}/attention/output", "layers.{i}.attn.Wo", "kernel"),
        ("encoder/layer_{i}/feed_forward_norm", "layers.{i}.mlp_norm", "scale"),
        ("encoder/layer_{i}/feed_forward/intermediate", "layers.{i}.mlp.Wi", "kernel"),
        ("encoder/layer_{i}/feed_forward/output", "layers.{i}.mlp.Wo", "kernel"),
        ("encoder/final_norm", "final_norm", "scale"),
    ),
    prefix="model.",
    heads=of_tasks(
        masked_tokens=Head(
            (
                ("head/dense", "head.dense", "kernel"),
                ("head/layer_norm", "head.norm", "scale"),
                ("head", "decoder", "bias"),
            ),
            "ForMaskedLM",
            {"activation": "gelu", "use_bias": False},
            tied={"decoder.weight": "embeddings.tok_embeddings.weight"},
            parts=("head/dense/", "head/layer_norm/", "head/bias"),
        ),
        choice=_TEXT_HEAD._replace(architecture="ForMultipleChoice"),
        span=_TOKEN_HEAD._replace(architecture="ForQuestionAnswering"),
        sequence=_TEXT_HEAD._replace(architecture="ForSequenceClassification"),
        token=_TOKEN_HEAD._replace(parts=(*_TOKEN_HEAD.parts, "head/crf/")),
    ),
)
