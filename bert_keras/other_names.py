"""What other libraries call the things of this package, with what each is called here."""

import inspect
from typing import Any

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
# Methods; each is refused where the class has one of those that it may be called here, or the one
# before a colon, behind which stands what to write.
_METHODS = {
    "from_pretrained": "from_preset",
    "save_pretrained": "export_to_huggingface",
    "push_to_hub": "export_to_huggingface",
    "export_to_transformers": "export_to_huggingface",
    "encode_plus": "encode",
    "batch_encode_plus": "encode",
    "encode": "embed",
    "similarity": "embed: metrics.cosine_similarity_matrix(embed(a), embed(b))",
    "predict_proba": "classify",
    "predict_classes": "classify",
    "classify": "tag, answer, choose, fill_mask, is_next, embed",
    "freeze": "fit: from_preset(..., frozen='backbone')",
    "enable_lora": "fit: from_preset(..., lora_rank=8)",
    "get_attentions": "fit: backbone(preprocessor(texts), return_attentions=True)",
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
    "learning_rate": "`compile(learning_rate=...)`",
    "batchsize": "`batch_size`",
    "freeze": "`frozen`",
    "output_attentions": "`return_attentions` of the backbone's call",
    "output_hidden_states": "`return_hidden_states` of the backbone's call",
    "return_attentions": "an argument of the backbone's call",
    "return_hidden_states": "an argument of the backbone's call",
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


def check_arguments(given, function):
    """Raises `TypeError` where `given` has a name that is no argument of a function."""
    for name in given:
        if name not in inspect.signature(function).parameters:
            hint = renamed_argument(name)
            raise TypeError(f"`{function.__name__}` has no argument {name!r}.{hint}")


class WithOtherNames:
    """A class whose methods, called by another library's name, say what they are called here."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, ours in _METHODS.items():
            needed, _, call = ours.partition(": ")
            here = [method for method in needed.split(", ") if hasattr(cls, method)]
            if here and not hasattr(cls, name):
                setattr(cls, name, _refusal(name, call or here[0]))


def _refusal(name, ours):
    def refuse(*args, **kwargs):
        raise AttributeError(f"There is no `{name}` here. It is called `{ours}`.")

    return staticmethod(refuse)
