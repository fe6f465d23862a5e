"""The tasks that `train` and `evaluate` know, by their names."""

from bert_keras.cli.kinds.choice_kind import ChoiceKind
from bert_keras.cli.kinds.pair_kind import PairKind
from bert_keras.cli.kinds.question_kind import QuestionKind
from bert_keras.cli.kinds.tag_kind import TagKind
from bert_keras.cli.kinds.text_kind import LongTextKind, TextKind

KINDS = (TextKind, LongTextKind, TagKind, QuestionKind, ChoiceKind, PairKind)
TASKS = {kind.name: kind for kind in KINDS}
