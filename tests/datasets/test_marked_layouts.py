"""Layouts of tagged words, questions and choices: a small file of each, and what it gives."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from bert_keras.datasets import (
    is_tagged,
    read_conll,
    read_multiple_choice,
    read_squad,
    read_texts,
    tag_layout,
)

pytestmark = pytest.mark.once

# Tagged words

FILMS = "O\twhat\nB-ACTOR\tbruce\nI-ACTOR\twillis\n\n"
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
TAGGED = [
    ("the tag first", "a.bio", FILMS, {"word_column": 1, "tag_column": 0}, "what bruce willis",
     "O B-ACTOR I-ACTOR"),
    ("with a header", "a.tsv", "token\tlabel\nEU\tB-ORG\n\nhi\tO\n", {}, "EU|hi", "B-ORG|O"),
    ("a header with numbered sentences", "a.tsv",
     "sentence_id\ttoken\tlabel\n1\tEU\tB-ORG\n1\tsays\tO\n2\thi\tO\n", {},
     "EU says|hi", "B-ORG O|O"),
    ("tags in the middle", "a", "EU\tB-ORG\t0.9\nhi\tO\t0.8\n", {"tag_column": 1}, "EU hi",
     "B-ORG O"),
    ("Kaggle's table", "a.csv", KAGGLE, {}, "Ada,  slept|Bo", "B-per O|B-per"),
    ("Kaggle's table of cells", "a.csv", CELLS, {}, "EU says", "B-org O"),
    ("lists of JSON in cells", "a.tsv", 'tokens\tner_tags\n["\\ud83d\\ude42", " "]\t["O", "O"]\n',
     {"word_column": "tokens"}, "🙂  ", "O O"),
    ("NumPy's lists in cells", "a.csv", CELLS.replace("', '", "' '"), {}, "EU says", "B-org O"),
    ("numbered sentences", "a.csv", "sentence_id,words,labels\n0,EU,B-ORG\n1,hi,O\n", {}, "EU|hi",
     "B-ORG|O"),
    ("JSON lines", "a.jsonl", NAMED, {}, "EU says", "B-ORG O"),
    ("JSON lines called text", "a.txt", NAMED, {}, "EU says", "B-ORG O"),
    ("numbers with names", "a.jsonl", NUMBERS, {"label_names": ["O", "B-ORG"]}, "EU says",
     "B-ORG O"),
    ("fields by name", "a.jsonl", [{"w": ["EU"], "t": ["O"]}],
     {"word_column": "w", "tag_column": "t"}, "EU", "O"),
    ("fields by name, in another form", "a.jsonl", [{"\uff37 ": ["EU"], "T": ["O"]}],
     {"word_column": "W", "tag_column": "t"}, "EU", "O"),
    ("GLiNER", "a.json", json.dumps([GLINER]), {}, "Ada Lovelace lives in Rome",
     "B-person I-person O O B-city"),
    ("GLiNER in lines", "a.jsonl",
     [{"Tokenized_Text": GLINER["tokenized_text"], "NER": 2 * GLINER["ner"], "label": ["city"]}],
     {}, "Ada Lovelace lives in Rome", "B-person I-person O O B-city"),
    ("fields by name beside GLiNER's", "a.jsonl", [{**GLINER, "tags": [*"ABCDE"]}],
     {"word_column": "tokenized_text", "tag_column": "tags"}, "Ada Lovelace lives in Rome",
     "A B C D E"),
    ("the exact name before others", "a.jsonl", [{**NAMED[0], "Tokens": ["c", "d"]}], {},
     "EU says", "B-ORG O"),
    ("classes beside the rows", "a.json", {"classes": ["ORG"], "data": NAMED}, {}, "EU says",
     "B-ORG O"),
    ("classes in each row", "a.jsonl",
     [{"text": "EU", "classes": ["x"], "annotations": [], "label": [[0, 2, "ORG"]]}] * 2, {},
     "EU|EU", "B-ORG|B-ORG"),
    ("neighbours of one type", "a.jsonl",
     [{"text": "EU UN", "label": [[0, 2, "ORG"], [3, 5, "ORG"]]}], {}, "EU UN", "B-ORG B-ORG"),
    ("a number of annotations", "a.jsonl", [{**NAMED[0], "annotations": 3}], {}, "EU says",
     "B-ORG O"),
    ("doccano", "a.jsonl", [TEXT, {"text": "hi", "label": []}], {}, f"{WORDS_OF_TEXT}|hi",
     f"{TAGS_OF_TEXT}|O"),
    ("doccano with relations", "a.jsonl", [{"text": "EU says", "entities": [OBJECT]}], {},
     "EU says", "B-ORG O"),
    ("Label Studio", "a.json",
     [{"text": "EU says", "label": [{"start": 0, "end": 2, "text": "EU", "labels": ["ORG"]}]}], {},
     "EU says", "B-ORG O"),
]  # fmt: skip


_TEXT = "Ada lives in Rome"


def cells(text):
    return [row.split(" ") for row in text.split("|")]


def content_of(rows):
    if isinstance(rows, list):
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return rows if isinstance(rows, str) else json.dumps(rows, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "content", "options", "words", "tags"),
    [row[1:] for row in TAGGED],
    ids=[row[0] for row in TAGGED],
)
def test_each_layout_of_tagged_words_is_read(write, name, content, options, words, tags):
    found = read_conll(write(name, content_of(content)), **options)
    assert [" ".join(row) for row in found.words] == words.split("|")
    assert found.tags == cells(tags)


def test_parquet_of_datasets_has_the_names_of_its_tags(tmp_path):
    feature = {"feature": {"names": ["O", "B-ORG"], "_type": "ClassLabel"}, "_type": "List"}
    info = {"info": {"features": {"ner_tags": feature}}}
    table = pa.Table.from_pylist(NUMBERS).replace_schema_metadata({"huggingface": json.dumps(info)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert read_conll(tmp_path / "a.parquet").tags == [["B-ORG", "O"]]


@pytest.mark.parametrize(
    ("name", "content", "layout"),
    [
        (
            "a.bio",
            "what\tO\nbruce\tB-ACTOR\n",
            "words in 'column 0', tags in 'column 1', sentences by 'blank lines'",
        ),
        ("words", "Ada\nmet\n", "words in 'column 0', no tags, sentences by 'blank lines'"),
        ("a.jsonl", NAMED, "words in 'tokens', tags in 'ner_tags'"),
        ("a.jsonl", [TEXT], "texts in 'text', spans in 'label'"),
        ("a.csv", KAGGLE, "words in 'Word', tags in 'Tag', sentences by 'Sentence #'"),
    ],
)
def test_the_columns_that_were_found_are_told(write, name, content, layout):
    assert str(tag_layout(write(name, content_of(content)))) == layout


def test_words_with_tags_are_told_from_other_text(write):
    for name, content in (
        ("a", "what\tO\nbruce\tB-ACTOR\n"),
        ("a.jsonl", NAMED),
        ("a.conllu", ""),
    ):
        assert is_tagged(write(name, content_of(content)))
    for name, content in (("a", "the man\na ship\n"), ("a", ""), ("a.csv", "text,x\na,b\n")):
        assert not is_tagged(write(name, content))


def test_rows_without_a_sentences_number_continue_it(write):
    rows = [{"sentence_id": 1, "word": "New", "tag": "B"}, {"word": "York", "tag": "I"}]
    rows.append({"sentence_id": 2, "word": "is", "tag": "O"})
    assert read_conll(write("a.jsonl", rows)).words == [["New", "York"], ["is"]]


PARTS_OF_SPEECH = "".join(f"{'NOUN' if n % 2 else 'VERB'}\tword{n}\n" for n in range(30))
TAGS_LIKE_WORDS = "".join(f"word{n} tag{n}\n" for n in range(30))
NO_TAGS = [{"tokens": ["a", "b"], "ner_tags": ["O"]}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
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
    ],
)
def test_tagged_words_in_doubt_are_refused_by_place_with_a_remedy(write, name, content, message):
    with pytest.raises(ValueError, match=rf"{name}.*{message}"):
        read_conll(write(name, content_of(content)))


def test_borders_of_entities_inside_a_word_are_counted(write):
    shifted = {**TEXT, "label": [[0, 2, "ORG"], [14, 20, "LOC"]]}
    with pytest.warns(UserWarning, match=r"entities begin or end inside a word: 1 of 1 \(line 1\)"):
        found = read_conll(write("a.jsonl", content_of([shifted])))
    assert found.words == [["EU", "rejects", "(", "in", "Londo", "n", ")", "."]]


# Questions

CONTEXT = "Le café de la région 🙂 est à Orléans."
START = CONTEXT.index("Orléans")


def question(start=START, context=CONTEXT, **changes):
    answers = [{"text": "Orléans", "answer_start": start}]
    return {
        "context": context,
        "qas": [{"id": 1, "question": "Où?", "answers": answers, **changes}],
    }


def row(start=START, **changes):
    answers = {"text": ["Orléans"], "answer_start": [start]}
    return {"id": "1", "context": CONTEXT, "question": "Où?", "answers": answers, **changes}


TABLE = f"question,context,answer,answer_start\nOù?,{CONTEXT},Orléans,{START}\n"
NONE = {"text": [], "answer_start": []}
BLANK = [{"text": "", "answer_start": -1}]
QUESTIONS = [
    ("SQuAD, ids as numbers", "a.json", {"data": [{"paragraphs": [question()]}]}, [(START, False)]),
    ("a list of contexts", "a.json", json.dumps([question()]), [(START, False)]),
    ("contexts in lines", "a.jsonl", [question()], [(START, False)]),
    ("rows of `datasets`", "a.jsonl", [row(), row(id=2, answers=NONE)],
     [(START, False), (None, True)]),
    ("a list of rows", "a.json", json.dumps([row()]), [(START, False)]),
    ("rows under a key", "a.json", {"data": [row()]}, [(START, False)]),
    ("rows without ids and answers", "a.jsonl", [{"context": "c", "question": "?"}],
     [(None, False)]),
    ("CSV", "a.csv", TABLE, [(START, False)]),
    ("CSV, names in another form", "a.csv", TABLE.replace("question,co", "Question ,\uff23o"),
     [(START, False)]),
    ("fields beside the exact ones", "a.jsonl",
     [row(Answers=["x"], Answer="x")], [(START, False)]),
    ("CSV, no answer", "a.csv", f"{TABLE}Qui?,{CONTEXT},,\n", [(START, False), (None, True)]),
    (
        "CSV, a column of False and True",
        "a.csv",
        "question,context,answer,answer_start,is_impossible\n"
        f"Où?,{CONTEXT},Orléans,{START},False\nQui?,{CONTEXT},,,TRUE\nQuoi?,{CONTEXT},,,0\n",
        [(START, False), (None, True), (None, False)],
    ),
    ("floats of pandas", "a.jsonl", [question(float(START))], [(START, False)]),
    ("a blank answer", "a.jsonl", [question(answers=BLANK, is_impossible=True)], [(None, True)]),
    ("MRQA", "a.jsonl",
     [{"header": {"dataset": "x"}}, {"context": CONTEXT, "qas": [{"qid": "a", "question": "Où?",
      "answers": ["orléans"],
      "detected_answers": [{"text": "Orléans", "char_spans": [[START, START + 6]]}]}]}],
     [(START, False)]),
    ("null for answers", "a.jsonl", [question(answers=None)], [(None, False)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "expected"), [r[1:] for r in QUESTIONS], ids=[r[0] for r in QUESTIONS]
)
def test_each_layout_of_questions_is_read(write, name, content, expected):
    examples, mismatches = read_squad(write(name, content_of(content)))
    starts = [e.spans[0].start if e.spans else None for e in examples]
    assert list(zip(starts, (e.is_impossible for e in examples), strict=True)) == expected
    assert mismatches == [] and all(isinstance(e.id, str) for e in examples)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (row(answers={"text": ["a"], "answer_start": [1, 2]}), "as many 'text' as 'answer_start'"),
        (row(answers="Orléans"), "'answers' must be of type list. Received: 'Orléans'"),
        (question(is_impossible="no"), "'is_impossible' must be true or false. Received: 'no'"),
        (question(id=1.5), "'id' must be of type str"),
        (row(context=" "), "context must not be blank"),
        (
            {"Context": "c", "question": "?", "answer": "c"},
            r"an answer must have an 'answer_start'.*Received: \['id', 'context', 'question'",
        ),
    ],
)
def test_wrong_rows_of_questions_are_refused_by_line(write, content, message):
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 1.*{message}"):
        read_squad(write("a.jsonl", content_of([content])))


# Choices


def of_letters(letters):
    return [{"text": f"t{letter}", "label": letter} for letter in letters]


ARC = [
    {"question": {"stem": "Q?", "choices": of_letters("1234")}, "answerKey": "4"},
    {"question": {"stem": "Q?", "choices": of_letters("ABC")}, "answerKey": "B"},
]
OF_DATASETS = {"choices": {"text": ["tA", "tB"], "label": ["A", "B"]}, "answerKey": "B"}
COPA = {"premise": "P.", "choice1": "a", "choice2": "b", "question": "effect", "label": 1}
CHOICES = [
    ("ARC", "a.jsonl", ARC, [("Q?", "t1|t2|t3|t4", 3), ("Q?", "tA|tB|tC", 1)]),
    ("ARC of `datasets`", "a.jsonl", [{"question": "Q?", **OF_DATASETS}], [("Q?", "tA|tB", 1)]),
    (
        "labels and keys that are numbers",
        "a.jsonl",
        [
            {"question": "Q?", "choices": {"text": ["a", "b"], "label": keys}, "answerKey": 1}
            for keys in ([1, 2], ["1", "2"], ["A", "B"])
        ],
        [("Q?", "a|b", 0), ("Q?", "a|b", 0), ("Q?", "a|b", 1)],
    ),
    ("OpenBookQA", "a.jsonl", [{"question_stem": "Q", **OF_DATASETS}], [("Q", "tA|tB", 1)]),
    ("RACE of `datasets`", "a.jsonl",
     [{"article": "T.", "question": "Why?", "options": ["a", "b"], "answer": "B"}],
     [("T.", "Why? a|Why? b", 1)]),
    ("HellaSwag", "a.jsonl", [{"ctx": "C", "endings": ["a", "b"], "label": "1"}],
     [("C", "a|b", 1)]),
    ("PIQA", "a.jsonl", [{"goal": "G", "sol1": "a", "sol2": "b", "label": 0}], [("G", "a|b", 0)]),
    ("COPA", "a.jsonl", [COPA], [("P. What is the effect?", "a|b", 1)]),
    ("COPA's test set", "a.jsonl", [{**COPA, "label": -1}],
     [("P. What is the effect?", "a|b", None)]),
    ("MMLU", "a.jsonl", [{"question": "Q", "choices": ["a", "b"], "answer": 1}], [("Q", "a|b", 1)]),
    ("your own", "a.jsonl", [{"context": "C", "choices": ["a", "b"], "label": 1}],
     [("C", "a|b", 1)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "expected"), [r[1:] for r in CHOICES], ids=[r[0] for r in CHOICES]
)
def test_each_layout_of_choices_is_read(write, name, content, expected):
    found = read_multiple_choice(write(name, content_of(content)))
    labels = [None] * len(found) if found.labels is None else found.labels.tolist()
    rows = zip(found.contexts, found.choices, labels, strict=True)
    assert [(context, "|".join(options), label) for context, options, label in rows] == expected


_PAIR = [_TEXT, {"entities": [[0, 3, "PER"], [13, 17, "LOC"]]}]


_SPANS = [{"start": 0, "end": 3, "label": "PER"}, {"start": 13, "end": 17, "label": "LOC"}]
_OF_PRODIGY = [
    {"text": _TEXT, "spans": _SPANS, "answer": "accept"},
    {"text": "Monday", "spans": [], "answer": "reject"},
    {"text": "Bo", "spans": [], "answer": "ignore"},
]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", json.dumps([_PAIR])), ("a.jsonl", json.dumps(_PAIR)), ("a.jsonl", _OF_PRODIGY)],
)
def test_annotation_tools_are_read_without_what_was_rejected(write, name, content):
    found = read_conll(write(name, content))
    assert found.words == [_TEXT.split()] and found.tags == [["B-PER", "O", "O", "B-LOC"]]


def test_texts_that_annotators_rejected_are_left_out(write):
    rows = [{**row, "label": "person"} for row in _OF_PRODIGY]
    path = write("a.jsonl", content_of([*rows, {**rows[0], "text": "Rain", "label": "none"}]))
    with pytest.warns(UserWarning, match=r"rejected or ignored them: 2 of 4 \(lines 2, 3\)"):
        assert read_texts(path, ["text"], "label").texts == [_TEXT, "Rain"]
    # Who names that column wants its values.
    for column in ("answer", "Answer", "-2"):
        assert len(read_texts(path, ["text"], column, may_lack_labels=True).texts) == 4


def test_label_studio_s_full_json_is_refused(write):
    task = {"id": 1, "data": {"text": _TEXT}, "annotations": [{"result": []}]}
    with pytest.raises(ValueError, match="In Label Studio, export JSON-MIN"):
        read_conll(write("a.json", json.dumps([task])))
