"""Entities and their scores, against seqeval."""

import time
import warnings

import numpy as np
import pytest
import seqeval.metrics
import seqeval.scheme
from seqeval.metrics.sequence_labeling import get_entities

from bert_keras.metrics import entity_scores, extract_entities, find_odd_tags

pytestmark = pytest.mark.filterwarnings("ignore")

STRICT = {
    "IOB1": ("IOB", seqeval.scheme.IOB1),
    "IOB2": ("IOB", seqeval.scheme.IOB2),
    "IOE2": ("IOE", seqeval.scheme.IOE2),
    "IOBES": ("IOBES", seqeval.scheme.IOBES),
    "BIOES": ("IOBES", seqeval.scheme.IOBES),
    "BILOU": ("BILOU", seqeval.scheme.BILOU),
}


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


def as_bmes(tags):
    return ["M" + tag[1:] if tag[0] == "I" else tag for tag in tags]


@pytest.mark.parametrize("prefixes", ["IOB", "IOE", "IOBES", "OI"])
def test_entities_equal_seqeval_without_a_scheme(prefixes):
    rng = np.random.default_rng(0)
    for _ in range(1000):
        tags = random_tags(rng, prefixes)
        expected = [(kind, start, end + 1) for kind, start, end in get_entities(tags)]
        assert extract_entities(tags) == expected


@pytest.mark.parametrize("scheme", STRICT)
def test_entities_equal_seqeval_in_strict_mode(scheme):
    rng = np.random.default_rng(1)
    prefixes, reference = STRICT[scheme]
    for _ in range(1000):
        tags = random_tags(rng, prefixes)
        entities = seqeval.scheme.Tokens(tags, reference).entities
        expected = [(entity.tag, entity.start, entity.end) for entity in entities]
        assert extract_entities(tags, scheme) == expected


def seqeval_scores(true, predicted, **options):
    scores = {}
    for average in ("micro", "macro"):
        start = "" if average == "micro" else "macro_"
        for name in ("precision", "recall", "f1"):
            function = getattr(seqeval.metrics, f"{name}_score")
            scores[start + name] = function(true, predicted, average=average, **options)
    return scores


@pytest.mark.parametrize("scheme", [None, *STRICT])
def test_scores_equal_seqeval(scheme):
    rng = np.random.default_rng(2)
    prefixes, reference = STRICT.get(scheme, ("IOBES", None))
    options = {"mode": "strict", "scheme": reference} if scheme else {}
    for _ in range(1000):
        true = [random_tags(rng, prefixes) for _ in range(rng.integers(1, 8))]
        predicted = corrupted(rng, true, prefixes)
        scores = entity_scores(true, predicted, scheme)
        if not scores["types"]:  # No entity at all: seqeval has no macro average of none.
            assert scores["f1"] == seqeval.metrics.f1_score(true, predicted, **options) == 0
            continue
        for name, expected in seqeval_scores(true, predicted, **options).items():
            assert scores[name] == pytest.approx(expected, abs=1e-12), name
        report = seqeval.metrics.classification_report(true, predicted, output_dict=True, **options)
        assert scores["support"] == report["micro avg"]["support"]
        types = {name: row for name, row in report.items() if not name.endswith(" avg")}
        assert list(scores["types"]) == list(types)
        for name, row in types.items():
            expected = {key.removesuffix("-score"): value for key, value in row.items()}
            assert scores["types"][name] == pytest.approx(expected)


@pytest.mark.parametrize("strict", [False, True])
def test_bmes_gives_the_scores_of_the_same_tags_in_iobes(strict):
    rng = np.random.default_rng(3)
    for _ in range(1000):
        true = [random_tags(rng, "IOBES") for _ in range(3)]
        predicted = corrupted(rng, true, "IOBES")
        expected = entity_scores(true, predicted, "IOBES" if strict else None)
        bmes = [as_bmes(tags) for tags in true], [as_bmes(tags) for tags in predicted]
        assert entity_scores(*bmes, "BMES" if strict else None) == expected


@pytest.mark.parametrize(
    "scheme, tags",
    [
        ("IOB1", ["I-PER", "I-PER", "B-PER", "O", "I-LOC"]),
        ("IOB2", ["B-PER", "I-PER", "B-PER", "O", "B-LOC"]),
        ("IOE2", ["I-PER", "E-PER", "E-PER", "O", "E-LOC"]),
        ("BIOES", ["B-PER", "E-PER", "S-PER", "O", "S-LOC"]),
        ("BMES", ["B-PER", "E-PER", "S-PER", "O", "S-LOC"]),
        ("BILOU", ["B-PER", "L-PER", "U-PER", "O", "U-LOC"]),
    ],
)
def test_the_same_entities_are_read_in_each_scheme(scheme, tags):
    expected = [("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 5)]
    assert extract_entities(tags, scheme) == expected
    assert extract_entities(tags) == expected


def test_a_scheme_ignores_entities_that_the_default_mode_repairs():
    assert extract_entities(["O", "I-PER", "I-LOC"]) == [("PER", 1, 2), ("LOC", 2, 3)]
    assert extract_entities(["O", "I-PER", "I-LOC"], "IOB2") == []
    assert extract_entities(["B-PER", "I-PER", "O"], "BIOES") == []


def test_entities_do_not_cross_sentences():
    together = entity_scores([["B-PER", "I-PER"]], [["B-PER", "I-PER"]])
    apart = entity_scores([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]])
    assert (together["support"], apart["support"]) == (1, 2)


def test_no_entities_score_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = entity_scores([["O", "O"], []], [["O", "O"], []])
        missed = entity_scores([["B-PER"]], [["O"]])
    names = [f"{x}{y}" for x in ("", "macro_") for y in ("precision", "recall", "f1")]
    assert scores == {**dict.fromkeys(names, 0.0), "support": 0, "types": {}}
    assert missed["f1"] == 0.0 and missed["support"] == 1
    assert extract_entities([]) == []


def test_a_type_seen_only_in_predictions_counts_in_the_macro_average():
    scores = entity_scores([["B-PER", "O"]], [["B-PER", "B-LOC"]])
    assert scores["macro_f1"] == 0.5
    assert scores["types"]["LOC"]["support"] == 0


def test_thousands_of_sentences_are_scored_in_a_fraction_of_a_second():
    rng = np.random.default_rng(4)
    choices = np.array(["O"] * 9 + ["B-NS", "M-NS", "E-NS", "S-NR"])
    true = [choices[rng.integers(0, len(choices), 40)].tolist() for _ in range(4365)]
    predicted = [choices[rng.integers(0, len(choices), 40)].tolist() for _ in range(4365)]
    start = time.perf_counter()
    entity_scores(true, predicted)
    assert time.perf_counter() - start < 1.0  # usually 0.05 s


@pytest.mark.parametrize("tag", ["X-PER", "PER", "BPER", "", "B_PER", None, 3, "-PER"])
def test_unknown_tags_are_refused(tag):
    with pytest.raises(ValueError, match="A tag must be"):
        extract_entities(["O", tag])


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (extract_entities, (["S-PER"], "IOB2"), "IOB2"),
        (extract_entities, (["O"], "IOB3"), "scheme"),
        (entity_scores, ([["O"]], [["O"]], "IOB3"), "scheme"),
        (entity_scores, ([["O"], ["O", "O"]], [["O"], ["O"]]), "sentence 1"),
        (entity_scores, ([["O"]], []), "number of sentences"),
        (entity_scores, ([], []), "at least one sentence"),
        (entity_scores, (["O", "O"], ["O", "O"]), "list of sentences"),
    ],
)
def test_unknown_schemes_and_unequal_sentences_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize(
    ("tags", "scheme", "odd"),
    [
        (["O", "B-PER", "I-PER"], None, []),
        (["0", "B-PER", "I-PER"], None, ["0"]),
        (["O", "B-PER", "B_PER"], None, ["B_PER"]),
        (["NOUN", "X", "B-PER", "S"], None, []),
        (["NOUN", "VERB"], "IOB2", ["NOUN", "VERB"]),
        (["B", "M", "E", "S"], "BMES", []),
        (["B-PER", "O-PER", "B-", "M-PER"], "IOB2", ["O-PER", "B-", "M-PER"]),
    ],
)
def test_odd_tags_are_unlike_all_the_others(tags, scheme, odd):
    assert find_odd_tags(tags, scheme) == odd
