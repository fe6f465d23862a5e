"""Learning rates that fall with depth."""

import posixpath
import re

import keras

from bert_keras.checks import check_number, is_number
from bert_keras.engine.variable_paths import relative_path


def layer_wise_decay(
    backbone: keras.layers.Layer, rate: float, head: float = 1.0
) -> list[tuple[str, float]]:
    """Returns learning-rate multipliers that fall with the distance from the head.

    Lower layers hold general knowledge and need smaller steps: of `n` stages (the embeddings, what
    all blocks share, then each block), stage `i`, counted from 0, has `rate ** (n - i)` times the
    learning rate. What lies above them in the backbone, such as a pooler, has the multiplier 1.
    Weights are found by their paths within the backbone, whatever its name is.

    Args:
        backbone: a `Backbone`, or any layer with `stages`.
        rate: float, above 0 and at most 1; Sun et al. found 0.95 best.
        head: float, multiplier of all weights outside the backbone.

    Returns:
        List of (pattern, multiplier), the `learning_rate_multipliers` of `AdamW`.

    Raises:
        ValueError: `rate` or `head` is out of range.

    Example:
    ```python
    AdamW(2e-5, learning_rate_multipliers=layer_wise_decay(backbone, rate=0.95, head=5.0))
    ```

    Reference:
        [Sun et al., 2019](https://arxiv.org/abs/1905.05583), section 5.3.4, where the top layer
        has multiplier 1, not `rate`; the convention here is that of
        [ELECTRA](https://arxiv.org/abs/2003.10555), which has the multiplier 1 above that layer.
    """
    if not (is_number(rate) and 0 < rate <= 1):
        raise ValueError(f"`rate` must be above 0 and at most 1. Received: {rate!r}.")
    check_number("head", head)
    stages = _patterns(backbone)
    multipliers = [(stage, rate ** (len(stages) - i)) for i, stage in enumerate(stages)]
    # The pooler has no row of its own: a row without a trainable weight causes a warning.
    parts = dict.fromkeys(relative_path(weight).partition("/")[0] for weight in backbone.weights)
    return [*multipliers, (rf"^(?![^/]+/({'|'.join(map(re.escape, parts))})/)", head)]


def _patterns(backbone):
    """Returns a regular expression for each stage: what the paths of its weights have in common.

    The first part of a path is the backbone's name, which is left open. A stage that occurs several
    times, because layers share it, counts once.
    """
    folders = (
        posixpath.commonpath([relative_path(weight).rpartition("/")[0] for weight in stage.weights])
        for stage in backbone.stages
    )
    return list(dict.fromkeys(rf"^[^/]+/{re.escape(folder)}/" for folder in folders))
