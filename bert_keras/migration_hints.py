"""Other libraries' names for what this package has, and our name for each."""

import sys
from collections.abc import Callable
from typing import Any

# Endings of class names in KerasHub and transformers.
_CLASSES = {
    "ForSequenceClassification": "TextClassifier",
    "Classifier": "TextClassifier",
    "ForTokenClassification": "TokenClassifier",
    "TokenClassifier": "TokenClassifier",
    "ForQuestionAnswering": "QuestionAnswering",
    "SpanLabeler": "QuestionAnswering",
    "ForMaskedLM": "MaskedLM",
    "MaskedLM": "MaskedLM",
    "Pretrainer": "Pretraining",
    "MaskGenerator": "MaskedLM",
    "CrossEncoder": "Reranker",
    "SentenceTransformer": "TextEmbedder",
    "SparseEncoder": "SparseTextEmbedder",
    "MultiVectorEncoder": "MultiVectorEmbedder",
    "Preprocessor": "TextPreprocessor",
    "PackInputs": "TextPreprocessor",
    "Tokenizer": "Tokenizer",
    "TokenizerFast": "Tokenizer",
    "Model": "BertBackbone",
    "Backbone": "models.backbone.Backbone",
    "Encoder": "BertBackbone",
    "upload_preset": "Task.export_to_huggingface",
    "Trainer": "TextClassifier.fit",
    "pipeline": "TextClassifier.classify",
}
# Methods, with ours: the first one that the class has. After a colon comes what to write instead.
_METHODS = {
    "from_pretrained": "from_preset",
    "save_pretrained": "export_to_huggingface",
    "push_to_hub": "export_to_huggingface",
    "upload_preset": "export_to_huggingface",
    "encode": "embed",
    "similarity": "embed: metrics.similarity_matrix(embed(a), embed(b))",
    "predict_proba": "classify",
    "classify": "tag, answer, choose, fill_mask, is_next, embed",
    "freeze": "fit: from_preset(..., frozen='backbone')",
    "enable_lora": "fit: from_preset(..., lora_rank=8)",
    "convert_tokens_to_ids": "token_to_id",
    "decode": "detokenize",
    "batch_decode": "detokenize",
    "vocab_size": "vocabulary_size",
    "get_vocab": "get_vocabulary",
    "max_seq_length": "fit: preprocessor.max_length",
    "sequence_length": "for_inputs: max_length",
}
# Inputs of models, with ours.
INPUTS = {
    "input_ids": "token_ids",
    "input_word_ids": "token_ids",
    "input_type_ids": "segment_ids",
    "token_type_ids": "segment_ids",
    "attention_mask": "padding_mask",
    "input_mask": "padding_mask",
    "masked_lm_positions": "mask_positions",
}
# Keyword arguments.
_ARGUMENTS = {
    "sequence_length": "`max_length`",
    "max_seq_length": "`max_length`",
    "num_labels": "`num_classes`",
    "id2label": "`label_names`, a list",
    "lr": "`learning_rate`",
    "lr_scheduler_type": "`lr_schedule`",
    "learning_rate": "`compile(learning_rate=...)`",
    "batchsize": "`batch_size`",
    "freeze": "`frozen`",
    "output_attentions": "`task.backbone(inputs, return_attentions=True)`",
    "output_hidden_states": "`task.backbone(inputs, return_hidden_states=True)`",
    "activation": "a task's outputs are logits, and `classify` answers with probabilities",
}


def renamed_class(name):
    """Returns a sentence that names our counterpart of another library's class, or `""`.

    Args:
        name: str, such as `"BertForMaskedLM"`.
    """
    endings = [ending for ending in _CLASSES if name.endswith(ending)]
    return f" Here it is `bert_keras.{_CLASSES[max(endings, key=len)]}`." if endings else ""


def hints_of_module(module: str) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package: the error says where the library has the name.

    Args:
        module: str, such as `"bert_keras.models"`.
    """

    def find(name):
        is_ours = name[:1].isupper() and name in vars(sys.modules["bert_keras"])
        hint = f" Here it is `bert_keras.{name}`." if is_ours else renamed_class(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}.{hint}")

    return find


def renamed_input(name, allowed):
    """Returns a sentence about an input that a model does not take, `""` where there is none.

    Args:
        name: the name that a user gave.
        allowed: names of the inputs that the model takes.
    """
    meant = INPUTS.get(name, name)
    if meant == "segment_ids" and meant not in allowed:
        return " This model has no segments: leave them out."
    return f" Did you mean {meant!r}?" if meant in allowed else ""


def renamed_argument(name):
    """Returns a sentence that names our counterpart of another library's argument, or `""`.

    Args:
        name: str, such as `"num_labels"`.
    """
    return f" Here: {_ARGUMENTS[name]}." if name in _ARGUMENTS else ""


def missing_attribute(cls, name):
    """Returns the message of the `AttributeError` for a missing attribute of a class."""
    ours, _, call = _METHODS.get(name, "").partition(": ")
    for method in ours.split(", ") if ours else ():
        if hasattr(cls, method):
            return f"There is no `{name}` here. It is called `{call or method}`."
    return f"{cls.__name__!r} object has no attribute {name!r}"


class NotHere:
    """A name that a class lacks: to read or to set it raises the error that says so.

    Python asks `__getattr__` of objects only, and a class method is called on the class. A setting
    of another library that is set would be ignored.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(missing_attribute(owner, self.name))

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(missing_attribute(type(instance), self.name))
