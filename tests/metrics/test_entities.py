"""Entities and their scores, against seqeval."""

import time
import warnings

import numpy as np
import pytest
import seqeval.metrics
import transformers
from checks import cases
from seqeval.metrics.sequence_labeling import get_entities

from bert_keras.answers.entity_tags import entity_readings
from bert_keras.metrics import entity_scores, extract_entities, find_odd_tags

pytestmark = pytest.mark.filterwarnings("ignore")


def random_tags(rng, prefixes, types=("PER", "LOC", "a-b", "PER.NAM"), length=None):
    length = rng.integers(0, 13) if length is None else length
    types = types[: rng.integers(1, len(types) + 1)]
    tags = []
    for prefix in rng.choice(list(prefixes), length):
        bare = prefix == "O" or rng.random() < 0.05
        tags.append(str(prefix) if bare else f"{prefix}-{rng.choice(types)}")
    return tags


def corrupted(rng, sentences, prefixes):
    """Returns mostly right predictions, so that scores are not all near 0."""
    result = []
    for tags in sentences:
        other = random_tags(rng, prefixes, length=len(tags))
        result.append([b if rng.random() < 0.2 else a for a, b in zip(tags, other, strict=True)])
    return result


@pytest.mark.parametrize("prefixes", ["IOB", "IOE", "IOBES", "OI"])
def test_entities_equal_seqeval(prefixes):
    rng = np.random.default_rng(0)
    for _ in range(250):
        tags = random_tags(rng, prefixes)
        expected = [(kind, start, end + 1) for kind, start, end in get_entities(tags)]
        assert extract_entities(tags) == expected


def as_scores(row, start=""):
    """Returns the scores of a row of seqeval's report under our names."""
    return {start + x: row[x if x != "f1" else "f1-score"] for x in ("precision", "recall", "f1")}


@pytest.mark.parametrize("prefixes", ["IOB", "IOE", "IOBES"])
def test_scores_equal_seqeval(prefixes):
    rng = np.random.default_rng(2)
    for _ in range(75):
        true = [random_tags(rng, prefixes) for _ in range(rng.integers(1, 8))]
        predicted = corrupted(rng, true, prefixes)
        scores = entity_scores(true, predicted)
        if not scores["types"]:  # No entity at all: seqeval has no macro average of none.
            assert scores["f1"] == seqeval.metrics.f1_score(true, predicted) == 0
            continue
        report = seqeval.metrics.classification_report(true, predicted, output_dict=True)
        rows = {f"{x} avg": report.pop(f"{x} avg") for x in ("micro", "macro", "weighted")}
        assert scores["support"] == rows["micro avg"]["support"]
        expected = as_scores(rows["micro avg"]) | as_scores(rows["macro avg"], "macro_")
        assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-12)
        assert list(scores["types"]) == list(report)
        for name, row in report.items():
            expected = {**as_scores(row), "support": row["support"]}
            assert scores["types"][name] == pytest.approx(expected)


@pytest.mark.parametrize("letters", [{"I": "M"}, {"E": "L", "S": "U"}], ids=["BMES", "BILOU"])
def test_other_letters_give_the_scores_of_the_same_tags_in_iobes(letters):
    rng = np.random.default_rng(3)
    for _ in range(150):
        true = [random_tags(rng, "IOBES") for _ in range(3)]
        iobes = true, corrupted(rng, true, "IOBES")
        others = (
            [[letters.get(tag[0], tag[0]) + tag[1:] for tag in tags] for tags in x] for x in iobes
        )
        assert entity_scores(*others) == entity_scores(*iobes)


class Grouping(transformers.TokenClassificationPipeline):
    """The pipeline's rule for groups of entities, without a model."""

    def __init__(self):
        self.tokenizer = self

    def convert_tokens_to_string(self, tokens):
        return " ".join(tokens)


def groups_of_transformers(tags):
    words = [
        {"entity": tag, "score": 1.0, "word": "", "start": place, "end": place + 1}
        for place, tag in enumerate(tags)
    ]
    found = Grouping().group_entities(words) if words else []
    return [(x["entity_group"], x["start"], x["end"]) for x in found if x["entity_group"] != "O"]


def read_as_entities(tags, names):
    readings = entity_readings(names)
    return extract_entities([readings[tag] for tag in tags])


def test_types_without_a_prefix_are_grouped_as_transformers_and_seqeval_do():
    rng, names = np.random.default_rng(5), ["O", "PER", "LOC", "product-car"]
    for _ in range(300):
        tags = rng.choice(names, rng.integers(0, 13)).tolist()
        found = read_as_entities(tags, names)
        # transformers cuts the type, too, at its first hyphen.
        cut = [(kind.split("-", 1)[-1], start, end) for kind, start, end in found]
        assert cut == groups_of_transformers(tags)
        if "product-car" not in tags:  # seqeval takes the first letter for a prefix.
            theirs = [(start, end + 1) for _, start, end in get_entities(tags)]
            assert [(start, end) for _, start, end in found] == theirs


@cases(
    (["O", "PER", "[PAD]"], "O I-PER O"),
    (["O", "B-PER", "I-PER", "0"], "O B-PER I-PER O"),
    (["O", "B_PER", "MISC"], "O I-B_PER I-MISC"),
    (["O", "B_PER", "I_PER", "E_PER", "S_PER"], "O B-PER I-PER E-PER S-PER"),
    (["NOUN", "VERB"], ""),
    (["O", "N", "V"], ""),  # Parts of speech of tweets.
    (None, ""),
)
def test_label_names_are_read_as_tags_of_entities(names, readings):
    assert " ".join(entity_readings(names).values()) == readings


def test_no_entities_score_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = entity_scores([["O", "O"], []], [["O", "O"], []])
        missed = entity_scores([["B-PER"]], [["O"]])
    names = [f"{x}{y}" for x in ("", "macro_") for y in ("precision", "recall", "f1")]
    assert scores == {**dict.fromkeys(names, 0.0), "support": 0, "types": {}}
    assert missed["f1"] == 0.0 and missed["support"] == 1
    assert extract_entities([]) == []


def test_thousands_of_sentences_are_scored_in_a_fraction_of_a_second():
    rng = np.random.default_rng(4)
    choices = np.array(["O"] * 9 + ["B-NS", "M-NS", "E-NS", "S-NR"])
    true, predicted = rng.choice(choices, (2, 4365, 40)).tolist()
    start = time.process_time()
    entity_scores(true, predicted)
    assert time.process_time() - start < 1.0  # usually 0.05 s


@cases(
    (["O", "B-PER", "I-PER"], []),
    (["0", "B-PER", "I-PER"], ["0"]),
    (["O", "B-PER", "B_PER"], ["B_PER"]),
    (["NOUN", "X", "B-PER", "S"], []),
    (["B", "M", "E", "S"], []),
    (["B-PER", "M-PER", "O-PER", "B-"], ["O-PER", "B-"]),
)
def test_odd_tags_are_those_unlike_all_others(tags, odd):
    assert find_odd_tags(tags) == odd
