import gzip
import json

import numpy as np
import pytest

from bert_keras.datasets import (
    GLUE_TASKS,
    detect_glue_task,
    get_glue_task,
    load_glue,
    read_examples,
)

# A few rows in each published layout, with the parts that trip readers: quotation marks that are
# never closed, a byte order mark, empty fields, no final line end.
FILES = {
    "cola": {
        "train.tsv": "gj04\t1\t\tThe rope stretched.\ngj04\t0\t*\tThe rope stretch it.",
        "dev.tsv": 'c_13\t1\t\t"Quoted.\n',
        "test.tsv": "index\tsentence\n0\tBill whistled.\n",
    },
    "sst2": {
        "train.tsv": "sentence\tlabel\nhide new secretions \t0\na charming journey \t1\n",
        "test.tsv": "index\tsentence\n0\tuneasy mishmash .\n",
    },
    "mrpc": {
        "dev.tsv": (
            "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
            '1\t11\t12\tThe pie business.\t"The pie business\n0\t21\t22\t"a" b"\tc\n'
        ),
        "test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tone\ttwo\n",
        "msr_paraphrase_test.txt": (
            "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tone\ttwo\n"
        ),
    },
    "stsb": {
        "dev.tsv": (
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\t"
            "score\n0\tmain\tMSRvid\t2012\t0\tnone\tnone\tA man.\tA woman.\t4.750\n"
        ),
        "test.tsv": (
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\n"
            "0\tmain\tMSRvid\t2012\t0\tnone\tnone\tA girl.\tA boy.\n"
        ),
        "original/sts-test.tsv": (
            "main\tMSRvid\t2012\t0024\t2.500\tA girl.\tA boy.\n"
            "main\tdeft\t2014\t0025\t0\tOne.\tTwo.\thttp://a\thttp://b\n"
        ),
    },
    "qqp": {
        "dev.tsv": (
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
            "1\t2\t3\tWhy?\tHow?\t0\n4\t5\tcut short\n6\t7\t8\tWho?\tWho is?\t1\n"
        ),
    },
    "mnli": {
        "dev_matched.tsv": (
            "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
            "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n"
            "0\t1\t1e\tslate\t( a )\t( b )\t(a)\t(b)\tA rose.\tA flower.\tneutral\tentailment\n"
        ),
        "dev_mismatched.tsv": "sentence1\tsentence2\tgold_label\na\tb\tneutral\n",
        "test_matched.tsv": "index\tgenre\tsentence1\tsentence2\n0\tslate\ta\tb\n",
        "train.csv": 'premise,hypothesis,label\n"Yes, ""he"" did","No\nway",contradiction\n',
    },
    "qnli": {"dev.tsv": 'index\tquestion\tsentence\tlabel\n0\t"Who?\tHe "did.\tnot_entailment\n'},
    "rte": {"dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tnot_entailment\n"},
    "wnli": {"dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n"},
    "chnsenticorp": {
        "train.tsv": "label\ttext_a\n1\t酒店不错\n",
        "dev.tsv": "qid\tlabel\ttext_a\n0\t0\t<荐书> 不好\n",
        "test.tsv": "qid\ttext_a\n0\t总体一般\n",
    },
    "snli": {
        "snli_1.0_dev.jsonl": (
            '{"gold_label": "-", "sentence1": "x", "sentence2": "y", "labels": ["a"]}\n'
            '{"gold_label": "neutral", "sentence1": "A.", "sentence2": "B.", "labels": []}\n'
        ),
        "snli_1.0_train.txt": "gold_label\tsentence1\tsentence2\nentailment\tA man.\tA person.\n",
    },
    "ocnli": {
        "dev.json": '{"id": 0, "sentence1": "他来", "sentence2": "他没来", "label": "-"}\n'
        '{"id": 0, "sentence1": "他来", "sentence2": "他没来", "label": "contradiction"}\n',
        "test.json": '{"id": 0, "sentence1": "他来了", "sentence2": "他走了"}\n',
    },
    "afqmc": {
        "train.txt": "借呗\t花呗\t1\n",
        "test.txt": "借呗\t花呗\n",
        "dev.json": '{"sentence1": "借呗", "sentence2": "花呗", "label": "0"}\n',
    },
    "goemotions": {"dev.tsv": "Is this it??\t27\tedg\nYou know,\t4,27\tee8\n"},
}


def make(tmp_path, task, folder=None):
    folder = tmp_path / (folder or task)
    for name, text in FILES[task].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


def load(tmp_path, task, split):
    return load_glue(task, make(tmp_path, task), split)


def test_every_task_of_the_table_is_tested_here():
    assert set(FILES) == set(GLUE_TASKS)


@pytest.mark.parametrize(
    "task, split, first_text, label",
    [
        ("cola", "train", "The rope stretched.", "acceptable"),
        ("cola", "dev", '"Quoted.', "acceptable"),
        ("sst2", "train", "hide new secretions ", "negative"),
        ("mrpc", "dev", ("The pie business.", '"The pie business'), "equivalent"),
        ("mrpc", "test_labelled", ("one", "two"), "equivalent"),
        ("mnli", "dev", ("A rose.", "A flower."), "entailment"),
        ("mnli", "dev_mismatched", ("a", "b"), "neutral"),
        ("mnli", "train", ('Yes, "he" did', "No\nway"), "contradiction"),
        ("qnli", "dev", ('"Who?', 'He "did.'), "not_entailment"),
        ("rte", "dev", ("a", "b"), "not_entailment"),
        ("wnli", "dev", ("a", "b"), "entailment"),
        ("chnsenticorp", "train", "酒店不错", "positive"),
        ("chnsenticorp", "dev", "<荐书> 不好", "negative"),
        ("afqmc", "train", ("借呗", "花呗"), "same"),
        ("afqmc", "dev", ("借呗", "花呗"), "different"),
    ],
)
def test_texts_and_labels_of_each_layout(tmp_path, task, split, first_text, label):
    examples = load(tmp_path, task, split)
    if isinstance(first_text, tuple):
        assert tuple(column[0] for column in examples.texts) == first_text
    else:
        assert examples.texts[0] == first_text
    assert examples.label_names[examples.labels[0]] == label
    assert examples.labels.dtype == "int32"


@pytest.mark.parametrize("task", ["cola", "sst2", "mrpc", "stsb", "mnli", "chnsenticorp", "afqmc"])
def test_unlabelled_test_sets_have_no_labels(tmp_path, task):
    examples = load(tmp_path, task, "test")
    assert examples.labels is None and len(examples) == 1
    assert examples.label_names == GLUE_TASKS[task].label_names


def test_rows_without_agreement_are_left_out_and_told(tmp_path):
    for task, name, label in (("snli", "snli_1.0_dev.jsonl", 2), ("ocnli", "dev.json", 0)):
        with pytest.warns(UserWarning, match=rf"{name}: 1 rows have the label '-'.*lines 1"):
            examples = load(tmp_path, task, "dev")
        assert examples.labels.tolist() == [label] and len(examples) == 1
    assert load(tmp_path, "snli", "train").labels.tolist() == [1]


def test_label_numbers_are_those_of_google_research_bert():
    assert {
        name: task.label_names
        for name, task in GLUE_TASKS.items()
        if name not in ("goemotions", "snli", "ocnli")
    } == {
        "cola": ("unacceptable", "acceptable"),
        "sst2": ("negative", "positive"),
        "mrpc": ("not_equivalent", "equivalent"),
        "stsb": (),
        "qqp": ("not_duplicate", "duplicate"),
        "mnli": ("contradiction", "entailment", "neutral"),
        "qnli": ("entailment", "not_entailment"),
        "rte": ("entailment", "not_entailment"),
        "wnli": ("not_entailment", "entailment"),
        "chnsenticorp": ("negative", "positive"),
        "afqmc": ("different", "same"),
    }
    assert len(GLUE_TASKS["goemotions"].label_names) == 28
    assert GLUE_TASKS["goemotions"].label_names[27] == "neutral"


def test_similarity_scores_are_floats(tmp_path):
    examples = load(tmp_path, "stsb", "dev")
    assert examples.problem_type == "regression" and examples.labels.dtype == "float32"
    assert examples.labels.tolist() == [4.75] and examples.texts == (["A man."], ["A woman."])


def test_the_original_similarity_files_have_seven_or_nine_columns(tmp_path):
    examples = load(tmp_path, "stsb", "test_labelled")
    assert examples.texts == (["A girl.", "One."], ["A boy.", "Two."])
    assert examples.labels.tolist() == [2.5, 0.0]


def test_emotions_are_rows_of_zeros_and_ones(tmp_path):
    examples = load(tmp_path, "goemotions", "dev")
    assert examples.problem_type == "multi_label" and examples.labels.shape == (2, 28)
    assert [np.flatnonzero(row).tolist() for row in examples.labels] == [[27], [4, 27]]


def test_rows_cut_short_in_qqp_are_counted_and_left_out(tmp_path):
    with pytest.warns(UserWarning, match=r"dev\.tsv: 1 rows .* left out \(lines 3\)"):
        examples = load(tmp_path, "qqp", "dev")
    assert examples.texts[0] == ["Why?", "Who?"] and examples.labels.tolist() == [0, 1]


def test_rows_cut_short_elsewhere_are_an_error(tmp_path):
    folder = make(tmp_path, "sst2")
    (folder / "dev.tsv").write_text("sentence\tlabel\nfine\t1\nno label\n")
    with pytest.raises(ValueError, match=r"dev\.tsv, line 3: a row must have 2 fields. Received 1"):
        load_glue("sst2", folder, "dev")


@pytest.mark.parametrize(
    "task, text, message",
    [
        ("sst2", "sentence\tlabel\na\t1\nb\t2\n", r"line 3: a label must be one of \['0', '1'\]"),
        ("sst2", "sentence\tlabel\na\tnan\n", "line 2: .*Received: 'nan'"),
        ("rte", "sentence1\tsentence2\tlabel\na\tb\tneutral\n", "line 2: .*'entailment'"),
        ("stsb", "sentence1\tsentence2\tscore\na\tb\tnan\n", "from 0.0 to 5.0. Received: 'nan'"),
        ("stsb", "sentence1\tsentence2\tscore\na\tb\t5.1\n", "from 0.0 to 5.0. Received: '5.1'"),
        ("goemotions", "text\t28\tid\n", "line 1: labels must be class numbers from 0 to 27"),
        ("goemotions", "text\t\tid\n", "line 1: labels must be class numbers"),
        ("sst2", "text\tclass\na\t1\n", r"none of the layouts of its task: a header with \['sent"),
        ("cola", "text\tclass\na\t1\n", "no header and 4 columns"),
        ("sst2", "sentence\tLabel\na\t1\n", "line 1: the split 'dev' has labels, .* 'label'"),
        ("sst2", "sentence\tlabel\n", "a header and no rows"),
        ("sst2", "", "is empty"),
    ],
)
def test_wrong_files_are_refused_by_name_and_line(tmp_path, task, text, message):
    (tmp_path / "dev.tsv").write_text(text)
    with pytest.raises(ValueError, match=rf"dev\.tsv.*{message}"):
        load_glue(task, tmp_path, "dev")


def test_json_lines_need_the_keys_of_the_first(tmp_path):
    lines = [{"sentence1": "a", "sentence2": "b", "label": "0"}, {"sentence1": "a", "label": "0"}]
    (tmp_path / "dev.json").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ValueError, match=r"line 2: .* Missing: \['sentence2'\]"):
        load_glue("afqmc", tmp_path, "dev")


def test_compressed_files_are_found(tmp_path):
    (tmp_path / "dev.tsv.gz").write_bytes(gzip.compress(b"sentence\tlabel\na\t1\n"))
    assert load_glue("sst2", tmp_path, "dev").texts == ["a"]


def test_a_split_whose_file_is_absent_says_what_the_folder_holds(tmp_path):
    folder = make(tmp_path, "qnli")
    with pytest.raises(FileNotFoundError, match=r"train\.tsv, and .* It holds: \['dev\.tsv'\]"):
        load_glue("qnli", folder, "train")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        load_glue("qnli", tmp_path / "absent", "train")


def test_unknown_tasks_and_splits_list_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"one of \['cola', 'sst2'.*Received: 'imdb'"):
        load_glue("imdb", tmp_path, "dev")
    with pytest.raises(ValueError, match=r"one of \('train', 'dev', 'test'\). Received: 'valid'"):
        load_glue("sst2", tmp_path, "valid")


@pytest.mark.parametrize("name, task", [("SST-2", "sst2"), ("STS-B", "stsb"), ("CoLA", "cola")])
def test_names_are_compared_without_case_and_punctuation(tmp_path, name, task):
    assert get_glue_task(name) is GLUE_TASKS[task]
    assert detect_glue_task(make(tmp_path, task, folder=name)) == task


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("task", [task for task in FILES if task != "wnli"])
def test_a_task_is_known_by_its_files_alone(tmp_path, task):
    folder = make(tmp_path, task, folder="data")
    assert detect_glue_task(folder) == task
    split = "train" if any(name.startswith("train") for name in FILES[task]) else "dev"
    assert len(load_glue(None, folder, split)) >= 1


def test_files_that_fit_two_tasks_are_refused(tmp_path):
    folder = make(tmp_path, "wnli", folder="data")
    with pytest.raises(ValueError, match=r"more than one task: \['wnli', 'afqmc'\]"):
        detect_glue_task(folder)


def test_a_folder_of_no_task_is_refused(tmp_path):
    (tmp_path / "train.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(ValueError, match=r"fit none of the tasks.*Name the `task`"):
        detect_glue_task(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        detect_glue_task(tmp_path / "absent")


@pytest.mark.parametrize("value", ["null", "true", "[1]"])
def test_json_that_is_no_text_is_refused_and_what_nobody_reads_is_not(tmp_path, value):
    row = '{"sentence1": "a", "sentence2": "b", "label": 1, "id": %s}'
    path = tmp_path / "a.json"
    path.write_text(row % value)
    task = get_glue_task("afqmc")
    assert read_examples(path, task).labels.tolist() == [1]
    path = tmp_path / "b.json"
    path.write_text(row % 7 + "\n" + (row % 7).replace('"b"', value))
    with pytest.raises(ValueError, match=r"b.json, line 2: texts and labels must be str"):
        read_examples(path, task)
