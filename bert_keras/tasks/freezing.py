"""What a task freezes: the argument `frozen`, and weights that a user froze by hand."""

from bert_keras.engine.variable_paths import relative_path

FROZEN_PARTS = (None, "backbone", "embeddings")


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
