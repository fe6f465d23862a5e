"""Column files of words and tags: separators, comments, columns and what is refused."""

import gzip

import pytest

from bert_keras.datasets import TaggedSentences, find_tag, read_conll, tag_names


def test_tabs_separate_a_word_from_its_tag(write):
    path = write("t.conll", "@paulwalk\tO\nEmpire\tB-loc\n\nBye\tO\n")
    sentences = read_conll(path)
    assert sentences.words == [["@paulwalk", "Empire"], ["Bye"]]
    assert sentences.tags == [["O", "B-loc"], ["O"]]
    assert len(sentences) == 2


def test_spaces_separate_if_there_is_no_tab(write):
    path = write("t.txt", "在 O\r\n这  B-LOC \r\n\r\n\u3000 O\r\n")
    with pytest.warns(UserWarning, match="1 words are empty"):
        sentences = read_conll(path)
    assert sentences.words == [["在", "这"], ["\u3000"]]
    assert sentences.tags == [["O", "B-LOC"], ["O"]]


def test_conll_2003_has_four_columns_and_document_marks(write):
    text = (
        "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n"
        "-DOCSTART- -X- -X- O\n\nPeter NNP B-NP B-PER\n"
    )
    path = write("eng.train", text)
    assert read_conll(path).words == [["EU", "rejects"], ["Peter"]]
    assert read_conll(path).tags == [["B-ORG", "O"], ["B-PER"]]
    assert read_conll(path, tag_column=1).tags == [["NNP", "VBZ"], ["NNP"]]


def test_lines_of_white_space_end_sentences(write):
    path = write("t.conll", "a\tO\n\t\n\n \nb\tO\n\t")
    assert read_conll(path).words == [["a"], ["b"]]


def test_a_number_sign_begins_a_comment_only_with_another_number_of_fields(write):
    text = "# id 12 domain=en\n#first\tO\nb\tB-X\n\n# text\n#\tO\n#tag\tO\n"
    path = write("t.conll", text)
    sentences = read_conll(path)
    assert sentences.words == [["#first", "b"], ["#", "#tag"]]


@pytest.mark.parametrize(
    "comment",
    [
        *("#", "# a b c d", "#begin document (a); part 000", "#end x", "#sent_id=1"),
        *("###MEDLINE:95369245", "#\thttp://de.wikipedia.org/wiki/A [2009-10-17]"),
    ],
)
def test_comments_of_published_sets_are_skipped(write, comment):
    path = write("t.conll", f"a\tX\tO\n{comment}\nb\tX\tO\n")
    assert read_conll(path).words == [["a", "b"]]


def test_a_first_sentence_of_number_signs_stays_a_sentence(write):
    path = write("t.conll", "#a\tO\n#b\tO\n\nc\tO\n")
    assert read_conll(path).words == [["#a", "#b"], ["c"]]


def test_conllu_ranges_empty_nodes_and_comments_are_skipped(write):
    rest = "\t_\t_\t0\troot\t_\t_"
    text = (
        "# newdoc id = x\n# text = I didn't.\n"
        f"1\tI\tI\tPRON\tPRP{rest}\n2-3\tdidn't\t_\t_\t_{rest}\n2\tdid\tdo\tAUX\tVBD{rest}\n"
        f"3\tn't\tnot\tPART\tRB{rest}\n3.1\tgo\tgo\tVERB\tVB{rest}\n4\t10 000\t1\tNUM\tCD{rest}\n\n"
        f"# sent_id = 2\n1\t#\t#\tSYM\tNN{rest}\n"
    )
    path = write("t.conllu", text)
    sentences = read_conll(path)
    assert sentences.words == [["I", "did", "n't", "10 000"], ["#"]]
    assert sentences.tags == [["PRON", "AUX", "PART", "NUM"], ["SYM"]]
    assert read_conll(path, tag_column=4).tags[0] == ["PRP", "VBD", "RB", "CD"]
    assert read_conll(write("t.conllu.gz", gzip.compress(text.encode()))) == sentences


def test_weibo_characters_lose_their_position_in_the_word(write):
    path = write("weibo", "科0\tB-ORG.NAM\n技1\tI-ORG.NAM\n\n\ufffd\ufffd0\tO\n20\tO\n")
    assert read_conll(path).words == [["科", "技"], ["\ufffd\ufffd", "2"]]
    assert read_conll(path, segment_index=False).words[0] == ["科0", "技1"]


def test_words_that_end_in_digits_are_kept_among_others(write):
    path = write("t", "A1\tO\nB2\tO\nend\tO\n")
    assert read_conll(path).words == [["A1", "B2", "end"]]
    assert read_conll(write("u", "7\tO\n10\tO\n")).words == [["7", "10"]]


def test_empty_words_and_words_with_spaces_are_kept_and_reported(write):
    path = write("btc", "a\tO\n\tO\nke s\tB-PER\n")
    with pytest.warns(UserWarning, match=r"btc: 1 words are empty \(line 2 is the first\)"):
        sentences = read_conll(path)
    assert sentences.words == [["a", "", "ke s"]]
    assert sentences.tags == [["O", "O", "B-PER"]]


NUMBERED = "1\tAda\tada\tNOUN\n2\tslept\tsleep\tVERB\n"


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("a\tO\n\nb\n", {}, r"line 3: every word's line must have .* 2\. Received 1"),
        ("a\tO\nb\tO\tx\n", {}, "line 2: .*Received 3"),
        ("a\tO\nb\t\n", {}, "line 2: the tag of 'b' is empty"),
        ("Hi\tO\n#London B-LOC\n", {}, r"line 2: .*Received 1: \['#London B-LOC'\]"),
        ("word\n", {}, "line 1: a line must hold a word and its tag"),
        ("", {}, "must hold words"),
        ("\n-DOCSTART- O\n\n", {}, "must hold words"),
        ("a\tO\n", {"tag_column": 2}, r"there are 2 columns, .* Received tag_column=2"),
        (NUMBERED, {}, r"line 2: .*'2', 'slept', 'sleep'.*word_column"),
        ("text\tlabel\na fine film\t1\nso dull\t0\n", {}, "a word and its tag .*'a fine film'"),
    ],
)
def test_wrong_files_and_columns_are_refused_by_file_and_line(write, text, options, message):
    with pytest.raises(ValueError, match=rf"t\.conll.*{message}"):
        read_conll(write("t.conll", text), **options)


def test_a_conllu_line_without_a_number_is_refused(write):
    path = write("t.conllu", "I\tI\tI\tPRON\tPRP\t_\t_\t0\troot\t_\n")
    with pytest.raises(ValueError, match=r"t\.conllu, line 1: the first field of CoNLL-U"):
        read_conll(path)


def test_tag_names_begin_with_o(write):
    train = TaggedSentences([["a", "b"]], [["I-X", "B-X"]])
    assert tag_names(train, [["O"], ["B-A"]]) == ("O", "B-A", "B-X", "I-X")
    assert tag_names([["VERB", "NOUN"]]) == ("NOUN", "VERB")


def test_taking_sentences_keeps_words_and_tags_together():
    sentences = TaggedSentences([["a"], ["b"], ["c"]], [["X"], ["Y"], ["Z"]])
    assert sentences.take([2, 0]) == TaggedSentences([["c"], ["a"]], [["Z"], ["X"]])
    assert sentences.take(slice(1)).tags == [["X"]]


def test_words_without_tags_are_read_if_that_is_allowed(write):
    path = write("words.conll", "Ada\nmet\n\nBob\n")
    found = read_conll(path, tag_column=1, may_lack_tags=True)
    assert found == TaggedSentences([["Ada", "met"], ["Bob"]], None)
    assert found.take([1]) == TaggedSentences([["Bob"]], None)
    assert tag_names(found, TaggedSentences([["a"]], [["X"]])) == ("X",)
    with pytest.raises(ValueError, match="line 1: a line must hold a word and its tag"):
        read_conll(path)


def test_the_first_line_with_a_tag_is_found(write):
    path = write("tags.conll", "0 O\nmet O\n\nBob 0\nAda 0\n")
    assert find_tag(path, "0") == 4
    assert find_tag(path, "B-PER") is None


def test_numbers_of_words_in_universal_ner_are_not_words(write):
    rows = ["# sent_id = 1", "1\tAda\tB-PER\t-\t-", "2\tslept\tO\t-\t-", "", "1\tRome\tB-LOC\t-\t-"]
    found = read_conll(write("x.iob2", "\n".join([*rows, ""])))
    assert found.words == [["Ada", "slept"], ["Rome"]]
    assert found.tags == [["B-PER", "O"], ["B-LOC"]]
    found = read_conll(write("y.iob2", NUMBERED), word_column=1, tag_column=3)
    assert found.tags == [["NOUN", "VERB"]]
