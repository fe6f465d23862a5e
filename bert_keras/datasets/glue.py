"""GLUE and similar Chinese and multi-label sets: one table of tasks and their files.

The label order is that of the processors in google-research/bert (`run_classifier.py`), which most
published checkpoints follow: MNLI is contradiction, entailment, neutral. The `datasets` hub has
entailment, neutral, contradiction; compare label names, not numbers, across libraries.

Reference: Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
Understanding", ICLR 2019, https://arxiv.org/abs/1804.07461
"""

import os
import types

from bert_keras.checks import check_choice, check_exists
from bert_keras.datasets import classification
from bert_keras.datasets.classification import ClassificationTask, Layout
from bert_keras.datasets.files import check_at
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.types import Path


def _task(texts, label, names, layouts=(), files=None, more="", **options):
    """Returns a task.

    Args:
        texts: str, the columns of the texts, separated by commas; empty without a header.
        label: str, the label's column.
        names: str, the names of the classes, in the order of their numbers.
        layouts: tuple of `Layout`, further ones.
        files: dict of str, a split's file names, separated by blanks, besides `SPLIT.tsv`.
        more: str, likewise, the file names of every split that `files` lacks.
        **options: see `ClassificationTask`.
    """
    files = dict.fromkeys(("train", "dev", "test"), more) | (files or {})
    return ClassificationTask(
        (*(Layout(tuple(x.split(",")), label) for x in [texts] if x), *layouts),
        tuple(names.split()),
        files={x: (f"{x}.tsv", *more.format(split=x).split()) for x, more in files.items()},
        **options,
    )


_SENTENCES = "sentence1,sentence2"
_ENTAILMENT = {"names": "entailment not_entailment", "are_named": True}
_INFERENCE = {"names": "contradiction entailment neutral", "are_named": True}
# Demszky et al. 2020, in the order of the authors' emotions.txt.
_EMOTIONS = """
admiration amusement anger annoyance approval caring confusion curiosity desire disappointment
disapproval disgust embarrassment excitement fear gratitude grief joy love nervousness optimism
pride realization relief remorse sadness surprise neutral
"""

GLUE_TASKS = types.MappingProxyType(
    {
        # Warstadt et al. 2019: grammatical or not. Source, label, author's mark, sentence.
        "cola": _task("sentence", None, "unacceptable acceptable", (Layout((3,), 1),)),
        # Socher et al. 2013: sentiment of phrases (train) and sentences of film reviews.
        "sst2": _task("sentence", "label", "negative positive"),
        # Dolan and Brockett 2005: do two sentences from the news mean the same?
        "mrpc": _task(
            "#1 String,#2 String",
            "Quality",
            "not_equivalent equivalent",
            files={
                "train": "msr_paraphrase_train.txt",
                "test_labelled": "msr_paraphrase_test.txt",
            },
        ),
        # Cer et al. 2017: similarity from 0 to 5. The original files have no header, and in some
        # rows two more columns, the sources.
        "stsb": _task(
            _SENTENCES,
            "score",
            "",
            (Layout((5, 6), 4),),
            files={
                "train": "sts-train.tsv sts-train.csv",
                "dev": "sts-dev.tsv sts-dev.csv",
                "test_labelled": "original/sts-test.tsv sts-test.tsv sts-test.csv",
            },
            problem_type="regression",
            score_range=(0.0, 5.0),
        ),
        # Quora question pairs. GLUE's train and dev files hold a few rows cut short.
        "qqp": _task(
            "question1,question2", "is_duplicate", "not_duplicate duplicate", skips_broken_rows=True
        ),
        # Williams et al. 2018.
        "mnli": _task(
            _SENTENCES,
            "gold_label",
            **_INFERENCE,
            files={
                "dev": "dev_matched.tsv",
                "dev_mismatched": "",
                "test": "test_matched.tsv",
                "test_mismatched": "",
            },
        ),
        # SQuAD as sentence pairs: does the sentence answer the question?
        "qnli": _task("question,sentence", "label", **_ENTAILMENT),
        # Dagan et al. 2005 and after.
        "rte": _task(_SENTENCES, "label", **_ENTAILMENT),
        # Levesque et al. 2011: does a sentence with its pronoun replaced still follow?
        "wnli": _task(_SENTENCES, "label", "not_entailment entailment"),
        # Chinese reviews of hotels, books and computers.
        "chnsenticorp": _task("text_a", "label", "negative positive"),
        # CLUE, Xu et al. 2020: do two questions to a bank ask the same?
        "afqmc": _task(_SENTENCES, "label", "different same", more="{split}.json"),
        # Bowman et al. 2015. `gold_label` is "-" where the five annotators did not agree.
        "snli": _task(
            _SENTENCES,
            "gold_label",
            **_INFERENCE,
            more="snli_1.0_{split}.jsonl snli_1.0_{split}.txt",
        ),
        # Hu et al. 2020: inference in Chinese, with training sets of four sizes.
        "ocnli": _task(
            _SENTENCES,
            "label",
            **_INFERENCE,
            more="{split}.json {split}.50k.json ocnli_{split}.json {split}.jsonl",
        ),
        # Demszky et al. 2020: text, numbers of its emotions, id of the comment.
        "goemotions": _task("", None, _EMOTIONS, (Layout((0,), 1),), problem_type="multi_label"),
    }
)


def load_glue(task: str | None, data_dir: Path, split: str) -> LabelledTexts:
    """Reads one split of a task in `GLUE_TASKS` from its original files.

    Args:
        task: str, a key of `GLUE_TASKS` (`"cola"`, `"sst2"`, ...); punctuation and case are
            ignored. `None` finds it with `detect_glue_task`.
        data_dir: folder with the files as they were published.
        split: `"train"`, `"dev"`, `"test"` (without labels in GLUE), for MNLI also
            `"dev_mismatched"` and `"test_mismatched"`, for MRPC and STS-B also `"test_labelled"`.

    Returns:
        `LabelledTexts`. `labels` is `None` if a test file has none.

    Raises:
        ValueError: there is no such task or split, the file is not in the task's format, or it
            lacks labels and is not a test split.
        FileNotFoundError: the folder holds none of the split's files.
        NotADirectoryError: `data_dir` is a file.

    Example:
        ```python
        examples = load_glue("mrpc", "glue_data/MRPC", "dev")
        examples.texts[0][0], examples.texts[1][0], examples.label_names[examples.labels[0]]
        ```
    """
    task = get_glue_task(detect_glue_task(data_dir) if task is None else task)
    check_choice("split", split, task.files)
    names = [f"{name}{suffix}" for name in task.files[split] for suffix in ("", ".gz")]
    paths = [os.path.join(data_dir, *name.split("/")) for name in names]
    path = next(filter(os.path.isfile, paths), paths[0])
    rule = f"The split {split!r} must be in {' or '.join(task.files[split])}"
    check_exists(path, rule, f"{data_dir} holds: {sorted(os.listdir(data_dir))[:20]}.")
    examples = classification.read_examples(path, task)
    fits = examples.labels is not None or split in ("test", "test_mismatched")
    check_at(path, fits, "only test splits may lack labels", split, "Read it as the split 'test'.")
    return examples


def get_glue_task(name: str) -> ClassificationTask:
    """Returns the `ClassificationTask` of a name; `"SST-2"` and `"sst2"` are the same.

    Raises:
        ValueError: there is no such task. The message lists them.
    """
    return GLUE_TASKS[_known_name(name)]


def detect_glue_task(data_dir: Path) -> str:
    """Returns the name of the task in a folder, from the folder's name.

    Raises:
        FileNotFoundError: there is no such folder.
        NotADirectoryError: it is a file.
        ValueError: no task has that name.
    """
    os.listdir(data_dir)  # Raises unless it is a folder.
    return _known_name(os.path.basename(os.path.abspath(data_dir)))


def _known_name(name):
    plain = "".join(letter for letter in str(name).casefold() if letter.isalnum())
    advice = "Name the `task` (--dataset); `read_texts` reads files of other sets."
    return plain if plain in GLUE_TASKS else check_choice("task", name, tuple(GLUE_TASKS), advice)
