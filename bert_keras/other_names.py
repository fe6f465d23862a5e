"""What other libraries call the things of this package, with what each is called here."""

# Endings of the names of classes in KerasHub and transformers.
_CLASSES = {
    "ForSequenceClassification": "TextClassifier",
    "TextClassifier": "TextClassifier",
    "ForTokenClassification": "TokenClassifier",
    "ForQuestionAnswering": "QuestionAnswering",
    "ForMultipleChoice": "MultipleChoice",
    "ForMaskedLM": "MaskedLM",
    "MaskedLM": "MaskedLM",
    "ForNextSentencePrediction": "NextSentencePrediction",
    "ForPreTraining": "Pretraining",
    "SentenceTransformer": "TextEmbedder",
    "TextEmbedder": "TextEmbedder",
    "Preprocessor": "TextPreprocessor",
    "Tokenizer": "Tokenizer",
    "TokenizerFast": "Tokenizer",
    "Config": "BertBackbone",
    "Model": "BertBackbone",
    "Trainer": "TextClassifier.fit",
    "pipeline": "TextClassifier.classify",
}
# Methods; each is refused where the class has the one that it is called here.
_METHODS = {
    "from_pretrained": "from_preset",
    "save_pretrained": "export_to_huggingface",
    "push_to_hub": "export_to_huggingface",
    "encode_plus": "encode",
    "batch_encode_plus": "encode",
    "encode": "embed",
    "similarity": "semantic_search",
    "convert_tokens_to_ids": "token_to_id",
    "convert_ids_to_tokens": "id_to_token",
    "decode": "detokenize",
    "batch_decode": "detokenize",
    "get_vocab": "get_vocabulary",
}
# Keyword arguments.
_ARGUMENTS = {
    "sequence_length": "`max_length`",
    "max_seq_length": "`max_length`",
    "max_len": "`max_length`",
    "num_labels": "`num_classes`",
    "id2label": "`label_names`, a list",
    "labels": "`label_names`",
    "vocab_size": "`vocabulary_size`",
    "hidden_size": "`hidden_dim`",
    "num_hidden_layers": "`num_layers`",
    "num_attention_heads": "`num_heads`",
    "intermediate_size": "`intermediate_dim`",
    "hidden_dropout_prob": "`dropout`",
    "attention_probs_dropout_prob": "`attention_dropout`",
    "lr": "`learning_rate`",
    "epoch": "`epochs`",
    "activation": "a task's outputs are logits, and `classify` answers with probabilities",
}


def renamed_class(name):
    """Returns a sentence on the class of this package that does what another's class does.

    Args:
        name: str, such as `"BertForMaskedLM"`.
    """
    endings = [ending for ending in _CLASSES if name.endswith(ending)]
    return f" Here it is `bert_keras.{_CLASSES[max(endings, key=len)]}`." if endings else ""


def renamed_argument(name):
    """Returns a sentence on what another library's keyword argument is called here, or `""`.

    Args:
        name: str, such as `"num_labels"`.
    """
    return f" Here: {_ARGUMENTS[name]}." if name in _ARGUMENTS else ""


class WithOtherNames:
    """A class whose methods, called by another library's name, say what they are called here."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name, ours in _METHODS.items():
            if hasattr(cls, ours) and not hasattr(cls, name):
                setattr(cls, name, _refusal(name, ours))


def _refusal(name, ours):
    def refuse(*args, **kwargs):
        raise AttributeError(f"There is no `{name}` here. It is called `{ours}`.")

    return staticmethod(refuse)
