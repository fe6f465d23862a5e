"""The layouts of tables and labels that people have, and what each gives: see "Your own data"."""

import bz2
import gzip
import json
import lzma
import pickle
import re
import warnings

import pytest
from checks import cases, refused

from bert_keras.cli import text_rows
from bert_keras.datasets import read_texts
from bert_keras.datasets.table import format_of

pytestmark = pytest.mark.once
ROWS = [{"id": 1, "review": "good; really", "stars": 5}, {"id": 2, "review": "bad", "stars": 1}]
TEXTS = ["good; really", "bad"]
LINES = "id,review,stars\n1,good; really,5\n2,bad,1\n"
LAYOUT = {"separator", "quoting", "encoding"}
MULTI = {"problem_type": "multi_label"}
PLAIN = {"text": "review", "label": "stars", "texts": TEXTS, "labels": [1, 0], "names": "1 5"}


def case(about, name, content, texts=("a", "b"), labels=(1, 0), names="no yes", **options):
    """A file with the columns `text` and `label` unless `text` and `label` name others."""
    texts = texts if isinstance(texts[0], list) else [*texts]
    return pytest.param(name, content, texts, [*labels], tuple(names.split()), options, id=about)


def parquet(path):
    pytest.importorskip("pandas").DataFrame(ROWS).to_parquet(path)


def excel(path):
    pytest.importorskip("openpyxl")
    pytest.importorskip("pandas").DataFrame(ROWS).to_excel(path, index=False)


def tsv(*rows):
    return "".join("\t".join(row) + "\n" for row in (("text", "label"), *rows))


STSB = "main\t1\t4.5\tA girl.\tA boy.\nmain\t2\t0\tOne.\tTwo.\thttp://a\thttp://b\n"
JIGSAW = "id,text,toxic,insult\n1,a,1,0\n2,b,0,0\n3,c,-1,-1\n"
LAYOUTS = [
    # What separates columns and ends lines, and how texts are encoded.
    *(
        case(about, f"{about}.csv", LINES.replace(",", each) if about != "semicolons"
             else 'id;review;stars\n1;"good; really";5\n2;bad;1\n', **PLAIN)
        for about, each in (("commas", ","), ("semicolons", ";"), ("pipes", "|"), ("tabs", "\t"))
    ),
    case("comma called tsv", "a.tsv", LINES, **PLAIN),
    *(case(f"{text} is not JSON", "a.txt", f"{text}\tyes\nb\tno\n", [text, "b"], text="0",
           label="1") for text in ("[[a]] b", '{"a" b', "{{a}}")),
    case("separator by flag", "a.txt", LINES.replace(",", "^"), separator="^", **PLAIN),
    case("Excel's sep line", "a.csv", "sep=^\r\n" + LINES.replace(",", "^"), **PLAIN),
    case("DOS line ends", "a.csv", LINES.replace("\n", "\r\n"), **PLAIN),
    case("Mac line ends", "a.csv", LINES.replace("\n", "\r"), **PLAIN),
    case("byte order mark", "a.csv", LINES.encode("utf-8-sig"), **PLAIN),
    case("UTF-16", "a.csv", LINES.replace(",", "\t").encode("utf-16"), **PLAIN),
    case("UTF-16, high bytes first", "a.csv", b"\xfe\xff" + LINES.encode("utf-16-be"), **PLAIN),
    *(case(each, "a.csv", "text,label\nÜber,ja\nNö,nein\n".encode(each), ["Über", "Nö"],
           names="ja nein", labels=[0, 1], encoding=each) for each in ("cp1252", "utf-16-be")),
    case("gb18030", "a.csv", "text,label\n酒店,好\n房,坏\n".encode("gb18030"), ["酒店", "房"],
         names="坏 好", encoding="gbk"),
    case("gzip", "a.csv.gz", gzip.compress(LINES.encode()), **PLAIN),
    # Quotation marks.
    case("CSV", "a.csv", 'text,label\n"a, ""b""\nc",yes\nb,no\n', ['a, "b"\nc', "b"]),
    case("GLUE's TSV", "a.tsv", tsv(('"open', "yes"), ('"a" or b', "no")), ['"open', '"a" or b']),
    case("a text in quotes", "a.tsv", tsv(('"Great"', "yes"), ("b", "no")), ['"Great"', "b"]),
    case("pandas' TSV", "a.tsv", tsv(('"say ""hi"""', "yes"), ("b", "no")), ['say "hi"', "b"]),
    case("pandas' TSV, two lines", "a.tsv", tsv(('"a\nb"', "yes"), ("b", "no")), ["a\nb", "b"]),
    case("Excel's TSV", "a.tsv", tsv(('"a, b"', "yes"), ("b", "no")), ["a, b", "b"]),
    case("blanks in some rows", "a.csv", "text,label\n a,yes\nb, no\n", [" a", "b"]),
    case("a long TSV, quoted where it is needed", "a.tsv",
         "text\tlabel\n" + "a\tyes\n" * 997 + '"b\n""c"""\tno\n', ["a"] * 997 + ['b\n"c"'],
         [1] * 997 + [0]),
    case("a TSV all quoted", "a.tsv", '"text"\t"label"\n"a"\t"yes"\n"b"\t"no"\n'),
    case("quoting by flag", "a.tsv", tsv(('"a"', "yes"), ("b", "no")), quoting=True),
    case("no quoting by flag", "a.csv", 'text,label\n"a,yes\nb",no\n', ['"a', 'b"'], quoting=False),
    # Columns.
    case("no header", "a.csv", "a,yes\nb,no\n", text="0", label="1"),
    case("a long first row", "a.csv", f"{'a' * 2**18},yes\nb,no\n", ["a" * 2**18, "b"],
         text="0", label="1"),
    case("STS-B's surplus", "a.csv", STSB, ["A girl.", "One."], [4.5, 0.0], "", text="3", label="2",
         problem_type="regression"),
    case("JSON lines", "a.jsonl", ROWS, **PLAIN),
    case("JSON list", "a.json", str(ROWS).replace("'", '"'), **PLAIN),
    case("JSON list in lines", "a.json", str(ROWS).replace("'", '"').replace(",", ",\n"), **PLAIN),
    case("JSON under data", "a.json", {"data": ROWS}, **PLAIN),
    case("Parquet", "a.parquet", parquet, **PLAIN),
    case("Excel", "a.xlsx", excel, **PLAIN),
    case("bzip2", "a.csv.bz2", bz2.compress(LINES.encode()), **PLAIN),
    case("xz", "a.csv.xz", lzma.compress(LINES.encode()), **PLAIN),
    case("blanks around a header", "a.csv", "text , Label\na,yes\nb,no\n", label="label"),
    case("a heading before JSON lines", "a.jsonl", [{"header": {"v": 1}}, *ROWS], **PLAIN),
    *(case(f"missing: {word}", "a.csv", f"text,label\na,yes\nx,{word}\nb,no\n")
      for word in ("NULL", "NA", "N/A", "n/a", "None", "#N/A", r"\N", "<NA>", "null")),
    case("a label called None", "a.csv", "text,label\na,None\nb,yes\n", labels=[0, 1],
         names="None yes", label_names=("None", "yes")),
    # Labels.
    case("blanks around names", "a.csv", "text,label\na, yes\nb,no \nc,yes\n", "abc", [1, 0, 1]),
    case("1 and 1.0", "a.csv", "text,label\na,1\nb,0.0\nc,1.0\n", "abc", [1, 0, 1], "0 1"),
    case("bools", "a.jsonl", [{"text": x, "label": x == "a"} for x in "ab"], names="false true"),
    case("bools in tables", "a.csv", "text,label\na,True\nb,FALSE\nc,true\n", "abc", [1, 0, 1],
         "false true"),
    case("bools as names have them", "a.csv", "text,label\na,True\nb,False\n",
         names="FALSE TRUE", label_names=("FALSE", "TRUE")),
    case("empty cells", "a.csv", "text,label\na,yes\nx,\n,no\nb,no\n"),
    case("NaN and null", "a.jsonl", [{"text": x, "label": y} for x, y in (
        ("a", "yes"), ("x", float("nan")), ("x", None), (None, "yes"), ("b", "no"))]),
    case("a pair without a second text", "a.csv", "text,other,label\na,x,yes\nc, ,no\nb,y,no\n",
         (["a", "b"], ["x", "y"]), pair="other"),
    case("a pair with null", "a.jsonl", [{"text": x, "other": y, "label": z} for x, y, z in (
        ("a", "x", "yes"), ("c", None, "no"), ("c", "", "no"), ("b", "y", "no"))],
         (["a", "b"], ["x", "y"]), pair="other"),
    case("SNLI's -", "a.tsv", tsv(("a", "yes"), ("x", "-"), ("b", "no"))),
    case("SNLI's -1", "a.csv", "text,label\na,2\nx,-1\nb,0\nc,1\n", "abc", [2, 0, 1], "0 1 2"),
    case("-1, 0 and 1", "a.csv", "text,label\na,1\nb,-1\nc,0\n", "abc", [2, 0, 1], "-1 0 1"),
    case("numbers in their order", "a.csv", "text,label\na,10\nb,9\n", labels=[1, 0], names="9 10"),
    case("a column per label", "a.csv", JIGSAW, "ab", [[1, 0], [0, 0]], "toxic insult",
         label="toxic,insult", **MULTI),
    case("a column of bools per label", "a.csv", "text,x,y\na,True,False\nb,False,false\n", "ab",
         [[1, 0], [0, 0]], "x y", label="x,y", **MULTI),
    case("several names", "a.csv", 'text,label\na,"yes, no"\nb,\nc,no\n', "abc",
         [[1, 1], [0, 0], [1, 0]], **MULTI),
    case("names by separator", "a.csv", "text,label\na,yes|no\nb,no\n", labels=[[1, 1], [1, 0]],
         label_separator="|", **MULTI),
    case("Python's lists", "a.csv", "text,label\na,\"['yes', 'no']\"\nb,['no']\nc,[]\n", "abc",
         [[1, 1], [1, 0], [0, 0]], **MULTI),
    case("JSON's lists in cells", "a.csv", 'text,label\na,"[""\\u00e9"", ""b,c""]"\nb,[]\n',
         labels=[[1, 1], [0, 0]], names="b,c é", **MULTI),
    case("NumPy's lists", "a.csv", "text,label\na,['yes' 'no']\nb,['no']\n",
         labels=[[1, 1], [1, 0]], **MULTI),
    case("a list of numbers", "a.csv", 'text,label\na,"[01, 1_0]"\nb,[1]\n',
         labels=[[1, 0, 1], [0, 1, 0]], names="01 1 1_0", **MULTI),
    case("JSON's lists", "a.jsonl", [{"text": "a", "label": ["yes", "no"]},
         {"text": "b", "label": []}], labels=[[1, 1], [0, 0]], **MULTI),
    case("numbers of classes", "a.jsonl", [{"text": "a", "label": [0, 2]},
         {"text": "b", "label": [1]}], labels=[[1, 0, 1], [0, 1, 0]], names="0 1 2", **MULTI),
    case("vectors", "a.csv", 'text,label\na,"[0, 1, 1]"\nb,"[0, 0, 0]"\n',
         labels=[[0, 1, 1], [0, 0, 0]], names="0 1 2", **MULTI),
    case("vectors of known labels", "a.jsonl", [{"text": "a", "label": [0, 1]},
         {"text": "b", "label": [0, 0]}], labels=[[0, 1], [0, 0]], label_names=("no", "yes"),
         **MULTI),
    case("scores with gaps", "a.csv", "text,label\na,1.5\nx,nan\nb,-1\n", labels=[1.5, -1.0],
         names="", problem_type="regression"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "texts", "labels", "names", "options"), LAYOUTS)
def test_a_layout_gives_these_texts_and_labels(
    write, tmp_path, name, content, texts, labels, names, options
):
    path = tmp_path / name
    content(path) if callable(content) else write(name, content)
    options = {"text": "text", "label": "label", **options}
    text, label, pair = options.pop("text"), options.pop("label"), options.pop("pair", None)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = read_texts(path, [text, pair], label, **options)
        assert found.texts == texts
        assert found.labels.tolist() == labels and found.label_names == names
        # `classify --input` reads the same texts, and answers rows without a label too.
        if not any(x in str(y.message) for y in warned for x in ("left out", "heading")):
            layout = {key: options[key] for key in options.keys() & LAYOUT}
            kind = "tsv" if name.endswith(".txt") else format_of(name, None)
            rows = text_rows.read_rows(str(path), kind, (text,), **layout)
            assert [text for (text,), _ in rows] == texts


@cases(
    ("a.jsonl", [{"text": x, "label": -1} for x in "ab"], "text", "label", ("0", "1")),
    ("a.jsonl", [{"text": x, "label": None} for x in "ab"], "text", "label", ("no", "yes")),
    ("a.csv", "text,label\na,\nb,\n", "text", "label", ("no", "yes")),
    ("a.csv", "text\na\nb\n", "text", "label", ("no", "yes")),
    ("a.tsv", "id\ttext\n1\ta\n2\tb\n", "text", "label", ("no", "yes")),
    ("a.tsv", "text\na\nb\n", "0", "label", ("no", "yes")),
    *(("a.tsv", "a\nb\n", "0", label, ("no", "yes")) for label in ("1", "-1")),
)
def test_each_row_of_a_file_without_labels_is_answered_if_labels_may_lack(
    write, name, content, text, label, label_names
):
    path = write(name, content)
    found = read_texts(path, [text, None], label, label_names, may_lack_labels=True)
    assert found.texts == ["a", "b"] and found.labels is None
    with pytest.raises(ValueError, match=name):
        read_texts(path, [text], label, label_names)


@pytest.mark.parametrize("texts, label", [("a,b", "y"), ("a, b", ["y"]), ([0, 1], 2), ("0,1", 2)])
def test_columns_may_be_a_str_or_numbers(write, texts, label):
    header = "" if label == 2 else "a,b,y\n"
    found = read_texts(write("t.csv", f"{header}c,d,no\ne,f,yes\n"), texts, label)
    assert found.texts == (["c", "e"], ["d", "f"]) and found.label_names == ("no", "yes")


def test_labels_that_occur_are_the_classes(write):
    found = read_texts(write("t.csv", '"a\nb",yes\nc,no\nd,maybe\n'), ["-2"], "-1")
    assert found.label_names == ("maybe", "no", "yes") and found.labels.tolist() == [2, 1, 0]
    found = read_texts(write("t.tsv", "text\tlabel\na\t1.5\nb\t2.5\n"), ["text"], "label")
    assert found.label_names == ("1.5", "2.5")
    few = write("few.csv", "text,label\n" + "".join(f"a{n},class {n}\n" for n in range(77)))
    with pytest.warns(UserWarning, match=r"hardly recur look like ids .*: 'class 0' \(1\), "):
        assert len(read_texts(few, ["text"], "label").label_names) == 77
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_texts(few, ["text"], "label", [f"class {n}" for n in range(150)])


WESTERN = "text,label\ncafé,yes\n".encode("cp1252")
CHINESE = "text,label\n酒店不错,yes\n".encode("gb18030")
LISTS = [{"text": "a", "label": ["x", "y"]}]
NO_LIST = json.dumps({"rows": ROWS}, indent=1)
ABSENT = r"no column 'text'.*'id.*label_column.*separator"


def columns(text, label, **options):
    return {"text_columns": [text], "label_column": label, **options}


SCORES = columns("0", "1", problem_type="regression", score_range=(0.0, 5.0))


@refused(
    ("a.csv", WESTERN, {}, "line 2, byte 14: 0xe9 is not UTF-8. .*iconv.* cp1252: 'café,yes'"),
    ("a.csv", CHINESE, {}, "line 2, byte 11: .*iconv.*where.* gb18030: '酒店不错,yes', big5"),
    ("a.csv", b"PK\x03\x04\x14\0", {}, r"must be a text file.*PK.* must end in \.xlsx"),
    ("a.csv", b"PAR1\x15\0", {}, r"must be a text file.*PAR1.* file in \.parquet"),
    ("a.csv.gz", gzip.compress(b"text,label\na,yes\n" * 99)[:-9], {}, "cannot be read .*EOF"),
    ("a.csv", "text,label\na, b,yes\n", {}, "line 2: .* not 3.* in quotation marks"),
    ("a.csv", "text,label\nx\ry,yes\nb,no\n", {}, r"line 2: .*carriage return \(\\r\)"),
    ("a.csv", "text,la\rbel\na,yes\nb,no\n", {}, r"line 1: .*carriage return \(\\r\)"),
    ("a.csv", "text,label\n ,yes\n,no\n", {}, "a.csv must have rows with a text"),
    ("a.csv", WESTERN, {"encoding": "cp0"}, "a name that Python knows.*'cp0'"),
    ("a.csv", WESTERN, {"encoding": "gbk"}, "line 2, byte 14: 0xe9 is not GBK"),
    ("a.csv", "text,label,label\na,x,y\n", {}, "more than one column 'label'"),
    ("a.csv", 'text,label\n"a,yes\n', {}, "line 2: .*never closed, or .*--noquoting"),
    ("a.csv", 'text,label\n"say \\"hi\\"",yes\n', {}, "line 2: .*is not CSV"),
    ("a.csv", 'text, label\n"b", yes\n"a", "b, c"\n', {}, "line 3: .* not 3"),
    ("a.json", '{"text": {"0": "a"}, "label": {"0": 1}}\n{"text": 1}\n', {}, "line 2: .*keys"),
    *(("a.json", x, {}, r'list of JSON objects.*orient="records"')
      for x in ('{\n"text": {"0": "a"}}', '{"text":{"0":"a"},"label":{"0":1}}')),
    ("a.jsonl", '{"text": "a", "label": 1}\n{"header": {}}\n', {}, "line 2: .*text"),
    ("a.jsonl", LISTS, {}, "line 1: a row must have one label.*multi_label"),
    ("a.csv", JIGSAW, {"label_column": "toxic,insult"}, "need the problem type multi_label"),
    ("a.csv", "text,x,y\na,1,2\n", {"label_column": "x,y", **MULTI}, r"line 2: .* 0 or 1.*'2'"),
    ("a.csv", "text,x,y\na,1,untrue\n", {"label_column": "x,y", **MULTI}, "'untrue'"),
    ("a.csv", "text,x\na,1\n", {"label_column": ["x", "y"], **MULTI}, "no column 'y'"),
    ("a.csv", 'text,label\na,"[0, 1]"\n', {"label_names": ("x",), **MULTI}, "must have 1, one"),
    ("a.csv", "text,label\na,-1\nb,-1\n", {}, "line 2: at least one row must have a label"),
    ("a.csv", "text,x,y\na,1,\n", {"label_column": "x,y", **MULTI}, r"line 2: .*\('1', ''\)"),
    ("t.csv", '"a\nb",yes\nd,x\n', columns("-2", "-1", label_names=["yes"]),
     r"t\.csv, line 3: .* 'x'"),
    ("s.tsv", "a\t1\nb\t6\n", SCORES, "line 2: .* from 0.0 to 5"),
    ("s.tsv", "a\t1\nb\t1_0\n", SCORES, "line 2: .* number.*'1_0'"),
    ("t.tsv", "text\nx\n", {"label_column": "text"}, r"different .*\['text', 'text'\]"),
    ("t.tsv", "text\tlabel\na\t\nb\t\n", {}, r"t\.tsv, line 2: .*''"),
    ("t.tsv", "text\tlabel\na\tx\nb\tx\n", {}, r"two classes .* \('x',\)"),
    ("t.csv", 'a,"y, n"\n', columns("0", "1", label_names=["n"], **MULTI),
     r"line 1: .*\['n'\]\. .* 'y'"),
    ("t.csv", "a,\nb,\n", columns("0", "1", **MULTI), r"t\.csv must have labels"),
    ("a.csv", "id;b,c\n1;2,3\n", {}, ABSENT),
    ("a.jsonl", ROWS, {}, ABSENT),
    ("b.json", NO_LIST, columns("review", "stars"), "b.json: there must be a list .*'rows'"),
    ("p.parquet", "text", {}, r"p\.parquet.*footer"),
    ("a.jsonl", ROWS, columns("review", "stars", separator=";"), "has no delimiter"),
    prefix="(?s)",
)  # fmt: skip
def test_wrong_neighbours_are_refused_by_line_with_what_helps(write, name, content, options):
    read_texts(write(name, content), **{**columns("text", "label"), **options})


@cases(
    (("Praise", "praise", "Bug"), r"'Praise' \(1\), 'praise' \(1\)"),
    (("1", "\uff11", "2"), r"'1' \(1\), '\\uff11' \(1\)"),
    (("caf\u00e9", "cafe\u0301", "bar"), r"'café' .*, 'cafe\\u0301'|u0301.*'café'"),
    (("Unmöglich", "unmöglich", "ja"), r"'Unmöglich' \(1\), 'unmöglich' \(1\)"),
    (("neg", "\u200bneg", "pos"), r"200bneg"),
    (("\u00b5", "\u03bc", "b"), r"'\\xb5' \(1\), '\u03bc' \(1\)"),
    (("Мир", "мир", "b"), r"'Мир' \(1\), 'мир' \(1\)"),
    (("very good", "very_good", "bad"), "very_good"),
    (("red;blue", "red", "blue", "blue"), "label_separator=';'"),
    (("a|b", "b|c", "a|c"), r"label_separator='\|'"),
    (("红、蓝", "红", "蓝"), "label_separator='、'"),
    (("a & b", "a", "b"), "label_separator='&'"),
    (("a；b", "a", "b"), "label_separator='；'"),
    (("['a'; 'b']", "a", "b"), r"made of others .*: \"\['a'; 'b'\]\" \(1\)"),
    (("('a' 'b')", "a", "b"), r"made of others .*: \"\('a' 'b'\)\" \(1\)"),
    (("don't know", "don’t know", "a"), r"u2019t know' \(1\)"),
    (("spam.", "spam", "ham"), r"'spam' \(1\), 'spam.' \(1\)"),
    (("İyi", "iyi", "kötü"), "İyi"),
    (("Null", "#DIV/0!", "a"), r"look like missing ones .*'#DIV/0!' \(1\), 'Null' \(1\)"),
)
def test_names_that_stand_for_the_same_or_for_several_are_remarked(write, labels, message):
    rows = "".join(f"text {n},{label}\n" for n, label in enumerate(labels))
    with pytest.warns(UserWarning, match=message):
        found = read_texts(write("a.csv", "text,label\n" + rows), ["text"], "label")
    assert found.label_names == tuple(sorted({*labels}))


def test_other_names_are_not_remarked(write):
    rows = "".join(
        f"text,{x}\n" * 2
        for x in (
            *("sci/tech", "C", "C++", "C#", "-1", "1", "a-b", "x;y", "none", ".", ":"),
            *("(don't know)", "('so-called')", "कु", "क", "か", "が"),
            # Letters of their own, Vietnamese tones, other words, and whole names in two scripts.
            *("мой", "мои", "все", "всё", "año", "ano", "schon", "schön", "Masse", "Maße"),
            *("ban", "bán", "bạn", "bản", "pêche", "péché", "\u0623", "\u0627"),
            *("a", "\u0430", "α", "B", "\u0392", "\u043e\u043d", "oh", "\u03bcm", "mm"),
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_texts(write("a.csv", "text,label\n" + rows), ["text"], "label")


@cases(
    ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)),
    ("a.csv.zst", b"\x28\xb5\x2f\xfd\x24\x13\x99"),
    ("a.pkl", pickle.dumps({"text": ["a"]})),
    ("a.db", b"SQLite format 3\x00"),
    ("a.lz4", b"\x04\x22\x4d\x18\x40\x40\xc0"),
    ("a.feather", b"ARROW1\0\0"),
    ("a.sav", b"$FL2@(#) SPSS" + bytes(20) + b"\xe9"),
    ("a.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF"),
)
def test_files_without_text_are_refused_with_their_first_bytes(write, name, content):
    begin = re.escape(repr(content[:6])[2:-1])
    with pytest.raises(ValueError, match=f"must be a text file. Received: the control.*{begin}"):
        read_texts(write(name, content), ["text"], "label")


def test_a_name_that_fits_two_columns_is_refused(write):
    path = write("a.csv", "Text,TEXT,label\na,b,yes\nc,d,no\n")
    assert read_texts(path, ["Text"], "label").texts == ["a", "c"]
    other = write("b.csv", "text,ＴＥＸＴ,cafe\u0301\na,b,yes\nc,d,no\n")
    assert read_texts(other, ["Text"], "Caf\u00e9").texts == ["a", "c"]
    with pytest.raises(ValueError, match="more than one column 'text'"):
        read_texts(path, ["text"], "label")
