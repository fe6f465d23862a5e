"""The records of all families, and lookups in them."""

from bert_keras.presets.families import albert_record as albert
from bert_keras.presets.families import bert_record as bert
from bert_keras.presets.families import deberta_v2_record as deberta_v2
from bert_keras.presets.families import distilbert_record as distilbert
from bert_keras.presets.families import electra_record as electra
from bert_keras.presets.families import ernie_record as ernie
from bert_keras.presets.families import gte_record as gte
from bert_keras.presets.families import jina_record as jina
from bert_keras.presets.families import modernbert_record as modernbert
from bert_keras.presets.families import mpnet_record as mpnet
from bert_keras.presets.families import nomic_bert_record as nomic_bert
from bert_keras.presets.families import roberta_record as roberta

# A new family is a module `<family>_record.py` with a `Record` for each format, such as
# `HUGGING_FACE`, and an entry here.
FAMILIES = (bert, albert, deberta_v2, distilbert, electra, ernie, modernbert, mpnet, nomic_bert)
FAMILIES += (gte, jina, roberta)

# Format -> the families' records in it.
RECORDS = {
    name: [getattr(family, name) for family in FAMILIES if hasattr(family, name)]
    for name in ("HUGGING_FACE", "TF1", "KERAS_HUB")
}


def record_of(backbone, of_format="HUGGING_FACE"):
    """Returns the record of a backbone in a format of `RECORDS`, or `None`.

    If its class has several records, the first whose `fixed` values the backbone has is returned.
    """
    import keras  # Not above: a checkpoint is described by records alone, without Keras.

    name = keras.saving.get_registered_name(type(backbone))
    records = [record for record in RECORDS[of_format] if record.backbone == name]
    for record in records:
        if all(getattr(backbone, key) == value for key, value in record.fixed.items()):
            return record
    return records[0] if records else None


def head_class_name(task, known_names):
    """Returns the name in `known_names` of the task whose head a task has, else its own name.

    Args:
        task: a task, its class, or the class's name, which is returned unchanged.
        known_names: collection of class names.
    """
    if isinstance(task, str):
        return task
    cls = task if isinstance(task, type) else type(task)
    # A subclass has its parent's head, unless it defines `make_head`.
    for ancestor in cls.__mro__:
        if ancestor.__name__ in known_names:
            return ancestor.__name__
        if "make_head" in vars(ancestor):
            break
    # A task may have the head of another without being its subclass.
    head_like = getattr(cls, "head_like", None)
    return head_like if head_like is not None and head_like in known_names else cls.__name__


def has_head_of(task, *kinds):
    """Returns whether a task has the head of one of some tasks, given by their class names."""
    return head_class_name(task, kinds) in kinds


def head_options(backbone, task):
    """Returns the options that give a task the head of the backbone's family.

    Args:
        backbone: a backbone.
        task: a task, its class, or the class's name.

    Returns:
        A dict with some of the keys `pooling`, `hidden_activation`, `dropout_first`, `norm`,
        `dropout`, `activation` and `use_bias`, see the heads; `{}` if nothing is known.
    """
    record = record_of(backbone)
    head = record and record.heads.get(head_class_name(task, record.heads))
    return dict(head.options) if head else {}
