import functools
import gzip
import itertools
import multiprocessing
import os
import random
import signal
import time
import tracemalloc

import numpy as np
import pytest
from checks import refused
from files import contents

from bert_keras.corpora import (
    create_pretraining_data,
    pretraining_data,
    read_documents,
    read_manifest,
    read_shard,
)
from bert_keras.tokenizers import WordPieceTokenizer

WORDS = ["the", "a", "old", "young", "man", "woman", "sea", "ship", "sails", "went", "came", "saw"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", *".,天地人"]
TOKENIZER = WordPieceTokenizer(VOCABULARY)
NO_WORDS = WordPieceTokenizer([*VOCABULARY[:5], *"xyz"])


def words_of(sentence):
    """A word segmenter for Chinese: two characters a word."""
    return [sentence[start : start + 2] for start in range(0, len(sentence), 2)]


def words_one_by_one(sentence):
    """The same as a generator, as some segmenters are."""
    yield from words_of(sentence)


def first_word(sentence):
    """A word segmenter that loses text."""
    return words_of(sentence)[:1]


def write_corpus(folder, num_documents=12):
    generator = random.Random(0)
    documents = []
    for _ in range(num_documents):
        sentences = [
            " ".join(generator.choices(WORDS, k=generator.randint(3, 9))).capitalize() + "."
            for _ in range(generator.randint(2, 30))
        ]
        documents.append("\n".join(sentences))
    folder.mkdir(exist_ok=True)
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return folder / "corpus.txt"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def create(corpus, folder, **options):
    options = {"sequence_length": 32, "examples_per_shard": 20} | options
    tokenizer = options.pop("tokenizer", TOKENIZER)
    return create_pretraining_data(corpus, tokenizer, str(folder), **options)


def all_rows(folder, name="token_ids"):
    rows = []
    for shard in read_manifest(folder)["shards"]:
        arrays = read_shard(os.path.join(folder, shard["file"]))
        rows += np.split(np.array(arrays[name]), arrays["offsets"][1:-1])
    return [row.tolist() for row in rows]


def test_a_folder_holds_shards_tokenizer_and_manifest(corpus, tmp_path):
    manifest = create(corpus, tmp_path)
    assert manifest == read_manifest(tmp_path)
    shards = {shard["file"]: shard["num_examples"] for shard in manifest["shards"]}
    assert len(shards) > 2 and sum(shards.values()) > 40
    others = {"manifest.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert {*os.listdir(tmp_path)} == others | {*shards}
    assert manifest["counts"]["documents"] == 12
    assert WordPieceTokenizer.load(tmp_path).vocabulary == VOCABULARY
    documents = read_documents(corpus, documents="blank_line", passages="line")
    texts = [text for document in documents for text in document]
    assert manifest["counts"]["sentences"] == len(texts)
    assert manifest["counts"]["tokens"] == len(TOKENIZER.flat_ids(texts)[0])
    rows = all_rows(tmp_path)
    assert manifest["num_examples"] == len(rows)
    mean = np.mean(list(map(len, rows)))
    assert np.isclose(manifest["statistics"]["mean_length"], mean, atol=1e-3)
    assert all(row[0] == 2 and row[-1] == 3 and row.count(3) == 2 for row in rows)


def test_sentences_may_be_split_or_stand_one_a_line(corpus, tmp_path):
    split = create(corpus, tmp_path / "split")
    lines = create(corpus, tmp_path / "lines", sentences_per_line=True)
    assert split["counts"] == lines["counts"]
    assert all_rows(tmp_path / "split") == all_rows(tmp_path / "lines")


def test_the_number_of_processes_changes_no_byte(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("bert_keras.corpora.tokenized_corpus.CHARACTERS_PER_TASK", 300)
    monkeypatch.setattr(pretraining_data, "TOKENS_PER_TASK", 100)
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # Which processes that import Keras have soonest.
    options = {"duplicates": 2, "examples_per_shard": 8}
    manifest = create(corpus, tmp_path / "one", num_workers=1, **options)
    # One of two is killed after the first shard, when five are asked for; another one goes on.
    assert len(manifest["shards"]) > 5
    with pytest.raises(ChildProcessError, match="the same call, or command, continues"):
        create(corpus, tmp_path / "two", num_workers=2, progress=kill_a_worker, **options)
    assert not (tmp_path / "two" / "manifest.json").exists()
    create(corpus, tmp_path / "two", num_workers=1, **options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_six_times_the_text_takes_no_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("bert_keras.corpora.tokenized_corpus.CHARACTERS_PER_TASK", 3000)
    monkeypatch.setattr(pretraining_data, "TOKENS_PER_TASK", 1000)
    peaks = []
    for num_documents in (50, 300):
        folder = tmp_path / str(num_documents)
        text = write_corpus(folder, num_documents)
        tracemalloc.start()
        create(text, folder / "out", examples_per_shard=500)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def kill_a_worker(message):
    if message.endswith("shards written"):
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
        while multiprocessing.active_children():  # The pool ends the other one.
            time.sleep(0.01)


def test_a_run_may_be_killed_at_each_step(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("bert_keras.corpora.tokenized_corpus.CHARACTERS_PER_TASK", 1000)
    monkeypatch.setattr(pretraining_data, "TOKENS_PER_TASK", 300)
    steps = []
    create(corpus, tmp_path / "whole", progress=steps.append)
    num_steps = num_kills = 0
    while is_killed_at_a_step(corpus, tmp_path / "killed", num_steps):
        num_steps, num_kills = num_steps + 1, num_kills + 1
    # Shards that are there are reported once more.
    assert 5 < num_kills <= len(steps)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def is_killed_at_a_step(corpus, folder, number):
    """Makes data in a process that is killed when it reports the step `number`."""
    steps = []

    def progress(message):
        steps.append(message)
        if len(steps) > number:
            os.kill(os.getpid(), signal.SIGKILL)

    context, options = multiprocessing.get_context("fork"), {"progress": progress}
    child = context.Process(target=create, args=(corpus, folder), kwargs=options)
    child.start()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


def test_seeds_and_duplicates_give_other_examples(corpus, tmp_path):
    first = create(corpus, tmp_path / "0")
    other = create(corpus, tmp_path / "1", seed=1)
    twice = create(corpus, tmp_path / "2", duplicates=2)
    assert sorted(all_rows(tmp_path / "0")) != sorted(all_rows(tmp_path / "1"))
    assert abs(twice["num_examples"] / first["num_examples"] - 2) < 0.3
    assert other["fingerprint"] != first["fingerprint"]


class Killed(Exception):
    pass


def killed_after(count, function, calls):
    """Returns a function that notes its calls, and stops the process after so many."""

    def call(*arguments):
        if len(calls) == count:
            raise Killed
        calls.append(arguments)
        return function(*arguments)

    return call


def test_a_killed_run_continues_where_it_stopped(corpus, tmp_path, monkeypatch):
    killed, write, written = tmp_path / "killed", pretraining_data.write_shard, []
    with monkeypatch.context() as patches, pytest.raises(Killed):
        patches.setattr(pretraining_data, "write_shard", killed_after(2, write, []))
        create(corpus, killed)
    with pytest.raises(FileNotFoundError, match=r"must hold manifest\.json"):
        read_manifest(killed)
    (killed / ".half.partial").mkdir()  # Of another program: it stays.
    # What is damaged meanwhile is made again.
    damaged = sorted(killed.glob("examples-*"))[1]
    damaged.write_bytes(b"x" + damaged.read_bytes()[1:])
    with monkeypatch.context() as patches:
        patches.setattr(pretraining_data, "write_shard", killed_after(100, write, written))
        patches.setattr("bert_keras.corpora.tokenized_corpus.tokenize_documents", None)
        patches.setattr(pretraining_data, "_cut_documents", None)
        manifest = create(corpus, killed)
    names = [shard["file"] for shard in manifest["shards"]]
    assert [os.path.basename(path) for path, _ in written] == names[1:]
    (killed / ".half.partial").rmdir()
    create(corpus, tmp_path / "whole")
    assert contents(killed) == contents(tmp_path / "whole")


def test_a_finished_folder_is_left_alone_and_another_is_not_overwritten(corpus, tmp_path):
    manifest = create(corpus, tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert create(corpus, tmp_path) == manifest
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
    with pytest.raises(ValueError, match="which holds other data"):
        create(corpus, tmp_path, seed=1)


def test_leftovers_of_killed_runs_are_removed(corpus, tmp_path, monkeypatch):
    folder = tmp_path / "killed"
    # Between a shard and its note, with other settings but shards of the same names; between the
    # manifest and the end.
    for name, calls, options in [("file_sha256", 2, {"seed": 1}), ("_remove_leftovers", 0, {})]:
        with monkeypatch.context() as patches:
            patches.setattr(pretraining_data, name, killed_after(calls, lambda *_: "0", []))
            with pytest.raises(Killed):
                create(corpus, folder, **options)
        partial = folder / ".examples-00000-of-00009.safetensors.0123.partial"
        partial.mkdir(exist_ok=True)
        (partial / "examples-00000-of-00009.safetensors").write_bytes(b"half")
    assert (folder / ".unfinished").exists()
    create(corpus, folder)
    create(corpus, tmp_path / "whole")
    assert contents(folder) == contents(tmp_path / "whole")


def test_gzip_files_folders_and_a_document_a_file(write, tmp_path):
    for name in ("a.txt.gz", "b.txt.gz"):
        path = write(f"books/{name}", gzip.compress(b"The man. A ship.\n\nThe sea.\n"))
    manifest = create(path.parent, tmp_path / "out", documents="file")
    assert manifest["counts"]["documents"] == 2
    assert manifest["input"]["files"] == ["a.txt.gz", "b.txt.gz"]


@pytest.mark.parametrize("objective", ["sentence_order", "full_sentences"])
def test_other_objectives(corpus, tmp_path, objective):
    manifest = create(corpus, tmp_path, objective=objective)
    rows = all_rows(tmp_path)
    arrays = read_shard(tmp_path / manifest["shards"][0]["file"])
    if objective == "full_sentences":
        assert "is_random_next" not in arrays
        num_tokens = sum(1 for row in rows for id in row if id > 4)
        assert num_tokens == manifest["counts"]["tokens"]
    else:
        assert 0.2 < manifest["statistics"]["not_next_share"] < 0.8


def test_a_word_segmenter_tells_where_words_begin(write, tmp_path):
    path = write("chinese.txt", "天地人。人地天天。\n\n天人地人。地地。")
    manifest = create(path, tmp_path / "out", word_segmenter=words_of)
    rows, starts = (all_rows(tmp_path / "out", name) for name in ("token_ids", "word_starts"))
    for row, flags in zip(rows, starts, strict=True):
        pairs = list(zip(row, flags, strict=True))
        assert all(flag for id, flag in pairs if id in (2, 3))
        begins = [flag for id, flag in pairs if id not in (2, 3)]
        # 天地|人。 and 人地|天天|。: the second character of a word never begins one.
        assert not all(begins) and all(a or b for a, b in itertools.pairwise(begins))
    assert manifest["reading"]["word_segmenter"].endswith(":words_of")
    create(path, tmp_path / "generated", word_segmenter=words_one_by_one)
    assert all_rows(tmp_path / "generated") == all_rows(tmp_path / "out")
    with pytest.raises(ValueError, match=r"must return all of a sentence.*天地"):
        create(path, tmp_path / "lost", word_segmenter=first_word)


def test_empty_and_one_sentence_documents_are_counted(write, tmp_path):
    path = write("a.txt", "The man.\n\n\u200b\n\nA ship. The sea.\n\n \n\nA woman.")
    counts = create(path, tmp_path / "out")["counts"]
    assert (counts["documents"], counts["empty_documents"]) == (3, 1)
    assert counts["one_sentence_documents"] == 2
    ordered = create(path, tmp_path / "order", objective="sentence_order")
    assert ordered["counts"]["skipped_sentences"] == 2


def test_a_line_of_a_megabyte_is_cut_into_sentences(write, tmp_path):
    path = write("a.txt", "the old man " * 90_000 + "\n\nA ship. The sea.\n")
    manifest = create(path, tmp_path / "out", examples_per_shard=16384)
    assert manifest["counts"]["cut_sentences"] == 1
    assert manifest["counts"]["tokens"] == 270_006
    assert manifest["num_examples"] > 270_000 / 512


LATIN = "The man. A ship.\n\nThe s\xe9a.\n".encode("latin-1")
FOREIGN = "Der Mann. Ein Schiff.\n\nDie See.\n"


@pytest.fixture
def empty(tmp_path):
    """A folder for data, into which the test must write no file."""
    yield tmp_path / "out"
    assert not list((tmp_path / "out").glob("*"))


@refused(
    (" \n\n", {}, "must have tokens to train on"),
    ("The man.\n\nA ship.\n", {"objective": "sentence_order"}, "at least one example"),
    ("The man. A ship.", {}, "needs at least two documents"),
    (LATIN, {}, r"a\.txt, line 3, byte 23: 0xe9 is not UTF-8"),
    (FOREIGN, {"tokenizer": NO_WORDS}, r"100\.0% of the text's"),
)
def test_text_that_gives_no_examples_is_refused_and_leaves_no_file(write, empty, text, options):
    create(write("a.txt", text), empty, **options)


@pytest.mark.filterwarnings("error")
def test_a_warning_says_how_much_text_is_unknown_if_any_is(corpus, write, tmp_path):
    create(corpus, tmp_path / "known")
    message = r"66\.7% of the text's 9 tokens are not in the vocab"
    with pytest.warns(UserWarning, match=message):
        assert create(write("a.txt", FOREIGN), tmp_path / "out")["num_examples"]


def test_special_tokens_in_the_text_are_text(write, tmp_path):
    path = write("a.txt", ("The [SEP] man [MASK] went [PAD] a [CLS].\n" * 5 + "\n") * 6)
    create(path, tmp_path / "out")
    for row in all_rows(tmp_path / "out"):
        assert row[0] == 2 and row.count(2) == 1 and row.count(3) == 2
        assert 0 not in row and 4 not in row
    # The tokenizer in the folder is the one that made the data.
    saved = WordPieceTokenizer.load(tmp_path / "out")
    assert saved.tokenize("[SEP]") == ["[SEP]"]
    assert (saved.settings, saved.get_config()) == (TOKENIZER.settings, TOKENIZER.get_config())


WITHOUT_MASK = [token for token in VOCABULARY if token != "[MASK]"]


@refused(
    ({"objective": "nsp"}, "`objective` must be one of"),
    ({"duplicates": 0}, "`duplicates` must be an int from 1"),
    ({"duplicates": 2, "objective": "full_sentences"}, "repeat the same rows"),
    ({"documents": "page"}, "`documents` must be one of"),
    ({"sequence_length": 4}, "must hold 3 special tokens"),
    ({"sequence_length": 4, "objective": "sentence_order"}, "must hold 3 special tokens"),
    ({"sequence_length": 32.0}, "`sequence_length` must be an int"),
    ({"short_probability": 7}, "`short_probability` .* Received: 7"),
    ({"random_probability": -1}, "`random_probability` .* Received: -1"),
    ({"word_segmenter": lambda text: [text]}, "its own name in a module"),
    ({"word_segmenter": functools.partial(words_of)}, "its own name in a module"),
    ({"tokenizer": WordPieceTokenizer(WITHOUT_MASK)}, r"\[MASK\]"),
    ({"seed": -1}, "`seed` must be"),
    ({"seed": "1"}, "`seed` must be"),
    ({"short_per": "corpus"}, "`short_per` must be"),
)
def test_wrong_arguments_are_refused_before_any_work(corpus, empty, options):
    create(corpus, empty, **options)
