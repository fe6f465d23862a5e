"""The weights that a task does not train. Other tasks on the same backbone are not affected."""

import keras

from bert_keras.checks import is_int
from bert_keras.engine.variable_paths import relative_path

FROZEN_PARTS = (None, "backbone", "embeddings")


def check_frozen(frozen, num_layers):
    """Returns `frozen`; raises `ValueError` unless it names a part of the backbone, see `Task`."""
    if frozen in FROZEN_PARTS or (is_int(frozen) and 0 <= frozen <= num_layers):
        return frozen
    raise ValueError(
        f"`frozen` must be one of {FROZEN_PARTS} or an int from 0 to {num_layers}, the encoder "
        f"layers. Received: {frozen!r}."
    )


def frozen_weights(backbone, frozen):
    """Returns the weights of the stages that `frozen` names, a list.

    Layers that all blocks share are frozen along with the first block; otherwise its output would
    change.
    """
    if frozen == "backbone":
        return backbone.weights
    below_blocks = len(backbone.stages) - backbone.num_blocks
    num_stages = 1 if frozen in ("embeddings", 0) else below_blocks + frozen
    return [weight for stage in backbone.stages[:num_stages] for weight in stage.weights]


def excluded_weights(task):
    """Returns the weights that a task does not train, although they are trainable, a list.

    Those of the frozen part of the backbone, of its pooler if the task does not read it, and of
    `untrained_variables`; for a task made of `tasks`, also those that these do not train. Keras
    would warn about a pooler without a gradient on some backends, and on JAX weight decay would
    shrink it.
    """
    backbone = getattr(task, "backbone", None)
    if backbone is None:  # The constructor has not set it yet.
        return []
    idle = [*task.untrained_variables]
    if getattr(task, "frozen", None) is not None:
        idle += frozen_weights(backbone, task.frozen)
    for part in task.tasks:
        idle += part.excluded_weights
    if backbone.pooler is not None and not task.reads_pooled_output:
        idle += backbone.pooler.weights
    return idle


def trained(name):
    """Returns a property of a task: Keras's property of this name, without the idle weights."""

    keras_property = getattr(keras.Model, name).fget

    def get(task):
        variables, idle = keras_property(task), set(map(id, task.excluded_weights))
        return [v for v in variables if id(v) not in idle] if idle else variables

    return property(get, doc=f"The part of `keras.Model.{name}` that `fit` changes.")


def complement_property(trained_name, of):
    """Returns a property of a task: its property `of`, without what trains."""

    def get(task):
        changed = {id(variable) for variable in getattr(task, trained_name)}
        return [variable for variable in getattr(task, of) if id(variable) not in changed]

    return property(get, doc=f"The part of `{of}` that is not in `{trained_name}`.")


def frozen_by_hand(task):
    """Returns the paths of weights that do not train, and that no argument accounts for."""
    accounted_for = {id(weight) for weight in task.backbone.frozen_by_adapters}
    if not task.backbone.trainable:
        accounted_for |= {id(weight) for weight in task.backbone.weights}
    return [
        relative_path(weight)
        for weight in (task.weights if task.trainable else [])
        if not weight.trainable and id(weight) not in accounted_for
    ]


def freeze_by_hand(task, paths):
    """Freezes the weights that `frozen_by_hand` returned, also after adapters are merged."""
    by_adapters = task.backbone._frozen_by_adapters
    task.backbone._frozen_by_adapters = tuple(p for p in by_adapters if p not in paths)
    for weight in task.weights:
        if relative_path(weight) in paths:
            weight.trainable = False
