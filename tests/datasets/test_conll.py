"""Files with a word and its tag per line: separators, comments, columns and what is refused.

Other layouts of tagged words are in test_marked_layouts.py.
"""

import gzip

import pytest
from checks import cases, refused

from bert_keras.datasets import TaggedSentences, read_conll, tag_names

CONLL_2003 = (
    "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n"
    "-DOCSTART- -X- -X- O\n\nPeter NNP B-NP B-PER\n"
)
REST = "\t_\t_\t0\troot\t_\t_"
CONLL_U = (
    "# newdoc id = x\n# text = I didn't.\n"
    f"1\tI\tI\tPRON\tPRP{REST}\n2-3\tdidn't\t_\t_\t_{REST}\n2\tdid\tdo\tAUX\tVBD{REST}\n"
    f"3\tn't\tnot\tPART\tRB{REST}\n3.1\tgo\tgo\tVERB\tVB{REST}\n4\t10 000\t1\tNUM\tCD{REST}\n\n"
    f"# sent_id = 2\n1\t#\t#\tSYM\tNN{REST}\n"
)
NUMBERED = "1\tAda\tada\tNOUN\n2\tslept\tsleep\tVERB\n"
UNIVERSAL_NER = "# sent_id = 1\n1\tAda\tB-PER\t-\t-\n2\tslept\tO\t-\t-\n\n1\tRome\tB-LOC\t-\t-\n"
LINE_2012 = "bc/a 0 0 In NN (TOP*) - - - Ada (GPE* -\n"
WEBANNO = "".join(f"1-{n}\t0-4\tBill\tPER\n" for n in range(30))
WEIBO = "科0\tB-ORG.NAM\n技1\tI-ORG.NAM\n\n\ufffd\ufffd0\tO\n20\tO\n"
OF_GERMEVAL = "#\thttp://de.wikipedia.org/wiki/A [2009-10-17]"
AMONG_COMMENTS = "# id 12 domain=en\n#first\tO\nb\tB-X\n\n# text\n#\tO\n#tag\tO\n"


def sentences(text):
    return [sentence.split(",") for sentence in text.split("|")]


@cases(
    ("@paulwalk\tO\nEmpire\tB-loc\n\nBye\tO\n", {}, "@paulwalk,Empire|Bye", "O,B-loc|O"),
    (CONLL_2003, {}, "EU,rejects|Peter", "B-ORG,O|B-PER"),
    (CONLL_2003, {"tag_column": 1}, "EU,rejects|Peter", "NNP,VBZ|NNP"),
    ("a\tO\n\t\n\n \nb\tO\n\t", {}, "a|b", "O|O"),  # Lines of white space end sentences.
    # A line with another number of fields is a comment.
    (AMONG_COMMENTS, {}, "#first,b|#,#tag", "O,B-X|O,O"),
    ("#a\tO\n#b\tO\n\nc\tO\n", {}, "#a,#b|c", "O,O|O"),
    # Characters of Weibo's files have their position in the word.
    (WEIBO, {}, "科,技|\ufffd\ufffd,2", "B-ORG.NAM,I-ORG.NAM|O,O"),
    ("A1\tO\nB2\tO\nend\tO\n", {}, "A1,B2,end", "O,O,O"),
    ("7\tO\n10\tO\n", {}, "7,10", "O,O"),
    (UNIVERSAL_NER, {"word_column": 1, "tag_column": 2}, "Ada,slept|Rome", "B-PER,O|B-LOC"),
    (NUMBERED, {"word_column": 1, "tag_column": 3}, "Ada,slept", "NOUN,VERB"),
)
def test_each_layout_gives_its_words_and_tags(write, content, options, words, tags):
    found = read_conll(write("t.conll", content), **options)
    assert found == TaggedSentences(sentences(words), sentences(tags))
    assert len(found) == len(sentences(words))


def test_empty_words_are_kept_and_reported_with_the_first_line(write):
    for content, words, tags in (
        # Without a tab, spaces separate.
        ("在 O\r\n这  B-LOC \r\n\r\n\u3000 O\r\n", "在,这|\u3000", "O,B-LOC|O"),
        ("a\tO\nb\tO\nc\tO\n\tO\nke s\tB-PER\n", "a,b,c,,ke s", "O,O,O,O,B-PER"),
    ):
        with pytest.warns(UserWarning, match=r"btc: rows with an empty word: 1 of \d \(line 4\)"):
            found = read_conll(write("btc", content))
        assert found == TaggedSentences(sentences(words), sentences(tags))


def test_ranges_empty_nodes_and_comments_are_skipped(write):
    for comment in ("#", "# a b c d", "#sent_id=1", "###MEDLINE:95369245", OF_GERMEVAL):
        path = write("t.conll", f"a\tX\tO\n{comment}\nb\tX\tO\n")
        assert read_conll(path).words == [["a", "b"]]
    path = write("t.conllu", CONLL_U)
    found = read_conll(path)
    assert found.words == [["I", "did", "n't", "10 000"], ["#"]]
    assert found.tags == [["PRON", "AUX", "PART", "NUM"], ["SYM"]]
    assert read_conll(path, tag_column=4).tags[0] == ["PRP", "VBD", "RB", "CD"]
    assert read_conll(write("t.conllu.gz", gzip.compress(CONLL_U.encode()))) == found


@refused(
    ("t", "a\tO\n\nb\n", {}, r"line 3: every word's line must have .* 2\. Received: \['b'\]"),
    ("t", "a\tO\nb\tO\tx\n", {}, "line 2: .*'O', 'x'"),
    ("t", "a\tO\nb\t\n", {}, "line 2: a tag must be a str.*''"),
    ("t", "Hi\tO\n#London B-LOC\n", {}, r"line 2: .*Received: \['#London B-LOC'\]"),
    ("t", "word\n", {}, "line 1: there are no tags"),
    ("t", "", {}, "must hold words"),
    ("t", "\n-DOCSTART- O\n\n", {}, "must hold words"),
    ("t", "a\tO\n", {"tag_column": 2}, "there are 2 columns, .* Received: 2. .*tag_column"),
    ("t", NUMBERED * 10, {}, r"must hold words.* numbers.*'1', '2'.*word_column"),
    ("t", NUMBERED, {}, r"must hold words.* numbers.*'1', '2'.*word_column"),
    ("t", "0 I O\n", {"tag_column": 2}, r"must hold words.* numbers.*word_column"),
    ("t", "1-1\t0-4\tBill\tO\n", {}, r"must hold words.* numbers.*word_column"),
    ("t", UNIVERSAL_NER, {}, r"the columns \[2\] hold tags.*word_column"),
    ("t", LINE_2012 * 20, {}, "must hold words, which vary.*word_column"),
    ("t", LINE_2012 + LINE_2012.replace("-\n", "x -\n"), {}, "line 2: .* 12. Received"),
    ("t", "text\tlabel\na film\t1\nso dull\t0\n", {}, "a word and its tag.*'a film'"),
    ("t.conllu", f"I\tI\tI\tPRON\tPRP{REST}\n", {}, "line 1: the first field of CoNLL-U"),
    ("t.tsv", WEBANNO, {}, "must hold words, which vary, not"),
    prefix=r"{name}.*",
)
def test_wrong_files_and_columns_are_refused_by_file_and_line(write, name, content, options):
    read_conll(write(name, content), **options)


def test_tag_names_begin_with_o(write):
    train = TaggedSentences([["a", "b"]], [["I-X", "B-X"]])
    assert tag_names(train, [["O"], ["B-A"]]) == ("O", "B-A", "B-X", "I-X")
    assert tag_names([["VERB", "NOUN"]]) == ("NOUN", "VERB")


def test_taking_sentences_keeps_words_and_tags_together():
    found = TaggedSentences([["a"], ["b"], ["c"]], [["X"], ["Y"], ["Z"]])
    assert found.take([2, 0]) == TaggedSentences([["c"], ["a"]], [["Z"], ["X"]])
    assert found.take(slice(1)).tags == [["X"]]


def test_words_without_tags_are_read_if_that_is_allowed(write):
    path = write("words.conll", "Ada\nmet\n\nBob\n")
    found = read_conll(path, tag_column=1, may_lack_tags=True)
    assert found == TaggedSentences([["Ada", "met"], ["Bob"]], None)
    assert found.take([1]) == TaggedSentences([["Bob"]], None)
    assert tag_names(found, TaggedSentences([["a"]], [["X"]])) == ("X",)
    with pytest.raises(ValueError, match=r"line 1: there are no tags.*tag_column"):
        read_conll(path)
