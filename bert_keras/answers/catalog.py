"""The answers that have a command, in the order of its help."""

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
