r"""Pre-train with masked tokens and next sentences, from random weights or from a checkpoint.

    bert-keras pretraining-data --input books --vocabulary vocab.txt \
        --output_dir data/train
    bert-keras pretrain --data_dir data/train --heldout_dir data/heldout \
        --num_layers 4 --hidden_dim 256 --num_heads 4 --num_steps 10000 --output_dir pretrained
    bert-keras pretrain --data_dir my_texts --preset bert_base_en_uncased --num_steps 2000

A model with random weights is a BERT with the tokenizer of the data. A checkpoint may be of any
family. Without a pooler or without a second segment, as in RoBERTa and DistilBERT, it trains with
masked tokens only. --objective replaced_tokens trains an ELECTRA; its generator is the preset
OUTPUT_DIR/final/generator.

After a kill the same command continues, with the same losses as an uninterrupted run. Two folders
in --data_dir, with rows of 128 and of 512 tokens, are the two phases of the paper. More are
possible, such as a first one with 32 tokens, in which a small model learns attention sooner.
The model is the preset OUTPUT_DIR/final, the log is OUTPUT_DIR/metrics.jsonl, and the last line
printed is JSON. Its seconds count all training steps, before and after a kill. The environment
variable KERAS_BACKEND selects the backend.
"""

import hashlib
import json
import math
import os
from typing import NamedTuple

import keras

import bert_keras
from bert_keras import distribution, plots, training
from bert_keras.checks import refuse_options
from bert_keras.cli import devices
from bert_keras.cli.options import REQUIRED, TRACEBACK, Option, parse
from bert_keras.corpora import PretrainingBatches, read_manifest
from bert_keras.engine.malloc import keep_freed_memory
from bert_keras.preprocessing.masking import STRATEGIES, Masking

MODELS = {
    "auto": bert_keras.Pretraining,
    "masked_lm": bert_keras.MaskedLM,
    "span_boundary": bert_keras.SpanBoundary,
    "replaced_tokens": bert_keras.ReplacedTokenDetection,
}
OPTIMIZERS = {"adamw": training.AdamW, "lamb": training.Lamb}
MASKING = (
    Option("mask_rate", float, 0.15, "Share of the tokens to predict."),
    Option("mask_share", float, 0.8, "Share of these replaced by [MASK]."),
    Option("random_share", float, 0.1, "Share of these replaced by a random token."),
    Option("mask_strategy", STRATEGIES, "pieces", "What is masked as a unit."),
    Option("max_predictions", int, None, "Most predictions in a row; by default by its length."),
)
DATA = (
    Option("data_dir", list, REQUIRED, "Folder of examples, or one for each phase."),
    Option("heldout_dir", list, [], "Folder to measure on, or one for each phase."),
    Option("shares", [float], None, "Share of the steps in each phase; for two 0.9,0.1.", 0.0),
    Option(
        "objective",
        tuple(MODELS),
        "auto",
        "auto adds next sentences to masked_lm if the data has pairs and the model can compare "
        "them. span_boundary is SpanBERT's, for --mask_strategy spans. replaced_tokens is "
        "ELECTRA's, from random weights, in the paper with --mask_share 0.85 --random_share 0.",
    ),
    Option("generator_size", float, 0.25, "Share of the sizes below for a generator.", 0.0, 1.0),
    *MASKING,
)
MODEL = (
    Option("preset", str, None, "Checkpoint to start from, instead of the sizes below."),
    Option("num_layers", int, 4, "Encoder layers."),
    Option("num_heads", int, 4, "Attention heads."),
    Option("hidden_dim", int, 256, "Width of the hidden states."),
    Option("intermediate_dim", int, None, "Width in the feed-forward layers; 4 * hidden_dim."),
    Option("max_sequence_length", int, 512, "Positions."),
    Option("activation", str, "gelu", "gelu or gelu_tanh."),
    Option("dropout", float, 0.1, "Rate in hidden layers. A preset has its own."),
    Option("attention_dropout", float, 0.1, "Rate in attention. A preset has its own."),
    Option("initializer_range", float, 0.02, "Deviation of the initial weights.", 0.0),
    Option("dtype", str, "float32", "float32, mixed_bfloat16 or mixed_float16."),
    Option("remat", bool, False, "Compute the encoder twice per step, to save memory."),
)
TRAINING = (
    Option("num_steps", int, REQUIRED, "Batches to train on.", 1),
    Option("batch_size", int, 64, "Rows in a batch; in later phases, as many tokens.", 1),
    Option("gradient_accumulation_steps", int, 1, "Batches in one update.", 1),
    Option("optimizer", tuple(OPTIMIZERS), "adamw", "lamb is for very large batches."),
    Option("learning_rate", float, 5e-4, "Peak; in the paper 1e-4, for larger models.", 0.0),
    Option("warmup", float, 0.1, "Share of the steps with a rising rate; in the paper 0.01."),
    Option("weight_decay", float, 0.01, "Weight decay of kernels and embeddings."),
    Option("clip_norm", float, 1.0, "Largest norm of all gradients together."),
    Option("devices", int, None, devices.ABOUT, 1),
    Option("seed", int, 0, "Seed of weights, dropout, order and masks."),
)
OUTPUT = (
    Option("output_dir", str, REQUIRED, "Folder for checkpoints, log and model."),
    Option("checkpoint_every", int, 1000, "Steps between checkpoints.", 1),
    Option("log_every", int, 100, "Steps in a line of the log.", 1),
    Option("evaluate_every", int, None, "Steps between evaluations; as checkpoint_every."),
    Option("pictures", bool, False, "Draw the losses (needs matplotlib)."),
    TRACEBACK,
)
GROUPS = {"Data": DATA, "Model": MODEL, "Training": TRAINING, "Output": OUTPUT}
# The flags that may differ when a run continues: paths, and what does not change the losses.
NOT_SETTINGS = (
    *("data_dir", "heldout_dir", "output_dir", "pictures", "preset"),
    *("devices", "traceback"),
)


class Phase(NamedTuple):
    """Steps `first` to `last - 1` of the run, on one folder of data."""

    data: str
    heldout: str | None
    batch_size: int
    first: int
    last: int


def main(arguments):
    """Runs the command with the arguments after `pretrain`."""
    flags, _ = parse("pretrain", __doc__, GROUPS, arguments)
    keep_freed_memory()
    devices.share(flags.devices, ["pretrain", *arguments])
    phases = plan_phases(flags)
    objective = choose_objective(flags, phases)
    keras.utils.set_random_seed(flags.seed)
    model = make_model(flags, phases, objective)
    check_data(flags, phases, model)
    checkpoint = training.TrainingCheckpoint(
        os.path.join(flags.output_dir, "checkpoints"),
        every=flags.checkpoint_every,
        settings=settings(flags, phases, model),
    )
    if checkpoint.step:
        print(f"Continuing after step {checkpoint.step}.", flush=True)
    model.compile(make_optimizer(flags))
    checkpoint.restore(model)
    is_first = distribution.process()[0] == 0
    log = training.TrainingLog(
        flags.output_dir,
        step=checkpoint.step,
        evaluate_every=flags.evaluate_every or flags.checkpoint_every,
    )
    for phase in phases:
        train(flags, model, phase, checkpoint, log)
    final = os.path.join(flags.output_dir, "final")
    if is_first:
        model.save_to_preset(final)
    results = {"steps": checkpoint.step}
    for name, phase in name_heldout(phases).items():
        results |= {f"{name}_{key}": x for key, x in evaluate(flags, model, phase).items()}
    if flags.pictures and is_first:
        plots.training_log(log.lines, path=os.path.join(flags.output_dir, "pretraining.png"))
    results["tokens_per_second"] = log.tokens_per_second
    results["seconds"] = round(sum(line["seconds"] for line in log.lines), 1)
    print(f"Saved {final}.")
    print(json.dumps(results), flush=True)


# The flags, checked before anything is computed


def plan_phases(flags):
    """Returns the phases, one for each folder, which divide the steps by `--shares`."""
    folders, heldout = flags.data_dir, flags.heldout_dir
    shares = flags.shares or ([0.9, 0.1] if len(folders) == 2 else [1.0])
    if len(shares) != len(folders) or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(
            f"--shares must be {len(folders)} numbers from 0 with the sum 1, one for each folder "
            f"of --data_dir. Received: {flags.shares}."
        )
    if len(heldout) not in (0, 1, len(folders)):
        raise ValueError(
            "--heldout_dir takes one folder, or one for each phase. Received: "
            f"{heldout} for {len(folders)} phases."
        )
    if flags.num_steps % flags.gradient_accumulation_steps:
        raise ValueError(  # The last batches would be accumulated and never applied.
            "--num_steps must be a multiple of --gradient_accumulation_steps. Received: "
            f"{flags.num_steps} and {flags.gradient_accumulation_steps}."
        )
    heldout = heldout * len(folders) if len(heldout) == 1 else heldout or [None] * len(folders)
    borders = [round(sum(shares[:i]) * flags.num_steps) for i in range(len(shares))]
    borders.append(flags.num_steps)
    lengths = [read_manifest(folder)["sequence_length"] for folder in folders]
    batch_sizes = [max(1, flags.batch_size * lengths[0] // length) for length in lengths]
    return [*map(Phase, folders, heldout, batch_sizes, borders, borders[1:])]


def choose_objective(flags, phases):
    """Returns a key of `MODELS`, by the flags and by the rows of all folders."""
    if flags.objective == "replaced_tokens":
        rule = "--objective replaced_tokens trains two new models"
        refuse_options(rule, {"--preset": flags.preset or None})
    if flags.objective != "auto":
        return flags.objective
    if not compares_pairs(flags):
        return "masked_lm"
    folders = [folder for phase in phases for folder in (phase.data, phase.heldout) if folder]
    objectives = {folder: read_manifest(folder)["objective"] for folder in folders}
    if len(set(objectives.values())) > 1:
        raise ValueError(
            f"All data must be made with one --objective. Received: {objectives}. Make it again, "
            "or train with masked tokens only: --objective masked_lm."
        )
    return "masked_lm" if "full_sentences" in objectives.values() else "auto"


def compares_pairs(flags):
    """Whether the architecture can learn whether two texts follow one another."""
    if not flags.preset:
        return True
    backbone = load_model(flags, bert_keras.MaskedLM, load_weights=False).backbone
    is_causal = getattr(backbone, "causal", False)
    return backbone.pooler is not None and backbone.num_segments > 1 and not is_causal


def check_data(flags, phases, model):
    """Refuses data that cannot be read, of another tokenizer, or with rows that are too long."""
    wanted = splitting(model.preprocessor.tokenizer)
    positions = model.backbone.max_sequence_length
    folders = [(phase, x) for phase in phases for x in (phase.data, phase.heldout) if x]
    for phase, folder in folders:
        shuffle = folder == phase.data
        batches = make_batches(flags, folder, phase.batch_size, model, shuffle=shuffle)
        actual, length = splitting(batches.tokenizer), batches.sequence_length
        differences = [name for name, value in wanted.items() if actual[name] != value]
        if differences:
            raise ValueError(
                f"All data must be made with the model's tokenizer. Received: {folder}, made with "
                f"another {' and '.join(differences)}. Make the data with the model's: "
                f"bert-keras pretraining-data --vocabulary={flags.preset or phases[0].data}."
            )
        if positions is not None and length > positions:
            raise ValueError(
                f"Rows must fit the model's {positions} positions. Received: {folder} with rows of "
                f"{length}. Raise --max_sequence_length, or make shorter rows."
            )


def splitting(tokenizer):
    """Returns what decides how a tokenizer splits text into pieces, by name."""
    names = ("normalizer", "pre_tokenizer", "model")
    components = {name: {**(tokenizer.settings[name] or {})} for name in names}
    normalizer = components["normalizer"]
    if normalizer.get("strip_accents", "") is None:  # In BERT, accents follow the case.
        normalizer["strip_accents"] = normalizer["lowercase"]
    return {"vocabulary": tokenizer.vocabulary, **components}


def settings(flags, phases, model):
    """Returns everything that the losses depend on: flags, checksums of the data, the backend."""
    values = {name: flags[name].value for name in flags if name not in NOT_SETTINGS}
    if flags.preset:
        config = json.dumps(model.backbone.get_config(), sort_keys=True, default=str)
        values["backbone"] = hashlib.sha256(config.encode()).hexdigest()[:16]
    data = [digest(phase.data) for phase in phases]
    heldout = [digest(phase.heldout) for phase in phases if phase.heldout]
    return {**values, "data": data, "heldout": heldout, "backend": keras.backend.backend()}


def digest(folder):
    """Returns a checksum of a folder's shards, str."""
    checksums = [shard["sha256"] for shard in read_manifest(folder)["shards"]]
    return hashlib.sha256("".join(checksums).encode()).hexdigest()[:16]


# The model and its optimizer


def make_model(flags, phases, objective):
    """Returns the preset's model, or one with random weights."""
    masking = masking_of(flags)
    if flags.preset:
        return load_model(flags, MODELS[objective], masking=masking)
    tokenizer = bert_keras.Tokenizer.load(phases[0].data)
    names = ("num_layers", "num_heads", "hidden_dim", "max_sequence_length", "activation", "dtype")
    names += ("initializer_range", "dropout", "attention_dropout", "remat")
    sizes = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "intermediate_dim": flags.intermediate_dim or 4 * flags.hidden_dim,
        **{name: flags[name].value for name in names},
    }
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=flags.max_sequence_length)
    if objective == "replaced_tokens":
        return make_pair(flags, sizes, preprocessor, masking)
    backbone = bert_keras.BertBackbone(**sizes)
    return MODELS[objective](backbone, preprocessor=preprocessor, masking=masking)


def make_pair(flags, sizes, preprocessor, masking):
    """Returns a task with a discriminator and a generator, which is as deep and narrower."""
    sizes = {**sizes, "embedding_dim": sizes["hidden_dim"]}
    narrower = {
        name: max(1, round(flags.generator_size * sizes[name]))
        for name in ("num_heads", "hidden_dim", "intermediate_dim")
    }
    generator = bert_keras.ElectraBackbone(**{**sizes, **narrower})
    return bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(generator, preprocessor, masking=masking),
        bert_keras.ReplacedTokenDetector(bert_keras.ElectraBackbone(**sizes), preprocessor),
    )


def load_model(flags, task, **options):
    """Returns a task on the backbone of `--preset`, with the settings that flags change."""
    names = ("dropout", "attention_dropout", "remat")
    names = [name for name in names if not flags[name].using_default_value]
    backbone = {name: flags[name].value for name in names}
    return task.from_preset(flags.preset, backbone=backbone, dtype=flags.dtype, **options)


def masking_of(flags):
    """Returns the `Masking` of the flags."""
    return Masking(*(flags[option.name].value for option in MASKING))


def make_optimizer(flags):
    """Returns the optimizer of the flags, with one rise and fall of the rate."""
    accumulation = flags.gradient_accumulation_steps
    return OPTIMIZERS[flags.optimizer](
        training.WarmupDecay(flags.learning_rate, flags.num_steps, flags.warmup),
        weight_decay=flags.weight_decay,
        global_clipnorm=flags.clip_norm,
        gradient_accumulation_steps=accumulation if accumulation > 1 else None,
    )


# Training and evaluation


def make_batches(flags, folder, batch_size, model, **options):
    """Returns the batches of a folder, with the inputs and labels of a model."""
    options["has_next_sentence"] = isinstance(model, bert_keras.Pretraining)
    options["input_names"] = model.backbone.input_names
    return PretrainingBatches(folder, batch_size, masking_of(flags), seed=flags.seed, **options)


def train(flags, model, phase, checkpoint, log):
    """Trains on the remaining steps of a phase, in epochs as long as the callbacks need."""
    interval = min(flags.log_every, flags.checkpoint_every, log.evaluate_every)
    whole, rest = divmod(max(0, phase.last - max(phase.first, checkpoint.step)), interval)
    for steps, epochs in ((interval, whole), (rest, 1)):
        if not steps * epochs:
            continue
        start = checkpoint.step - phase.first
        batches = make_batches(flags, phase.data, phase.batch_size, model, start_step=start)
        log.tokens_per_step = phase.batch_size * batches.sequence_length
        if phase.heldout:
            log.evaluate = lambda model: evaluate(flags, model, phase)
        model.fit(
            batches,
            steps_per_epoch=steps,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=[log, checkpoint],
        )


def name_heldout(phases):
    """Returns the phases of the held-out folders, each folder once, by their rows' lengths."""
    names = {}
    for folder in dict.fromkeys(phase.heldout for phase in phases if phase.heldout):
        name = f"heldout_{read_manifest(folder)['sequence_length']}"
        name = f"{name}_{len(names) + 1}" if name in names else name
        names[name] = next(phase for phase in phases if phase.heldout == folder)
    return names


def evaluate(flags, model, phase):
    """Returns loss and metrics on held-out data, which is always masked in the same way.

    Keras's own losses are means over batches, the last of which has fewer rows. The metrics are
    means over all masked tokens and all pairs, whatever the batches. Only the loss of
    finding replaced tokens has no corresponding metric.
    """
    batches = make_batches(flags, phase.heldout, phase.batch_size, model, shuffle=False)
    scores = model.evaluate(batches, verbose=0, return_dict=True)
    selected = {name: x for name, x in scores.items() if name[-4:] != "loss" or "detection" in name}
    scores = {name: float(value) for name, value in selected.items()}
    prefix = "masked_lm_" if "masked_lm_perplexity" in scores else ""
    return {f"{prefix}loss": math.log(scores[f"{prefix}perplexity"]), **scores}
