"""Layouts of tagged words: a small file of each, and what it gives."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest
from checks import cases, refused

from bert_keras.datasets import is_tagged, read_conll, read_texts, tag_layout

pytestmark = pytest.mark.once

FILMS = "O\twhat\nB-ACTOR\tbruce\nI-ACTOR\twillis\n\n"
WORDS = "what\tO\nbruce\tB-ACTOR\n"
KAGGLE = (
    'Sentence #,Word,POS,Tag\nSentence: 1,"Ada, ",NNP,B-per\n,slept,VBD,O\n'
    "Sentence: 2,Bo,NNP,B-per\n"
)
CELLS = "Sentence #,Sentence,POS,Tag\nSentence: 1,EU says,\"['NNP', 'VBZ']\",\"['B-org', 'O']\"\n"
TEXT = {"id": 7, "text": "EU rejects (in London).", "label": [[0, 2, "ORG"], [15, 21, "LOC"]]}
WORDS_OF_TEXT = "EU rejects ( in London ) ."
TAGS_OF_TEXT = "B-ORG O O O B-LOC O O"
OBJECT = {"start_offset": 0, "end_offset": 2, "label": "ORG"}
NUMBERS = [{"tokens": ["EU", "says"], "ner_tags": [1, 0]}]
NAMED = [{"tokens": ["EU", "says"], "ner_tags": ["B-ORG", "O"]}]

GLINER = {
    "tokenized_text": ["Ada", "Lovelace", "lives", "in", "Rome"],
    "ner": [[0, 1, "person"], [4, 4, "city"]],
}
ADA, TAGS_OF_ADA = "Ada lives in Rome", "B-PER O O B-LOC"
PAIR = [ADA, {"entities": [[0, 3, "PER"], [13, 17, "LOC"]]}]
SPANS = [{"start": 0, "end": 3, "label": "PER"}, {"start": 13, "end": 17, "label": "LOC"}]
OF_PRODIGY = [
    {"text": ADA, "spans": SPANS, "answer": "accept"},
    {"text": "Monday", "spans": [], "answer": "reject"},
    {"text": "Bo", "spans": [], "answer": "ignore"},
]


def says(name, content, **options):
    """A file with the words "EU says" and their tags."""
    return name, content, options, "EU says", "B-ORG O"


TAGGED = {
    "the tag first": ("a.bio", FILMS, {"word_column": 1, "tag_column": 0}, "what bruce willis",
     "O B-ACTOR I-ACTOR"),
    "with a header": ("a.tsv", "token\tlabel\nEU\tB-ORG\n\nhi\tO\n", {}, "EU|hi", "B-ORG|O"),
    "a header with numbered sentences": ("a.tsv",
     "sentence_id\ttoken\tlabel\n1\tEU\tB-ORG\n1\tsays\tO\n2\thi\tO\n", {},
     "EU says|hi", "B-ORG O|O"),
    "tags in the middle": ("a", "EU\tB-ORG\t0.9\nhi\tO\t0.8\n", {"tag_column": 1}, "EU hi",
     "B-ORG O"),
    "Kaggle's table": ("a.csv", KAGGLE, {}, "Ada,  slept|Bo", "B-per O|B-per"),
    "Kaggle's table of cells": ("a.csv", CELLS, {}, "EU says", "B-org O"),
    "lists of JSON in cells": ("a.tsv", 'tokens\tner_tags\n["\\ud83d\\ude42", " "]\t["O", "O"]\n',
     {"word_column": "tokens"}, "🙂  ", "O O"),
    "NumPy's lists in cells": ("a.csv", CELLS.replace("', '", "' '"), {}, "EU says", "B-org O"),
    "numbered sentences": ("a.csv", "sentence_id,words,labels\n0,EU,B-ORG\n1,hi,O\n", {}, "EU|hi",
     "B-ORG|O"),
    "JSON lines": says("a.jsonl", NAMED),
    "JSON lines called text": says("a.txt", NAMED),
    "numbers with names": says("a.jsonl", NUMBERS, label_names=["O", "B-ORG"]),
    "fields by name": ("a.jsonl", [{"w": ["EU"], "t": ["O"]}],
     {"word_column": "w", "tag_column": "t"}, "EU", "O"),
    "fields by name, in another form": ("a.jsonl", [{"\uff37 ": ["EU"], "T": ["O"]}],
     {"word_column": "W", "tag_column": "t"}, "EU", "O"),
    "GLiNER": ("a.json", json.dumps([GLINER]), {}, "Ada Lovelace lives in Rome",
     "B-person I-person O O B-city"),
    "GLiNER in lines": ("a.jsonl",
     [{"Tokenized_Text": GLINER["tokenized_text"], "NER": 2 * GLINER["ner"], "label": ["city"]}],
     {}, "Ada Lovelace lives in Rome", "B-person I-person O O B-city"),
    "fields by name beside GLiNER's": ("a.jsonl", [{**GLINER, "tags": [*"ABCDE"]}],
     {"word_column": "tokenized_text", "tag_column": "tags"}, "Ada Lovelace lives in Rome",
     "A B C D E"),
    "the exact name before others": says("a.jsonl", [{**NAMED[0], "Tokens": ["c", "d"]}]),
    "classes beside the rows": says("a.json", {"classes": ["ORG"], "data": NAMED}),
    "classes in each row": ("a.jsonl",
     [{"text": "EU", "classes": ["x"], "annotations": [], "label": [[0, 2, "ORG"]]}] * 2, {},
     "EU|EU", "B-ORG|B-ORG"),
    "neighbours of one type": ("a.jsonl",
     [{"text": "EU UN", "label": [[0, 2, "ORG"], [3, 5, "ORG"]]}], {}, "EU UN", "B-ORG B-ORG"),
    "a number of annotations": says("a.jsonl", [{**NAMED[0], "annotations": 3}]),
    "doccano": ("a.jsonl", [TEXT, {"text": "hi", "label": []}], {}, f"{WORDS_OF_TEXT}|hi",
     f"{TAGS_OF_TEXT}|O"),
    "doccano with relations": says("a.jsonl", [{"text": "EU says", "entities": [OBJECT]}]),
    "Label Studio": says("a.json",
     [{"text": "EU says", "label": [{"start": 0, "end": 2, "text": "EU", "labels": ["ORG"]}]}]),
    "pairs of a text and its entities": ("a.json", json.dumps([PAIR]), {}, ADA, TAGS_OF_ADA),
    "pairs in lines": ("a.jsonl", json.dumps(PAIR), {}, ADA, TAGS_OF_ADA),
    "Prodigy, without what was rejected": ("a.jsonl", OF_PRODIGY, {}, ADA, TAGS_OF_ADA),
}  # fmt: skip


@pytest.mark.parametrize("layout", TAGGED)
def test_each_layout_of_tagged_words_is_read(write, layout):
    name, content, options, words, tags = TAGGED[layout]
    found = read_conll(write(name, content), **options)
    assert [" ".join(row) for row in found.words] == words.split("|")
    assert found.tags == [row.split() for row in tags.split("|")]


def test_parquet_of_datasets_has_the_names_of_its_tags(tmp_path):
    feature = {"feature": {"names": ["O", "B-ORG"], "_type": "ClassLabel"}, "_type": "List"}
    info = {"info": {"features": {"ner_tags": feature}}}
    table = pa.Table.from_pylist(NUMBERS).replace_schema_metadata({"huggingface": json.dumps(info)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert read_conll(tmp_path / "a.parquet").tags == [["B-ORG", "O"]]


@cases(
    ("a", WORDS, "words in 'column 0', tags in 'column 1', sentences by 'blank lines'"),
    ("words", "Ada\nmet\n", "words in 'column 0', no tags, sentences by 'blank lines'"),
    ("a.jsonl", NAMED, "words in 'tokens', tags in 'ner_tags'"),
    ("a.jsonl", [TEXT], "texts in 'text', spans in 'label'"),
    ("a.csv", KAGGLE, "words in 'Word', tags in 'Tag', sentences by 'Sentence #'"),
)
def test_the_columns_that_were_found_are_told(write, name, content, layout):
    assert str(tag_layout(write(name, content))) == layout


def test_words_with_tags_are_told_from_other_text(write):
    for name, content in (("a", WORDS), ("a.jsonl", NAMED), ("a.conllu", "")):
        assert is_tagged(write(name, content))
    for name, content in (("a", "the man\na ship\n"), ("a", ""), ("a.csv", "text,x\na,b\n")):
        assert not is_tagged(write(name, content))


def test_rows_without_a_sentences_number_continue_it(write):
    rows = [{"sentence_id": 1, "word": "New", "tag": "B"}, {"word": "York", "tag": "I"}]
    rows.append({"sentence_id": 2, "word": "is", "tag": "O"})
    assert read_conll(write("a.jsonl", rows)).words == [["New", "York"], ["is"]]


PARTS_OF_SPEECH = "".join(f"{'NOUN' if n % 2 else 'VERB'}\tword{n}\n" for n in range(30))
TAGS_LIKE_WORDS = "".join(f"word{n} tag{n}\n" for n in range(30))
LABEL_STUDIO = json.dumps([{"id": 1, "data": {"text": ADA}, "annotations": [{"result": []}]}])
NO_TAGS = [{"tokens": ["a", "b"], "ner_tags": ["O"]}]


@refused(
    ("a.tsv", "#FORMAT=WebAnno TSV 3.3\n\n1-1\t0-2\tEU\tORG\n", "must hold words.*word_column"),
    ("a", PARTS_OF_SPEECH, "must hold words, which vary.*word_column and tag_column"),
    ("a", FILMS, r"the columns \[0\] hold tags.*word_column and tag_column"),
    ("a", "O\tin\nO\told\nLOC\tRome\n", r"the columns \[0\] hold tags"),
    ("a", "EU\tB-ORG\t0.9\nhi\tO\t0.8\n", r"the columns \[1\] hold tags"),
    ("a", "O\tB-PER\nO\tO\n", r"the columns \[0, 1\] hold tags.*word_column and tag_column"),
    ("a.csv", "text,note\nEU,O\n", r"line 2: .*Received: \['text', 'note'\].*by word_column"),
    (
        "a.jsonl",
        NUMBERS,
        "line 1: tags that are numbers need names.*Received: 1.*--label_names O,B-PER",
    ),
    ("a.jsonl", NO_TAGS, "line 1: each word needs one tag.*'a', 'b'.*'O'"),
    ("a.jsonl", [{"tokens": ["a"]}], "line 1: there are no tags"),
    ("a.jsonl", [{"text": "EU", "label": [[0, 9, "X"]]}], "line 1: .* 0 to 9 of a text of 2"),
    ("a.jsonl", [{"text": "a|b", "label": [[0, 3, "X"], [2, 3, "Y"]]}], "must not overlap"),
    ("a.jsonl", [{"text": "EU", "label": [["EU", "X"]]}], "a span must be a start, an end"),
    ("a.jsonl", [{**GLINER, "ner": [[0, 1, "a"], [1, 1, "b"]]}], "line 1: .*not overlap"),
    ("a.jsonl", [{**GLINER, "ner": [[0, 5, "a"]]}], "line 1: .*first and last word"),
    ("a.jsonl", [{**GLINER, "ner": None}], "line 1: an entity must be a list .* None"),
    ("a.jsonl", [{**GLINER, "ner": ["O", "B-X"]}], "line 1: .*by word_column and tag_column"),
    ("a.jsonl", [{"text": "EU", "label": {"X": {"EU": [[0, 1]]}}}], "a span must be a start"),
    ("a.csv", CELLS.splitlines()[0] + "\n", r"must hold rows\. Received: none"),
    ("a.csv", CELLS.replace("POS", "Tag"), "more than one column 'Tag'"),
    ("a.csv", CELLS.replace("', '", "' ... '"), "line 2: each word needs one tag"),
    ("a.ann", "T1\tPER 0 3\tAda\n", "brat's own format is not read.*anntoconll"),
    ("a", TAGS_LIKE_WORDS, "must be a column of tags.*tag0"),
    ("a.json", LABEL_STUDIO, "In Label Studio, export JSON-MIN"),
    prefix=r"{name}.*",
)
def test_tagged_words_in_doubt_are_refused_by_place_with_a_remedy(write, name, content):
    read_conll(write(name, content))


def test_borders_of_entities_inside_a_word_are_counted(write):
    shifted = {**TEXT, "label": [[0, 2, "ORG"], [14, 20, "LOC"]]}
    with pytest.warns(UserWarning, match=r"entities begin or end inside a word: 1 of 1 \(line 1\)"):
        found = read_conll(write("a.jsonl", [shifted]))
    assert found.words == [["EU", "rejects", "(", "in", "Londo", "n", ")", "."]]


def test_texts_that_annotators_rejected_are_left_out(write):
    rows = [{**row, "label": "person"} for row in OF_PRODIGY]
    path = write("a.jsonl", [*rows, {**rows[0], "text": "Rain", "label": "none"}])
    with pytest.warns(UserWarning, match=r"rejected or ignored them: 2 of 4 \(lines 2, 3\)"):
        assert read_texts(path, ["text"], "label").texts == [ADA, "Rain"]
    # Who names that column wants its values.
    for column in ("answer", "Answer", "-2"):
        assert len(read_texts(path, ["text"], column, may_lack_labels=True).texts) == 4
