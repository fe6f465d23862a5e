"""The answers that have a command, in the order of its help, and those of a model."""

from typing import Any

from .answerer import Answerer
from .classes import ChoiceAnswerer, ClassAnswerer, NextSentenceAnswerer
from .entailment import ZeroShotAnswerer
from .ranked_texts import RankAnswerer
from .span_search import SpanAnswerer
from .tagged_texts import TagAnswerer
from .text_vectors import EmbedAnswerer, SparseAnswerer, TokenVectorsAnswerer
from .tokens import MaskAnswerer, ReplacedTokenAnswerer
from .zero_shot_spans import ZeroShotTagAnswerer

ANSWERERS = (
    ClassAnswerer,
    ZeroShotAnswerer,
    TagAnswerer,
    ZeroShotTagAnswerer,
    SpanAnswerer,
    ChoiceAnswerer,
    MaskAnswerer,
    EmbedAnswerer,
    SparseAnswerer,
    TokenVectorsAnswerer,
    NextSentenceAnswerer,
    ReplacedTokenAnswerer,
    RankAnswerer,
)


def answerers_of(model: Any, *, with_steps: bool = False) -> dict[str, type[Answerer]]:
    """Returns the answers of a task or an `ExportedTask`, a dict by the names that a server has.

    Args:
        model: any object; one without `answerers` has no answers.
        with_steps: bool, whether answers without a command, which are steps of others, come too.
    """
    answerers = getattr(model, "answerers", ())
    classes = answerers.values() if isinstance(answerers, dict) else answerers
    return {cls.route or cls.method: cls for cls in classes if cls.about or with_steps}
