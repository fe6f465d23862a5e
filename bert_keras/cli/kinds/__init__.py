"""The kinds of examples that `train` and `evaluate` know, one a file.

What a task is called, how it answers and what its labels mean follow from the task's class. A kind
adds what only files and runs need: how they are read, measured and drawn.
"""

from .pair_kind import PairKind
from .question_kind import ChoiceKind, QuestionKind
from .tag_kind import TagKind
from .text_kind import LongTextKind, TextKind

KINDS = (TextKind, LongTextKind, TagKind, QuestionKind, ChoiceKind, PairKind)
TASKS = {kind.name: kind for kind in KINDS}
