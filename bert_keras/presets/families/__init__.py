"""The records of all families, and what is looked up in them."""

import keras

from bert_keras.presets.families import bert, roberta

FAMILIES = (bert, roberta)


def records(of_format):
    """Returns the families' records in a format: `"HUGGING_FACE"`, `"TF1"` or `"KERAS_HUB"`."""
    return [getattr(family, of_format) for family in FAMILIES if hasattr(family, of_format)]


def record_of(backbone):
    """Returns the Hugging Face record of a backbone's class, or `None`."""
    name = keras.saving.get_registered_name(type(backbone))
    found = (record for record in records("HUGGING_FACE") if record.backbone == name)
    return next(found, None)


def head_options(backbone, task_class_name):
    """Returns what makes a task's head that of the backbone's family.

    Args:
        backbone: a backbone.
        task_class_name: str, such as `"TextClassifier"`.

    Returns:
        A dict with some of the keys `pooling`, `hidden_activation`, `dropout_first`, `dropout` and
        `activation`, see the heads; `{}` where nothing is known.
    """
    record = record_of(backbone)
    head = record and record.heads.get(task_class_name)
    return dict(head.options) if head else {}
