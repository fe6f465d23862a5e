"""What of a backbone a task leaves as it is; other tasks on the same backbone are not concerned."""

import contextlib

import keras

from bert_keras.checks import is_int
from bert_keras.presets.assign import relative_path

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

    What all blocks share is frozen with the first of them, whose output would change otherwise.
    """
    if frozen is None:
        return []
    if frozen == "backbone":
        return backbone.weights
    below = (
        1 if frozen in ("embeddings", 0) else len(backbone.stages) - backbone.num_blocks + frozen
    )
    stages = backbone.stages[:below]
    return [weight for stage in stages for weight in stage.weights]


@contextlib.contextmanager
def without_gradients(weights):
    """Inside, PyTorch computes no gradient of these weights; others never do where none is asked.

    Args:
        weights: list of `keras.Variable`.
    """
    tensors = []
    if keras.backend.backend() == "torch":
        tensors = [weight.value for weight in weights if weight.value.requires_grad]
    for tensor in tensors:
        tensor.requires_grad_(False)
    try:
        yield
    finally:
        for tensor in tensors:
            tensor.requires_grad_(True)


# Of a task. The pooler of one that does not read it has no gradient: of those variables Keras would
# warn on some backends, and on JAX its weight decay would shrink them.


def idle_weights(task):
    """Returns the weights of a task's backbone that it leaves as they are, a list.

    Of a task that trains others together, also those that these leave; and what it says to be
    `left_alone`.
    """
    backbone = getattr(task, "backbone", None)
    if backbone is None:  # Not yet there.
        return []
    idle = [*frozen_weights(backbone, getattr(task, "frozen", None))]
    idle += getattr(task, "left_alone", ())
    idle += [weight for part in getattr(task, "tasks", ()) for weight in idle_weights(part)]
    if backbone.pooler is None or task.reads_pooled_output:
        return idle
    return [*idle, *backbone.pooler.weights]


def trained(name):
    """Returns a property of a task: what Keras's property of this name gives, but what is idle."""

    of_keras = getattr(keras.Model, name).fget

    def get(task):
        idle = {id(weight) for weight in idle_weights(task)}
        return [variable for variable in of_keras(task) if id(variable) not in idle]

    return property(get, doc=f"What `fit` changes of `keras.Model.{name}`.")


def all_but(trained_name, of):
    """Returns a property of a task: all that its property `of` gives but what trains."""

    def get(task):
        changed = {id(variable) for variable in getattr(task, trained_name)}
        return [variable for variable in getattr(task, of) if id(variable) not in changed]

    return property(get, doc=f"All of `{of}` that is not among `{trained_name}`.")


def frozen_by_hand(task):
    """Returns the paths of weights that do not train and that no argument accounts for."""
    known = {id(weight) for weight in task.backbone.frozen_by_adapters}
    if not task.backbone.trainable:
        known |= {id(weight) for weight in task.backbone.weights}
    return [
        relative_path(weight)
        for weight in (task.weights if task.trainable else [])
        if not weight.trainable and id(weight) not in known
    ]


def freeze_by_hand(task, paths):
    """Freezes what `frozen_by_hand` told of; merging adapters will not let it train."""
    by_adapters = task.backbone._frozen_by_adapters
    task.backbone._frozen_by_adapters = tuple(p for p in by_adapters if p not in paths)
    for weight in task.weights:
        if relative_path(weight) in paths:
            weight.trainable = False
