"""GLUE and similar Chinese and multi-label sets: one table of tasks.

The label order is that of the processors in google-research/bert (`run_classifier.py`), which most
published checkpoints follow: MNLI is contradiction, entailment, neutral. The `datasets` hub has
entailment, neutral, contradiction; compare label names, not numbers, across libraries.

Reference: Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
Understanding", ICLR 2019, https://arxiv.org/abs/1804.07461
"""

import types

from bert_keras.checks import check_choice
from bert_keras.datasets.classification import ClassificationTask, Layout


def _task(texts, label, labels, layouts=(), is_named=False, **options):
    """Returns a task.

    Args:
        texts: str, the columns of the texts, separated by commas; empty without a header.
        label: str, the label's column.
        labels: str, the names of the classes, in the order of their numbers.
        layouts: tuple of `Layout`, further ones.
        is_named: bool, whether files hold these names, rather than numbers.
        **options: see `ClassificationTask`.
    """
    return ClassificationTask(
        (*(Layout(tuple(x.split(",")), label) for x in [texts] if x), *layouts),
        tuple((name if is_named else str(n), name) for n, name in enumerate(labels.split())),
        **options,
    )


_SENTENCES = "sentence1,sentence2"
_ENTAILMENT = {"labels": "entailment not_entailment", "is_named": True}
_INFERENCE = {"labels": "contradiction entailment neutral", "is_named": True}
# Demszky et al. 2020, in the order of the authors' emotions.txt.
_EMOTIONS = """
admiration amusement anger annoyance approval caring confusion curiosity desire disappointment
disapproval disgust embarrassment excitement fear gratitude grief joy love nervousness optimism
pride realization relief remorse sadness surprise neutral
"""

GLUE_TASKS = types.MappingProxyType(
    {
        # Warstadt et al. 2019: grammatical or not. Source, label, author's mark, sentence.
        "cola": _task("sentence", None, "unacceptable acceptable", (Layout((3,), 1, (4,)),)),
        # Socher et al. 2013: sentiment of phrases (train) and sentences of film reviews.
        "sst2": _task("sentence", "label", "negative positive", folders=("sst",)),
        # Dolan and Brockett 2005: do two sentences from the news mean the same?
        "mrpc": _task("#1 String,#2 String", "Quality", "not_equivalent equivalent"),
        # Cer et al. 2017: similarity from 0 to 5. The original files have no header, and in some
        # rows two more columns, the sources.
        "stsb": _task(
            _SENTENCES,
            "score",
            "",
            (Layout((5, 6), 4, (7, 9)),),
            problem_type="regression",
            score_range=(0.0, 5.0),
            folders=("stsbenchmark",),
        ),
        # Quora question pairs. GLUE's train and dev files hold a few rows cut short.
        "qqp": _task(
            "question1,question2", "is_duplicate", "not_duplicate duplicate", skips_broken_rows=True
        ),
        # Williams et al. 2018. `dev.csv` (premise, hypothesis, label) holds both dev sets, the
        # 9,815 matched rows first.
        "mnli": _task(
            _SENTENCES,
            "gold_label",
            **_INFERENCE,
            layouts=(Layout(("premise", "hypothesis"), "label"),),
            folders=("multinli",),
        ),
        # SQuAD as sentence pairs: does the sentence answer the question?
        "qnli": _task("question,sentence", "label", **_ENTAILMENT),
        # Dagan et al. 2005 and after.
        "rte": _task(_SENTENCES, "label", **_ENTAILMENT),
        # Levesque et al. 2011: does a sentence with its pronoun replaced still follow?
        "wnli": _task(_SENTENCES, "label", "not_entailment entailment"),
        # Chinese reviews of hotels, books and computers.
        "chnsenticorp": _task("text_a", "label", "negative positive"),
        # CLUE, Xu et al. 2020: do two questions to a bank ask the same? JSON lines in CLUE.
        "afqmc": _task(
            _SENTENCES,
            "label",
            "different same",
            (Layout((0, 1), 2, (3,)), Layout((0, 1), None, (2,))),
            folders=("afqmcpublic",),
        ),
        # Bowman et al. 2015. `gold_label` is "-" where the five annotators did not agree.
        "snli": _task(_SENTENCES, "gold_label", **_INFERENCE),
        # Hu et al. 2020: inference in Chinese, with training sets of four sizes.
        "ocnli": _task(_SENTENCES, "label", **_INFERENCE),
        # Demszky et al. 2020: text, numbers of its emotions, id of the comment.
        "goemotions": _task(
            "", None, _EMOTIONS, (Layout((0,), 1, (3,)),), problem_type="multi_label"
        ),
    }
)


def get_glue_task(name: str) -> ClassificationTask:
    """Returns the `ClassificationTask` of a name; `"SST-2"` and `"sst2"` are the same.

    Raises:
        ValueError: there is no such task. The message lists them.
    """
    return GLUE_TASKS[known_name(name) or check_choice("task", name, tuple(GLUE_TASKS))]


def known_name(name: str) -> str | None:
    """Returns the key of `GLUE_TASKS` for a name or a folder's name, `None` if there is none."""
    plain = "".join(letter for letter in str(name).casefold() if letter.isalnum())
    return next((k for k, task in GLUE_TASKS.items() if plain in (k, *task.folders)), None)
