"""GLUE and its neighbours: the layouts, labels and folders of each task."""

import gzip

import numpy as np
import pytest
from checks import cases, refused

from bert_keras.datasets import (
    GLUE_TASKS,
    detect_glue_task,
    get_glue_task,
    load_glue,
    read_examples,
)

STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
MNLI = "index\tpromptID\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
# A few rows in each published layout, with what readers stumble over: quotation marks that are
# never closed, a byte order mark, empty fields, no line end at the end.
FILES = {
    "cola": {"train.tsv": "gj04\t1\t\tThe rope stretched.\ngj04\t0\t*\tThe rope stretch it.",
     "dev.tsv": 'c_13\t1\t\t"Quoted.\n', "test.tsv": "index\tsentence\n0\tBill whistled.\n"},
    "sst2": {"train.tsv": "sentence\tlabel\nhide new secretions \t0\na charming journey \t1\n",
     "test.tsv": "index\tsentence\n0\tuneasy mishmash .\n"},
    "mrpc": {"dev.tsv": f'{MRPC}1\t11\t12\tThe pie.\t"The pie business\n0\t21\t22\t"a" b"\tc\n',
     "test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tone\ttwo\n",
     "msr_paraphrase_test.txt": f"{MRPC}1\t1\t2\tone\ttwo\n"},
    "stsb": {
        "dev.tsv": f"{STSB}\tscore\n0\tmain\tMSRvid\t2012\t0\t-\t-\tA man.\tA woman.\t4.750\n",
        "test.tsv": f"{STSB}\n0\tmain\tMSRvid\t2012\t0\tnone\tnone\tA girl.\tA boy.\n",
        "original/sts-test.tsv": "main\tMSRvid\t2012\t0024\t2.500\tA girl.\tA boy.\n"
        "main\tdeft\t2014\t0025\t0\tOne.\tTwo.\thttp://a\thttp://b\n",
    },
    "qqp": {
        "dev.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "1\t2\t3\tWhy?\tHow?\t0\n4\t5\tcut short\n6\t7\t8\tWho?\tWho is?\t1\n"
    },
    "mnli": {"dev_matched.tsv": f"{MNLI}0\t1\t1e\tslate\tA rose.\tA flower.\tneutral\tentailment\n",
     "dev_mismatched.tsv": "sentence1\tsentence2\tgold_label\na\tb\tneutral\n",
     "test_matched.tsv": "index\tgenre\tsentence1\tsentence2\n0\tslate\ta\tb\n",
},
    "qnli": {"dev.tsv": 'index\tquestion\tsentence\tlabel\n0\t"Who?\tHe "did.\tnot_entailment\n'},
    "rte": {"dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tnot_entailment\n"},
    "wnli": {"dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n"},
    "chnsenticorp": {"train.tsv": "label\ttext_a\n1\t酒店不错\n",
     "dev.tsv": "qid\tlabel\ttext_a\n0\t0\t<荐书> 不好\n",
     "test.tsv": "qid\ttext_a\n0\t总体一般\n"},
    "snli": {
        "snli_1.0_dev.jsonl": [
            {"gold_label": "-", "sentence1": "x", "sentence2": "y", "labels": ["a"]},
            {"gold_label": "neutral", "sentence1": "A.", "sentence2": "B.", "labels": []},
        ],
        "snli_1.0_train.txt": "gold_label\tsentence1\tsentence2\nentailment\tA man.\tA person.\n",
    },
    "ocnli": {
        "dev.json": [
            {"id": 0, "sentence1": "他来", "sentence2": "他没来", "label": label}
            for label in ("-", "contradiction")
        ],
        "test.json": [{"id": 0, "sentence1": "他来了", "sentence2": "他走了"}],
    },
    "afqmc": {"dev.json": [{"sentence1": "借呗", "sentence2": "花呗", "label": "0"}],
     "test.json": [{"id": 0, "sentence1": "借呗", "sentence2": "花呗"}]},
    "goemotions": {"dev.tsv": "Is this it??\t27\tedg\nYou know,\t4,27\tee8\n"},
}  # fmt: skip


@pytest.fixture
def make(write):
    """Returns a function that writes the files of a task and returns their folder."""

    def make_folder(task, folder=None):
        for name, content in FILES[task].items():
            path = write(f"{folder or task}/{name}", content)
        return path.parents[name.count("/")]

    return make_folder


def test_every_task_of_the_table_is_tested_here():
    assert set(FILES) == set(GLUE_TASKS)


@cases(
    ("cola", "train", "The rope stretched.", "acceptable"),
    ("cola", "dev", '"Quoted.', "acceptable"),
    ("sst2", "train", "hide new secretions ", "negative"),
    ("mrpc", "dev", ("The pie.", '"The pie business'), "equivalent"),
    ("mrpc", "test_labelled", ("one", "two"), "equivalent"),
    ("mnli", "dev", ("A rose.", "A flower."), "entailment"),
    ("mnli", "dev_mismatched", ("a", "b"), "neutral"),
    ("qnli", "dev", ('"Who?', 'He "did.'), "not_entailment"),
    ("rte", "dev", ("a", "b"), "not_entailment"),
    ("wnli", "dev", ("a", "b"), "entailment"),
    ("chnsenticorp", "train", "酒店不错", "positive"),
    ("chnsenticorp", "dev", "<荐书> 不好", "negative"),
    ("afqmc", "dev", ("借呗", "花呗"), "different"),
    ("snli", "train", ("A man.", "A person."), "entailment"),
)
def test_texts_and_labels_of_each_layout(make, task, split, first_text, label):
    examples = load_glue(task, make(task), split)
    is_pair = isinstance(first_text, tuple)
    texts = tuple(column[0] for column in examples.texts) if is_pair else examples.texts[0]
    assert texts == first_text
    assert examples.label_names[examples.labels[0]] == label
    assert examples.labels.dtype == "int32"


@pytest.mark.parametrize("task", ["cola", "sst2", "mrpc", "stsb", "mnli", "chnsenticorp", "afqmc"])
def test_unlabelled_test_sets_have_no_labels(make, task):
    examples = load_glue(task, make(task), "test")
    assert examples.labels is None and len(examples) == 1
    assert examples.label_names == GLUE_TASKS[task].label_names


@cases(
    ("snli", r"snli_1.0_dev.jsonl: .* have no label, such as '-' .*: 1 of 2 \(line 1\)", [2]),
    ("ocnli", r"dev.json: .* have no label, such as '-' .*: 1 of 2 \(line 1\)", [0]),
    ("qqp", r"dev\.tsv: rows left out .* fields: 1 of 4 \(line 3\)", [0, 1]),
)
def test_undecided_rows_and_those_cut_short_in_qqp_are_left_out_and_counted(
    make, task, message, labels
):
    with pytest.warns(UserWarning, match=message):
        examples = load_glue(task, make(task), "dev")
    assert examples.labels.tolist() == labels and len(examples) == len(labels)


def test_label_numbers_are_those_of_google_research_bert():
    names = {name: " ".join(task.label_names) for name, task in GLUE_TASKS.items()}
    emotions = names.pop("goemotions").split()
    assert len(emotions) == 28 and emotions[27] == "neutral"
    del names["snli"], names["ocnli"]
    assert names == {
        "cola": "unacceptable acceptable",
        "sst2": "negative positive",
        "mrpc": "not_equivalent equivalent",
        "stsb": "",
        "qqp": "not_duplicate duplicate",
        "mnli": "contradiction entailment neutral",
        "qnli": "entailment not_entailment",
        "rte": "entailment not_entailment",
        "wnli": "not_entailment entailment",
        "chnsenticorp": "negative positive",
        "afqmc": "different same",
    }


def test_similarity_scores_are_floats_in_files_of_seven_nine_or_ten_columns(make):
    folder = make("stsb")
    examples = load_glue("stsb", folder, "dev")
    assert examples.problem_type == "regression" and examples.labels.dtype == "float32"
    assert examples.labels.tolist() == [4.75] and examples.texts == (["A man."], ["A woman."])
    examples = load_glue("stsb", folder, "test_labelled")
    assert examples.texts == (["A girl.", "One."], ["A boy.", "Two."])
    assert examples.labels.tolist() == [2.5, 0.0]


def test_emotions_are_rows_of_zeros_and_ones(make):
    examples = load_glue("goemotions", make("goemotions"), "dev")
    assert examples.problem_type == "multi_label" and examples.labels.shape == (2, 28)
    assert [np.flatnonzero(row).tolist() for row in examples.labels] == [[27], [4, 27]]


PAIR = {"sentence1": "a", "sentence2": "b", "label": "0"}


@refused(
    ("sst2", "sentence\tlabel\na\t1\nb\t2\n", r"line 3: a label must be one of \['0', '1'\]"),
    ("sst2", "sentence\tlabel\na\tnan\n", "only test splits may lack labels. Received: 'dev'"),
    ("rte", "sentence1\tsentence2\tlabel\na\tb\tneutral\n", "line 2: .*'entailment'"),
    ("stsb", "sentence1\tsentence2\tscore\na\tb\tfar\n", "from 0.0 to 5.0. Received: 'far'"),
    ("stsb", "sentence1\tsentence2\tscore\na\tb\t5.1\n", "from 0.0 to 5.0. Received: '5.1'"),
    ("goemotions", "text\t28\tid\n", r"line 1: each label must be .*'27'\]\. Received: '28'"),
    ("sst2", "text\tclass\na\t1\n", r"no column 'sentence'\. Received: \['text', 'class'\]"),
    ("cola", "text\tclass\na\t1\n", r"no column '3'\. Received: \['0', '1'\]"),
    ("sst2", "sentence\tLabel\na\t1\n", "only test splits may lack labels. Received: 'dev'"),
    ("sst2", "sentence\tlabel\n", "must have rows after its header"),
    ("afqmc", [PAIR, {"sentence1": "a", "label": "0"}], r"line 2: .* are missing.*\['sentence2'\]"),
    ("afqmc", [PAIR, PAIR | {"sentence2": True}], "line 2: texts and labels must be str"),
    ("afqmc", [PAIR, PAIR | {"sentence2": [1]}], "line 2: texts and labels must be str"),
    prefix=r"dev\.(json|tsv).*",
)
def test_wrong_files_are_refused_by_name_and_line(write, tmp_path, task, content):
    write("dev.json" if isinstance(content, list) else "dev.tsv", content)
    load_glue(task, tmp_path, "dev")


@pytest.mark.parametrize("value", [None, True, [1]])
def test_json_fields_that_are_not_read_may_hold_anything(write, value):
    path = write("a.json", [PAIR | {"label": 1, "id": value}])
    assert read_examples(path, get_glue_task("afqmc")).labels.tolist() == [1]


def test_compressed_files_are_found(write, tmp_path):
    write("dev.tsv.gz", gzip.compress(b"sentence\tlabel\na\t1\n"))
    assert load_glue("sst2", tmp_path, "dev").texts == ["a"]


@refused(
    ("qnli", "qnli", "train", FileNotFoundError, r"train\.tsv.* holds: \['dev\.tsv'\]"),
    ("qnli", "absent", "dev", FileNotFoundError, "absent"),
    (None, "absent", "dev", FileNotFoundError, "absent"),
    ("qnli", "qnli/dev.tsv", "dev", NotADirectoryError, "dev.tsv"),
    ("imdb", ".", "dev", ValueError, r"one of \('cola', 'sst2'.*Received: 'imdb'"),
    ("sst2", ".", "valid", ValueError, r"one of \('train', 'dev', 'test'\). .* 'valid'"),
    (None, "data", "dev", ValueError, r"one of \('cola', 'sst2'.*Received: 'data'"),
    (None, "other", "dev", ValueError, "one of .*Received: 'other'. Name the `task`"),
)
def test_what_does_not_exist_is_refused(make, write, tmp_path, task, folder, split):
    make("qnli")
    make("wnli", "data")
    write("other/train.tsv", "a\tb\n1\t2\n")
    load_glue(task, tmp_path / folder, split)


@pytest.mark.parametrize("name, task", [("SST-2", "sst2"), ("STS-B", "stsb"), ("CoLA", "cola")])
def test_names_are_compared_without_case_and_punctuation(make, name, task):
    assert get_glue_task(name) is GLUE_TASKS[task]
    assert detect_glue_task(make(task, folder=name)) == task
