"""The commands of pre-training from flags to the last line, on a text small enough for seconds."""

import json
import math
import pathlib
import random
import re
import sys

import pytest

import bert_keras
from bert_keras.cli import make_pretraining_data as pretraining_data
from bert_keras.cli import pretrain as command
from bert_keras.cli import train_vocabulary as vocabulary
from bert_keras.corpora import PretrainingBatches, create_pretraining_data, read_manifest
from bert_keras.preprocessing import Masking
from bert_keras.training.training_log import read_log

LETTERS = "abcdefgh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *LETTERS]
TOKENIZER = bert_keras.WordPieceTokenizer(VOCABULARY)

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    generator = random.Random(0)
    documents = [
        "\n".join(
            " ".join(generator.choices(LETTERS, k=generator.randint(3, 9))) + " ."
            for _ in range(12)
        )
        for _ in range(12)
    ]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(documents), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def data(text, tmp_path_factory):
    """Returns a function that makes a folder of examples, once for each kind."""
    root = tmp_path_factory.mktemp("data")

    def make(name, length=16, tokenizer=TOKENIZER, source=text, **options):
        folder = root / name
        if not folder.exists():
            options = {"sequence_length": length, "sentences_per_line": True, **options}
            create_pretraining_data(str(source), tokenizer, str(folder), **options)
        return str(folder)

    return make


@pytest.fixture
def pretrain(tmp_path, capsys):
    """Returns a function that pre-trains by flags and gives the last line and the folder."""

    def run(output="output", **given):
        sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "max_sequence_length": 32}
        steps = {"num_steps": 4, "log_every": 2, "checkpoint_every": 2, "batch_size": 8}
        values = {**sizes, **steps, "output_dir": tmp_path / output, "tensorboard": False, **given}
        folders = ("data_dir", "heldout_dir")
        values |= {name: ",".join(values[name]) for name in folders if name in values}
        command.main([f"--{name}={value}" for name, value in values.items()])
        return json.loads(capsys.readouterr().out.splitlines()[-1]), tmp_path / output

    return run


def refused(pretrain, tmp_path, message, **given):
    """Checks that flags are refused before anything is trained."""
    with pytest.raises(ValueError, match=message):
        pretrain("refused", **given)
    assert not (tmp_path / "refused" / "metrics.jsonl").exists()


def test_data_of_any_phase_must_be_made_with_the_models_tokenizer(pretrain, data, tmp_path):
    other = bert_keras.WordPieceTokenizer([*VOCABULARY[:6], *LETTERS[::-1]])
    others = data("reversed", tokenizer=other)
    cased = data("cased", tokenizer=bert_keras.WordPieceTokenizer(VOCABULARY, lowercase=False))
    folder = data("plain")
    for given, name in [
        ({"data_dir": [folder, others]}, "vocabulary"),
        ({"data_dir": [folder], "heldout_dir": [others]}, "vocabulary"),
        ({"data_dir": [folder, cased]}, "normalizer (lowercase)"),
        ({"data_dir": [folder], "heldout_dir": [cased]}, "normalizer (lowercase)"),
    ]:
        refused(pretrain, tmp_path, re.escape(f"made with another {name}"), **given)


def test_faults_of_later_phases_are_told_before_the_first_step(pretrain, data, tmp_path):
    folder, long = data("plain"), data("long", 32)
    few = tmp_path / "few.txt"
    few.write_text("a b .\nc d .\n\ne f .\ng h .\n", encoding="utf-8")
    small = data("small", source=few)
    with pytest.raises(ValueError, match="--output_dir must be on this machine"):
        pretrain(output_dir="s3://bucket/run", data_dir=[folder])
    refused(pretrain, tmp_path, "must be a batch of examples", data_dir=[folder, small])
    message = "must fit the model's 16 positions"
    short = {"max_sequence_length": 16}
    refused(pretrain, tmp_path, message, data_dir=[folder, long], **short)
    refused(pretrain, tmp_path, message, data_dir=[folder], heldout_dir=[long], **short)


def test_all_data_must_have_one_objective(pretrain, data, tmp_path):
    folder, full = data("plain"), data("full", objective="full_sentences")
    order = data("order", objective="sentence_order")
    for given in (
        {"data_dir": [folder, order]},
        {"data_dir": [folder], "heldout_dir": [order]},
        {"data_dir": [folder], "heldout_dir": [full]},
        {"data_dir": [full, folder]},
    ):
        refused(pretrain, tmp_path, "must be made with one --objective", **given)
    refused(pretrain, tmp_path, "needs pairs", data_dir=[full], objective="both")
    results, output = pretrain(data_dir=[folder], heldout_dir=[full], objective="masked_lm")
    assert {"heldout_16_loss", "heldout_16_accuracy"} <= set(results)
    assert type(bert_keras.MaskedLM.from_preset(output / "final")) is bert_keras.MaskedLM
    pretrain("full", data_dir=[full])


def test_heldout_results_are_named_by_their_own_rows_and_kept_apart(pretrain, data, text):
    train, long = data("plain"), data("long", 32)
    again = data("again", 32, seed=1)
    results, _ = pretrain(data_dir=[train, long, long], shares="0.5,0.5,0", heldout_dir=[long])
    names = {name for name in results if name.endswith("perplexity")}
    assert names == {"heldout_32_masked_lm_perplexity"}
    results, output = pretrain("two", data_dir=[train, train], heldout_dir=[long, again])
    names = {name for name in results if name.endswith("perplexity")}
    assert names == {f"heldout_32{end}_masked_lm_perplexity" for end in ("", "_2")}
    # They are what the model that was saved scores, on each of the two.
    model = bert_keras.Pretraining.from_preset(output / "final")
    for name, folder in [("heldout_32", long), ("heldout_32_2", again)]:
        scores = model.evaluate(
            PretrainingBatches(folder, 5, shuffle=False), verbose=0, return_dict=True
        )
        for metric in ("masked_lm_perplexity", "next_sentence_accuracy"):
            assert results[f"{name}_{metric}"] == pytest.approx(scores[metric], rel=1e-4)


def test_heldout_losses_are_means_over_all_tokens_whatever_the_batches(pretrain, data):
    folder = data("plain")
    count = read_manifest(folder)["num_examples"]
    given = {"data_dir": [folder], "heldout_dir": [folder], "initializer_range": 0.5}
    first, _ = pretrain("a", **given)
    # The same model after the same steps, measured in batches of another size.
    for phase_batch in (7, count - 1):
        module = command
        model = bert_keras.Pretraining.from_preset(pathlib.Path(command.FLAGS.output_dir) / "final")
        phase = module.Phase(folder, folder, phase_batch, 0, 1)
        scores = module.evaluate(model, phase)
        for name, value in scores.items():
            assert value == pytest.approx(first[f"heldout_16_{name}"], rel=1e-4), name
        assert math.isclose(scores["masked_lm_loss"], math.log(scores["masked_lm_perplexity"]))


def test_a_causal_checkpoint_trains_masked_tokens_alone(pretrain, data, tmp_path):
    folder = data("plain")
    _, output = pretrain("causal", data_dir=[folder], causal=True)
    results, output = pretrain(
        "on", data_dir=[folder], heldout_dir=[folder], preset=output / "final"
    )
    assert "heldout_16_accuracy" in results
    model = bert_keras.MaskedLM.from_preset(output / "final")
    assert model.backbone.causal
    given = {"data_dir": [folder], "preset": output / "final", "objective": "both"}
    refused(pretrain, tmp_path, "needs a first token that sees the text", **given)


def test_replaced_tokens_leave_a_discriminator_and_a_generator(pretrain, data, tmp_path):
    folder = data("plain")
    given = {"data_dir": [folder], "objective": "replaced_tokens"}
    message = "trains two new models"
    refused(pretrain, tmp_path, message, **given, causal=True)
    refused(pretrain, tmp_path, message, **given, preset="bert_mini_en_gutenberg")
    results, output = pretrain(**given, heldout_dir=[folder], generator_size=0.5)
    assert {"heldout_16_detection_loss", "heldout_16_detection_auc"} <= set(results)
    detector = bert_keras.ReplacedTokenDetector.from_preset(output / "final")
    assert len(detector.is_replaced("a b c .")) == 4
    generator = bert_keras.MaskedLM.from_preset(output / "final" / "generator")
    assert (generator.backbone.hidden_dim, detector.backbone.hidden_dim) == (8, 16)


def test_rows_without_padding_train_the_same_model(pretrain, data):
    given = {"data_dir": [data("plain")], "heldout_dir": [data("plain")], "dropout": 0.0}
    given["attention_dropout"] = 0.0
    results = [pretrain(f"{flag}", **given, unpadded=flag)[0] for flag in (False, True)]
    for name in (name for name in results[0] if name.startswith("heldout_")):
        assert results[1][name] == pytest.approx(results[0][name], abs=1e-4), name


def test_masks_of_static_data_are_its_own(pretrain, data, tmp_path):
    masking = Masking(0.3, 0.7, 0.2, "whole_words")
    folder = data("static", masking=masking)
    given = {"data_dir": [folder], "heldout_dir": [folder]}
    for flag in ("mask_rate=0.15", "mask_strategy=spans", "max_predictions=3"):
        name, value = flag.split("=")
        message = f"keeps its masks. Received: --{name}"
        refused(pretrain, tmp_path, message, **given, **{name: value})
    _, output = pretrain(**given)
    model = bert_keras.Pretraining.from_preset(output / "final")
    assert model.masking.get_config() == masking.get_config()


def test_steps_between_lines_checkpoints_and_evaluations_are_kept(pretrain, data, tmp_path):
    folder = data("plain")
    given = {"data_dir": [folder], "heldout_dir": [folder], "num_steps": 8}
    _, output = pretrain(**given, log_every=8, checkpoint_every=4, evaluate_every=2)
    lines = read_log(output / "metrics.jsonl")
    assert [line["step"] for line in lines if "heldout_masked_lm_loss" in line] == [2, 4, 6, 8]
    assert [path.name for path in sorted((output / "checkpoints").iterdir())] == [
        "step_00000004",
        "step_00000008",
    ]
    message = "--num_steps must be a multiple of --gradient_accumulation_steps"
    refused(pretrain, tmp_path, message, data_dir=[folder], gradient_accumulation_steps=3)


def test_a_run_goes_on_by_settings_that_say_the_same_otherwise(pretrain, data, tmp_path):
    folder, long = data("plain"), data("long", 32)
    given = {"data_dir": [folder, long]}
    first, output = pretrain(shares="0.5,0.5", **given)
    assert first["tokens_per_second"] > 0
    again, _ = pretrain(shares="0.50,0.5", evaluate_every=2, learning_rate="0.0005", **given)
    # Nothing was trained, and what the run took is still known.
    assert again == first
    with pytest.raises(ValueError, match="shares"):
        pretrain(shares="0.75,0.25", **given)
    with pytest.raises(ValueError, match="learning_rate"):
        pretrain(shares="0.5,0.5", learning_rate="5e-4,5e-4", **given)
    pretrain("tuned", preset=output / "final", data_dir=[folder])
    moved = tmp_path / "moved"
    (output / "final").rename(moved)
    pretrain("tuned", preset=moved, data_dir=[folder])
    with pytest.raises(ValueError, match="dropout"):
        pretrain("tuned", preset=moved, data_dir=[folder], dropout=0.3)


def test_each_phase_may_have_a_rate_of_its_own(pretrain, data):
    steps = {"num_steps": 8, "log_every": 1, "shares": "0.5,0,0.5", "warmup": 0.5}
    given = {"data_dir": [data("plain"), data("plain"), data("long", 32)], **steps}
    _, output = pretrain(learning_rate="8e-4,1,4e-4", **given)
    # Of the batch behind each line; the second phase has no step.
    rates = [line["learning_rate"] for line in read_log(output / "metrics.jsonl")]
    assert rates == pytest.approx([4e-4, 8e-4, 4e-4, 0, 2e-4, 4e-4, 2e-4, 0])
    _, output = pretrain("one", learning_rate="8e-4", **given)
    rates = [line["learning_rate"] for line in read_log(output / "metrics.jsonl")]
    assert rates == pytest.approx([2e-4, 4e-4, 6e-4, 8e-4, 6e-4, 4e-4, 2e-4, 0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rate": "1e-3,1e-4"}, "--learning_rate must be one number from 0, or one for"),
        ({"learning_rate": "fast"}, r"--learning_rate must be one number.*Received: \['fast'\]"),
        ({"learning_rate": "-1"}, "--learning_rate must be one number"),
        ({"learning_rate": "nan"}, "--learning_rate must be one number"),
        ({"learning_rate": ""}, "--learning_rate must be one number"),
        ({"shares": "0.5,0.6"}, "--shares must be 1 numbers"),
        ({"shares": "half"}, "--shares must be 1 numbers"),
        ({"heldout_dir": ["a", "b"]}, "--heldout_dir takes one folder"),
        ({"causal": True, "objective": "both"}, "--objective both needs a first token"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(pretrain, data, tmp_path, given, message):
    refused(pretrain, tmp_path, message, data_dir=[data("plain")], **given)


@pytest.fixture
def run(capsys):
    """Returns a function that runs a command and gives the JSON of its last line."""

    def run_command(module, *arguments):
        module.main([*map(str, arguments)])
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run_command


def test_text_becomes_a_vocabulary_and_examples_by_flags(run, text, tmp_path):
    path = tmp_path / "new" / "vocab.txt"
    found = run(vocabulary, f"--input={text}", "--min_frequency=9", f"--output={path}")
    tokens = path.read_text(encoding="utf-8").splitlines()
    assert found["tokens"] == len(tokens) and {*VOCABULARY} <= {*tokens}
    given = [f"--vocabulary={path}", "--sequence_length=16", "--seed=3"]
    given += ["--sentences_per_line", f"--output_dir={tmp_path / 'data'}"]
    masks = ["--static_masking", "--mask_rate=0.3", "--mask_strategy=spans"]
    summary = run(pretraining_data, f"--input={text.parent}/*.txt", *given, *masks)
    manifest = read_manifest(tmp_path / "data")
    assert summary["num_examples"] == manifest["num_examples"] > 20
    assert summary["unknown_tokens"] == 0
    assert (manifest["seed"], manifest["sequence_length"]) == (3, 16)
    assert manifest["masking"]["rate"] == 0.3 and manifest["masking"]["strategy"] == "spans"


def test_the_folder_of_a_vocabulary_is_there_before_it_is_trained(run, text, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        run(vocabulary, "--input=missing", f"--output={tmp_path}/file/vocab.txt")
    with pytest.raises(FileNotFoundError, match="--input must name files"):
        run(vocabulary, "--input=missing", f"--output={tmp_path}/new/vocab.txt")
    assert (tmp_path / "new").is_dir()


@pytest.mark.once
def test_the_options_of_a_runner_are_those_of_its_own(run, text, data, tmp_path):
    given = [f"--input={text}", f"--vocabulary={data('plain')}", f"--output_dir={tmp_path / 'x'}"]
    assert pretraining_data.runner_option("num_cpus=2") == ("num_cpus", 2)
    assert pretraining_data.runner_option("address=ray://a=b:1") == ("address", "ray://a=b:1")
    with pytest.raises(ValueError, match=r"--runner_option takes name=value. Received: 'num_cpus'"):
        run(pretraining_data, *given, "--runner_option=num_cpus")
    with pytest.raises(ValueError, match=r"Received: \{'num_cpus': 2\} for 'local'"):
        run(pretraining_data, *given, "--runner_option=num_cpus=2")


def segment(sentence):
    return [sentence[:1], sentence[1:]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input=x", "--mask_rate=0.3"], "for --static_masking.*Received: --mask_rate"),
        (["--input=x", "--max_predictions=3"], "Received: --max_predictions"),
        (["--records=x", "--seed=1"], "as they are. Received: --seed"),
        (["--records=x", "--runner=ray"], "as they are. Received: --runner"),
        (["--records=x", "--sequence_length=64"], "Received: --sequence_length"),
        (["--records=x", "--static_masking"], "Received: --static_masking"),
    ],
)
def test_flags_that_would_change_nothing_are_refused(run, arguments, message):
    with pytest.raises(ValueError, match=message):
        run(pretraining_data, "--vocabulary=v", "--output_dir=o", *arguments)


def test_a_word_segmenter_is_named_by_its_module(run, text, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "segmenters", sys.modules[__name__])
    given = [f"--input={text}", f"--vocabulary={data('plain')}", f"--output_dir={tmp_path / 'x'}"]
    run(pretraining_data, *given, "--word_segmenter=segmenters:segment")
    segmenter = read_manifest(tmp_path / "x")["reading"]["word_segmenter"]
    assert segmenter == f"{__name__}:segment"
