"""A backbone's parts by their depth: rates that fall with it, and the order of thawing."""

import posixpath
import re

import keras

from bert_keras.checks import check_int, check_number, is_number
from bert_keras.engine.structure import relative_path


def layer_wise_decay(
    backbone: keras.layers.Layer, rate: float, head: float = 1.0
) -> list[tuple[str, float]]:
    """Returns learning-rate multipliers that fall with the distance from the head.

    Lower layers hold general knowledge and need smaller steps: of `n` stages, the embeddings first
    and then each block, stage `i` moves at `rate ** (n - i)` times the learning rate, counted from
    0. What stands above them in the backbone, such as a pooler, has the multiplier 1. All are known
    by their paths within the backbone, whatever that is called.

    Args:
        backbone: a `Backbone`, or any layer with `stages`.
        rate: float, above 0 and at most 1; Sun et al. found 0.95 best.
        head: float, multiplier of everything outside the backbone.

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
        [ELECTRA](https://arxiv.org/abs/2003.10555), where the pooler stands above it.
    """
    if not (is_number(rate) and 0 < rate <= 1):
        raise ValueError(f"`rate` must be above 0 and at most 1. Received: {rate!r}.")
    check_number("head", head)
    stages = _patterns(backbone)
    multipliers = [(stage, rate ** (len(stages) - i)) for i, stage in enumerate(stages)]
    # Not a row for the pooler, of which there would be a warning where it does not train.
    parts = dict.fromkeys(relative_path(weight).partition("/")[0] for weight in backbone.weights)
    return [*multipliers, (rf"^(?![^/]+/({'|'.join(map(re.escape, parts))})/)", head)]


def stages_from_the_top(backbone: keras.layers.Layer, layers_per_stage: int = 1) -> list[list[str]]:
    """Returns the stages of `GradualUnfreezing` for a backbone: last block first, embeddings last.

    The pooler and everything outside the backbone are in no stage and move from the beginning.

    Args:
        backbone: a `Backbone`, or any layer with `stages`.
        layers_per_stage: int, how many blocks thaw together.

    Returns:
        List of lists of regular expressions.

    Raises:
        ValueError: `layers_per_stage` is no int from 1.
    """
    check_int("layers_per_stage", layers_per_stage)
    embeddings, *blocks = _patterns(backbone)
    blocks.reverse()
    starts = range(0, len(blocks), layers_per_stage)
    return [*(blocks[i : i + layers_per_stage] for i in starts), [embeddings]]


def _patterns(backbone):
    """Returns a regular expression for each stage: what its weights' paths have in common.

    The first part of a path is the backbone's name, which is left open. A block that stands there
    several times, because it is shared, is one stage.
    """
    folders = (
        posixpath.commonpath([relative_path(weight).rpartition("/")[0] for weight in stage.weights])
        for stage in backbone.stages
    )
    return list(dict.fromkeys(rf"^[^/]+/{re.escape(folder)}/" for folder in folders))
