"""The commands of pre-training, from flags to the last line, on a text small enough for seconds."""

import json
import math
import shutil
import sys

import pytest
from absl import flags
from checks import refused

import bert_keras
from bert_keras.cli import make_pretraining_data, options, pretrain, train_vocabulary
from bert_keras.corpora import PretrainingBatches, create_pretraining_data, read_manifest
from bert_keras.training.training_log import read_log

LETTERS = "abcdefgh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *LETTERS]
TOKENIZER = bert_keras.WordPieceTokenizer(VOCABULARY)
REVERSED = bert_keras.WordPieceTokenizer([*VOCABULARY[:6], *LETTERS[::-1]])
CASED = bert_keras.WordPieceTokenizer(VOCABULARY, lowercase=False)
# Folders of examples by name: the arguments that make them.
KINDS = {
    "plain": {},
    "long": {"sequence_length": 32},
    "again": {"sequence_length": 32, "seed": 1},
    "reversed": {"tokenizer": REVERSED},
    "cased": {"tokenizer": CASED},
    "full": {"objective": "full_sentences"},
    "order": {"objective": "sentence_order"},
}
pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def text(documents_of_letters):
    """A text file of twelve documents, next to one with two short documents."""
    few = documents_of_letters.with_name("few.text")
    few.write_text("a b .\nc d .\n\ne f .\ng h .\n")
    return documents_of_letters


@pytest.fixture(scope="module")
def data(text, tmp_path_factory):
    """Returns a function from a name in `KINDS`, or "few", to its folder, which is made once."""
    root = tmp_path_factory.mktemp("data")

    def make(name):
        folder = root / name
        if not folder.exists():
            values = {"sequence_length": 16, "tokenizer": TOKENIZER} | KINDS.get(name, {})
            source = text.with_name("few.text") if name == "few" else text
            create_pretraining_data(source, output_dir=folder, sentences_per_line=True, **values)
        return str(folder)

    return make


@pytest.fixture
def run(data, tmp_path, capsys):
    """Returns a function that pre-trains and returns the last line's results and the folder."""

    def run_command(output="output", **values):
        sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "max_sequence_length": 32}
        steps = {"num_steps": 4, "log_every": 2, "checkpoint_every": 2, "batch_size": 8}
        values = {**sizes, **steps, "output_dir": tmp_path / output, **values}
        for name in ("data_dir", "heldout_dir"):
            if name in values:
                values[name] = ",".join(map(data, values[name].split(",")))
        run_command.arguments = [f"--{name}={value}" for name, value in values.items()]
        pretrain.main(run_command.arguments)
        return json.loads(capsys.readouterr().out.splitlines()[-1]), tmp_path / output

    return run_command


SHARES = "--shares must be 1 numbers"
ONE_OBJECTIVE = "must be made with one --objective"
POSITIONS = "must fit the model's 16 positions"


@pytest.fixture
def no_steps(tmp_path):
    """The test must end before the first step."""
    yield
    assert not (tmp_path / "output" / "metrics.jsonl").exists()


@pytest.mark.usefixtures("no_steps")
@refused(
    ("plain", "", {"shares": "0.5,0.6"}, SHARES),
    ("plain", "", {"shares": "half"}, "shares=half"),
    ("plain", "plain,long", {}, "--heldout_dir takes one folder"),
    ("plain", "", {"gradient_accumulation_steps": 3}, "--num_steps must be a multiple of --gr"),
    ("plain", "", {"preset": "x", "objective": "replaced_tokens"}, "trains two new models"),
    ("plain,order", "", {}, ONE_OBJECTIVE),
    ("plain", "order", {}, ONE_OBJECTIVE),
    ("plain", "full", {}, ONE_OBJECTIVE),
    ("full,plain", "", {}, ONE_OBJECTIVE),
    ("plain,reversed", "", {}, r"made with another vocabulary.*--vocabulary=.*plain\."),
    ("plain", "reversed", {}, "made with another vocabulary"),
    ("plain,cased", "", {}, "made with another normalizer"),
    ("plain", "cased", {}, "made with another normalizer"),
    ("plain,few", "", {}, "There must be .* examples or more"),
    ("plain,long", "", {"max_sequence_length": 16}, POSITIONS),
    ("plain", "long", {"max_sequence_length": 16}, POSITIONS),
    error=(ValueError, flags.Error),
)
def test_flags_and_data_of_all_phases_are_refused_before_the_first_step(
    run, data_dir, heldout_dir, values
):
    folders = {"data_dir": data_dir} | ({"heldout_dir": heldout_dir} if heldout_dir else {})
    run(**folders, **values)


def test_rows_of_full_sentences_train_masked_tokens(run):
    results, output = run(data_dir="plain", heldout_dir="full", objective="masked_lm")
    assert {"heldout_16_loss", "heldout_16_accuracy"} <= set(results)
    assert type(bert_keras.MaskedLM.from_preset(output / "final")) is bert_keras.MaskedLM
    run("full", data_dir="full")


def test_heldout_results_are_named_by_the_length_of_their_rows(run, data):
    phases = [pretrain.Phase(data(name), data("long"), 8, 0, 4) for name in ("plain", "long")]
    assert [*pretrain.name_heldout(phases)] == ["heldout_32"]
    results, output = run("two", data_dir="plain,plain", heldout_dir="long,again")
    names = {name for name in results if name.endswith("perplexity")}
    assert names == {f"heldout_32{end}_masked_lm_perplexity" for end in ("", "_2")}
    # They are the scores of the saved model on each of the two.
    model = bert_keras.Pretraining.from_preset(output / "final")
    for name, kind in [("heldout_32", "long"), ("heldout_32_2", "again")]:
        batches = PretrainingBatches(data(kind), 5, shuffle=False)
        scores = model.evaluate(batches, verbose=0, return_dict=True)
        for metric in ("masked_lm_perplexity", "next_sentence_accuracy"):
            assert results[f"{name}_{metric}"] == pytest.approx(scores[metric], rel=1e-4)


def test_heldout_losses_are_means_over_all_tokens_whatever_the_batches(run, data):
    folder, sizes = data("plain"), {"num_steps": 8, "initializer_range": 0.5}
    every = {"log_every": 8, "checkpoint_every": 4, "evaluate_every": 2}
    first, output = run(data_dir="plain", heldout_dir="plain", **sizes, **every)
    lines = read_log(output / "metrics.jsonl")
    assert [line["step"] for line in lines if "heldout_masked_lm_loss" in line] == [2, 4, 6, 8]
    steps = [path.name for path in sorted((output / "checkpoints").iterdir())]
    assert steps == ["step_00000004", "step_00000008"]
    values, _ = options.parse("pretrain", "", pretrain.GROUPS, run.arguments)
    # The same model after the same steps, measured with other batch sizes.
    for batch_size in (7, read_manifest(folder)["num_examples"] - 1):
        model = bert_keras.Pretraining.from_preset(output / "final")
        phase = pretrain.Phase(folder, folder, batch_size, 0, 1)
        scores = pretrain.evaluate(values, model, phase)
        for name, value in scores.items():
            assert value == pytest.approx(first[f"heldout_16_{name}"], rel=1e-4), name
        assert math.isclose(scores["masked_lm_loss"], math.log(scores["masked_lm_perplexity"]))


def test_a_causal_checkpoint_trains_masked_tokens_only(run, tmp_path):
    backbone = bert_keras.BertBackbone(TOKENIZER.vocabulary_size, 1, 2, 16, 32, causal=True)
    backbone.save_to_preset(tmp_path / "causal")
    TOKENIZER.save(tmp_path / "causal")
    folders = {"data_dir": "plain", "heldout_dir": "plain", "preset": tmp_path / "causal"}
    results, output = run(**folders)
    assert "heldout_16_accuracy" in results
    assert bert_keras.MaskedLM.from_preset(output / "final").backbone.causal


def test_replaced_tokens_train_a_discriminator_and_a_generator(run):
    folders = {"data_dir": "plain", "heldout_dir": "plain"}
    results, output = run(**folders, objective="replaced_tokens", generator_size=0.5)
    assert {"heldout_16_detection_loss", "heldout_16_detection_auc"} <= set(results)
    detector = bert_keras.ReplacedTokenDetector.from_preset(output / "final")
    assert len(detector.is_replaced("a b c .")) == 4
    generator = bert_keras.MaskedLM.from_preset(output / "final" / "generator")
    assert (generator.backbone.hidden_dim, detector.backbone.hidden_dim) == (8, 16)


def test_a_run_continues_with_its_settings_alone(run, tmp_path):
    first, output = run(data_dir="plain,long", shares="0.5,0.5")
    assert first["tokens_per_second"] > 0
    # Nothing is trained, and the speed of the run is still known.
    assert run(data_dir="plain,long", shares="0.5,0.5", learning_rate="0.0005")[0] == first
    with pytest.raises(ValueError, match="shares"):
        run(data_dir="plain,long", shares="0.75,0.25")
    with pytest.raises(ValueError, match="learning_rate"):
        run(data_dir="plain,long", shares="0.5,0.5", learning_rate="4e-4")
    run("tuned", preset=output / "final", data_dir="plain")
    moved = tmp_path / "moved"
    (output / "final").rename(moved)
    run("tuned", preset=moved, data_dir="plain")
    with pytest.raises(ValueError, match="dropout"):
        run("tuned", preset=moved, data_dir="plain", dropout=0.3)


def test_one_rate_rises_and_falls_over_all_phases(run):
    # The second phase has no steps. A line of the log has the rate of its batch.
    steps = {"num_steps": 8, "log_every": 1, "shares": "0.5,0,0.5", "warmup": 0.5}
    _, output = run(data_dir="plain,plain,long", learning_rate="8e-4", **steps)
    rates = [line["learning_rate"] for line in read_log(output / "metrics.jsonl")]
    assert rates == pytest.approx([2e-4, 4e-4, 6e-4, 8e-4, 6e-4, 4e-4, 2e-4, 0])


def test_a_killed_run_continues_as_if_it_had_not_been(run):
    values = {"data_dir": "plain,long", "heldout_dir": "plain", "num_steps": 6, "log_every": 1}
    first, output = run(**values)
    lines = read_log(output / "metrics.jsonl")
    shutil.rmtree(output / "checkpoints" / "step_00000006")
    again, _ = run(**values)
    found = read_log(output / "metrics.jsonl")
    for name in ("seconds", "tokens_per_second"):
        del first[name], again[name]
        for line in (*found, *lines):
            line.pop(name, None)
    assert (again, found) == (first, lines)


# Vocabularies and data


@pytest.fixture
def last_line(capsys):
    """Returns a function that runs a command and returns the JSON of its last line."""

    def run_command(module, *arguments):
        module.main([*map(str, arguments)])
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run_command


def test_text_becomes_a_vocabulary_and_examples(last_line, text, tmp_path):
    path = tmp_path / "new" / "vocab.txt"
    found = last_line(train_vocabulary, f"--input={text}", "--min_frequency=9", f"--output={path}")
    tokens = path.read_text(encoding="utf-8").splitlines()
    assert found["tokens"] == len(tokens) and {*VOCABULARY} <= {*tokens}
    arguments = [f"--input={text.parent}/*.txt", f"--vocabulary={path}", "--sequence_length=16"]
    arguments += ["--seed=3", "--sentences_per_line", f"--output_dir={tmp_path / 'data'}"]
    summary = last_line(make_pretraining_data, *arguments)
    manifest = read_manifest(tmp_path / "data")
    assert summary["num_examples"] == manifest["num_examples"] > 20
    assert summary["unknown_tokens"] == 0
    assert (manifest["seed"], manifest["sequence_length"]) == (3, 16)


def test_the_vocabulary_may_be_that_of_a_checkpoint(last_line, text, tmp_path):
    preset, output = "bert_mini_en_gutenberg", tmp_path / "data"
    arguments = [f"--vocabulary={preset}", "--sequence_length=16", f"--output_dir={output}"]
    last_line(make_pretraining_data, f"--input={text}", *arguments)
    tokenizers = (bert_keras.Tokenizer.load(output), bert_keras.Tokenizer.from_preset(preset))
    assert tokenizers[0].vocabulary == tokenizers[1].vocabulary


def test_the_folder_of_a_vocabulary_is_made_before_training(last_line, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        last_line(train_vocabulary, "--input=missing", f"--output={tmp_path}/file/vocab.txt")
    with pytest.raises(FileNotFoundError, match=r"must be in files.* missing"):
        last_line(train_vocabulary, "--input=missing", f"--output={tmp_path}/new/vocab.txt")
    assert (tmp_path / "new").is_dir()


@refused(
    ([], "--input=None: Pass it. Text files"),
    (["--input=x", "--output_dir="], "must be in files"),
    (["--input=TEXT", "--word_segmenter=jieba"], "must be module:function. Received: 'jieba'"),
    error=(ValueError, FileNotFoundError, flags.Error),
)
def test_wrong_options_are_refused(last_line, text, data, tmp_path, arguments):
    arguments = [argument.replace("TEXT", str(text)) for argument in arguments]
    output = f"--output_dir={tmp_path / 'x'}"
    last_line(make_pretraining_data, f"--vocabulary={data('plain')}", output, *arguments)


def segment(sentence):
    return [sentence[:1], sentence[1:]]


def test_a_word_segmenter_is_named_by_its_module(last_line, text, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "segmenters", sys.modules[__name__])
    arguments = [f"--input={text}", f"--vocabulary={data('plain')}"]
    arguments += [f"--output_dir={tmp_path / 'x'}", "--word_segmenter=segmenters:segment"]
    last_line(make_pretraining_data, *arguments)
    segmenter = read_manifest(tmp_path / "x")["reading"]["word_segmenter"]
    assert segmenter == f"{__name__}:segment"
