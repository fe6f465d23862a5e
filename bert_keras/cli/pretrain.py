"""Pre-train by masked tokens and next sentences, from random weights or from a checkpoint.

    bert-keras pretraining-data --input books --vocabulary vocab.txt \
        --output_dir data/train
    bert-keras pretrain --data_dir data/train --heldout_dir data/heldout \
        --num_layers 4 --hidden_dim 256 --num_heads 4 --num_steps 10000 --output_dir pretrained
    bert-keras pretrain --data_dir my_texts --preset bert_base_en_uncased --num_steps 2000

Random weights are a BERT's, with whatever tokenizer made the data. A checkpoint may be of any
family; one without a pooler, or that does not tell two segments apart, such as RoBERTa and
DistilBERT, trains by masked tokens alone. With --objective replaced_tokens an ELECTRA is trained,
and its generator is the preset OUTPUT_DIR/final/generator.

A run that was killed goes on by the same command, with the same losses as if it had not been. Two
folders in --data_dir, rows of 128 and of 512 tokens, are the paper's two phases; more are possible,
such as a first one of 32 tokens, in which a small model learns sooner to attend. --learning_rate
takes one rate for the whole run, or one a phase. The model is the preset OUTPUT_DIR/final, the log
OUTPUT_DIR/metrics.jsonl; the last line printed is JSON. Its seconds are those of all training
steps, before a kill and after. KERAS_BACKEND chooses the backend.
"""

import hashlib
import importlib.util
import json
import math
import os
import shutil
from typing import NamedTuple

import keras
from absl import flags

import bert_keras
from bert_keras import distribution, plots
from bert_keras.cli import devices, options
from bert_keras.corpora import PretrainingBatches, read_manifest
from bert_keras.datasets.remote import check_local
from bert_keras.engine.host_memory import keep_freed_memory
from bert_keras.preprocessing import Masking
from bert_keras.training import (
    AdamW,
    Lamb,
    PhasedSchedule,
    TrainingCheckpoint,
    TrainingLog,
    WarmupDecay,
)

FLAGS = flags.FlagValues()
TASKS = {
    "both": bert_keras.Pretraining,
    "masked_lm": bert_keras.MaskedLM,
    "span_boundary": bert_keras.SpanBoundary,
    "replaced_tokens": bert_keras.ReplacedTokenDetection,
}
JIT_COMPILE = {"auto": "auto", "true": True, "false": False}

# Data
flags.DEFINE_list(
    "data_dir",
    None,
    "Folder of examples; several for phases one after the other.",
    required=True,
    flag_values=FLAGS,
)
flags.DEFINE_list(
    "heldout_dir", [], "Folder of examples to measure on; one, or one a phase.", flag_values=FLAGS
)
flags.DEFINE_list(
    "shares",
    None,
    "Share of the steps in each phase; of two phases 0.9,0.1, as in the paper.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "objective",
    "auto",
    ["auto", *TASKS],
    "auto: both where the data has pairs and the model can compare them. span_boundary is "
    "SpanBERT's, for --mask_strategy spans. replaced_tokens is ELECTRA's, from random weights; the "
    "paper has --mask_share 0.85 --random_share 0 with it.",
    flag_values=FLAGS,
)
flags.DEFINE_float(
    "generator_size",
    0.25,
    "Share of the sizes below that a generator of tokens has.",
    0.0,
    1.0,
    flag_values=FLAGS,
)
flags.DEFINE_float("mask_rate", 0.15, "Share of the tokens that is predicted.", flag_values=FLAGS)
flags.DEFINE_float("mask_share", 0.8, "Share of these that becomes [MASK].", flag_values=FLAGS)
flags.DEFINE_float(
    "random_share", 0.1, "Share of these that becomes another token.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "mask_strategy",
    "pieces",
    ["pieces", "whole_words", "spans", "n_grams"],
    "What is chosen to be masked.",
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "max_predictions", None, "Most predictions in a row; by length without it.", flag_values=FLAGS
)

# Model
flags.DEFINE_string(
    "preset", None, "Checkpoint to go on from, instead of the sizes below.", flag_values=FLAGS
)
flags.DEFINE_integer("num_layers", 4, "Encoder layers.", flag_values=FLAGS)
flags.DEFINE_integer("num_heads", 4, "Attention heads.", flag_values=FLAGS)
flags.DEFINE_integer("hidden_dim", 256, "Width of the hidden states.", flag_values=FLAGS)
flags.DEFINE_integer(
    "intermediate_dim", None, "Width in the feed-forward layers; 4 * hidden_dim.", flag_values=FLAGS
)
flags.DEFINE_integer("max_sequence_length", 512, "Positions.", flag_values=FLAGS)
flags.DEFINE_string("activation", "gelu", "gelu or gelu_tanh.", flag_values=FLAGS)
flags.DEFINE_float(
    "dropout", 0.1, "Rate after embeddings and on residual branches.", flag_values=FLAGS
)
flags.DEFINE_float("attention_dropout", 0.1, "Rate on attention probabilities.", flag_values=FLAGS)
flags.DEFINE_float(
    "initializer_range",
    0.02,
    "Standard deviation of the first weights; more for narrow models.",
    0.0,
    flag_values=FLAGS,
)
flags.DEFINE_bool(
    "causal", False, "Let tokens see only those before them; mask tokens only.", flag_values=FLAGS
)
flags.DEFINE_string(
    "dtype", "float32", "float32, mixed_bfloat16 or mixed_float16.", flag_values=FLAGS
)
flags.DEFINE_bool(
    "unpadded",
    False,
    "Lay short rows side by side: the encoder sees no padding.",
    flag_values=FLAGS,
)
flags.DEFINE_bool(
    "remat", False, "Compute the encoder twice a step, to need less memory.", flag_values=FLAGS
)

# Training
flags.DEFINE_integer(
    "num_steps", None, "Batches to train on.", required=True, lower_bound=1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "batch_size",
    64,
    "Rows of a batch in the first phase; later ones have as many tokens.",
    1,
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "gradient_accumulation_steps", 1, "Batches of one update.", lower_bound=1, flag_values=FLAGS
)
flags.DEFINE_enum(
    "optimizer", "adamw", ["adamw", "lamb"], "LAMB is for very large batches.", flag_values=FLAGS
)
flags.DEFINE_list(
    "learning_rate",
    "5e-4",
    "Peak rate of one rise and fall over all steps, or one peak a phase, each of which then rises "
    "and falls to 0 on its own. The paper has 1e-4 for its larger models.",
    flag_values=FLAGS,
)
flags.DEFINE_float(
    "warmup",
    0.1,
    "Share of the steps, or of each phase's, with a rising rate. The paper has 0.01.",
    flag_values=FLAGS,
)
flags.DEFINE_float("weight_decay", 0.01, "On kernels and embeddings.", flag_values=FLAGS)
flags.DEFINE_float("clip_norm", 1.0, "Largest norm of all gradients together.", flag_values=FLAGS)
flags.DEFINE_integer("devices", None, devices.ABOUT, 1, flag_values=FLAGS)
flags.DEFINE_integer("seed", 0, "Seed of weights, dropout, order and masks.", flag_values=FLAGS)
flags.DEFINE_enum(
    "jit_compile", "auto", list(JIT_COMPILE), "Whether XLA compiles.", flag_values=FLAGS
)

# Output
flags.DEFINE_string(
    "output_dir", None, "Folder for checkpoints, log and model.", required=True, flag_values=FLAGS
)
flags.DEFINE_integer(
    "checkpoint_every", 1000, "Steps between checkpoints.", lower_bound=1, flag_values=FLAGS
)
flags.DEFINE_integer("log_every", 100, "Steps a line of the log.", lower_bound=1, flag_values=FLAGS)
flags.DEFINE_integer(
    "evaluate_every", None, "Steps between evaluations; as checkpoint_every.", flag_values=FLAGS
)
flags.DEFINE_bool(
    "tensorboard",
    True,
    "Also write TensorBoard's files, where TensorFlow is there.",
    flag_values=FLAGS,
)
flags.DEFINE_bool("pictures", False, "Draw the losses (needs matplotlib).", flag_values=FLAGS)

# What may differ when a killed run goes on: where files lie, and what changes no number.
NOT_SETTINGS = (
    *("data_dir", "heldout_dir", "output_dir", "pictures", "preset", "tensorboard"),
    "devices",
)
MASKING_FLAGS = ("mask_rate", "mask_share", "random_share", "mask_strategy", "max_predictions")


class Phase(NamedTuple):
    """Steps `first` to `last - 1` of the run, on one folder of data."""

    data: str
    heldout: str | None
    batch_size: int
    first: int
    last: int


def main(arguments):
    """Runs as the arguments after `pretrain` say."""
    options.read(FLAGS, "pretrain", __doc__, arguments)
    keep_freed_memory()
    devices.share(FLAGS.devices, ["pretrain", *arguments])
    check_local("--output_dir", FLAGS.output_dir)
    phases = plan_phases()
    check_steps()
    peak_rates(len(phases))
    objective = choose_objective(phases)
    check_batches(phases)
    keras.utils.set_random_seed(FLAGS.seed)
    model = make_model(phases, objective)
    check_fits(model, phases)
    checkpoint = TrainingCheckpoint(
        os.path.join(FLAGS.output_dir, "checkpoints"),
        every=FLAGS.checkpoint_every,
        settings=settings(phases, model),
    )
    if checkpoint.step:
        print(f"Going on after step {checkpoint.step}.", flush=True)
    model.compile(make_optimizer(phases), jit_compile=JIT_COMPILE[FLAGS.jit_compile])
    checkpoint.restore(model)
    log = TrainingLog(
        FLAGS.output_dir,
        step=checkpoint.step,
        evaluate_every=evaluate_every(),
        also=scalar_writer(os.path.join(FLAGS.output_dir, "tensorboard")),
    )
    for phase in phases:
        train(model, phase, checkpoint, log)
    final, is_first = os.path.join(FLAGS.output_dir, "final"), distribution.process()[0] == 0
    if is_first:
        model.save_to_preset(final)
    results = {"steps": checkpoint.step}
    for name, phase in name_heldout(phases).items():
        results |= {f"{name}_{key}": value for key, value in evaluate(model, phase).items()}
    if FLAGS.pictures and is_first:
        plots.training_log(log.lines, path=os.path.join(FLAGS.output_dir, "pretraining.png"))
    results["tokens_per_second"] = log.tokens_per_second
    results["seconds"] = round(sum(line["seconds"] for line in log.lines), 1)
    print(f"Saved {final}.")
    print(json.dumps(results), flush=True)


def scalar_writer(folder):
    """Returns a function that writes a line of the log for TensorBoard, `None` where it cannot."""
    if (
        not FLAGS.tensorboard
        or distribution.process()[0]
        or importlib.util.find_spec("tensorflow") is None
    ):
        return None
    import tensorflow as tf

    if keras.backend.backend() != "tensorflow":
        tf.config.set_visible_devices([], "GPU")  # whose memory it would take
    shutil.rmtree(folder, ignore_errors=True)
    writer = tf.summary.create_file_writer(str(folder))

    def write(line):
        values = [
            tf.compat.v1.Summary.Value(tag=name, simple_value=value)
            for name, value in line.items()
            if name != "step"
        ]
        with writer.as_default():
            # tf.summary.scalar would need the package tensorboard.
            summary = tf.compat.v1.Summary(value=values).SerializeToString()
            tf.summary.experimental.write_raw_pb(summary, step=line["step"])
        writer.flush()

    return write


def plan_phases():
    """Returns the phases, one a folder, that share the steps as `--shares` says."""
    folders, heldout = FLAGS.data_dir, FLAGS.heldout_dir
    shares = phase_shares(len(folders))
    if len(heldout) not in (0, 1, len(folders)):
        raise ValueError(
            "--heldout_dir takes one folder, or one a phase. Received: "
            f"{heldout} for {len(folders)} phases."
        )
    heldout = heldout * len(folders) if len(heldout) == 1 else heldout or [None] * len(folders)
    borders = [round(sum(shares[:i]) * FLAGS.num_steps) for i in range(len(shares))]
    borders.append(FLAGS.num_steps)
    lengths = [read_manifest(folder)["sequence_length"] for folder in folders]
    sizes = [max(1, FLAGS.batch_size * lengths[0] // length) for length in lengths]
    return [
        Phase(folder, heldout[i], sizes[i], borders[i], borders[i + 1])
        for i, folder in enumerate(folders)
    ]


def phase_shares(num_phases):
    """Returns `--shares` as floats, or what stands for it."""
    if FLAGS.shares is None and num_phases <= 2:
        return [0.9, 0.1] if num_phases == 2 else [1.0]
    try:
        shares = [float(share) for share in FLAGS.shares or []]
    except ValueError:
        shares = []
    if len(shares) != num_phases or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(
            f"--shares must be {num_phases} numbers from 0 with the sum 1, one for each folder of "
            f"--data_dir. Received: {FLAGS.shares}."
        )
    return shares


def check_steps():
    """Raises where the last batches would be accumulated and never applied."""
    if FLAGS.num_steps % FLAGS.gradient_accumulation_steps:
        raise ValueError(
            "--num_steps must be a multiple of --gradient_accumulation_steps. Received: "
            f"{FLAGS.num_steps} and {FLAGS.gradient_accumulation_steps}."
        )


def peak_rates(num_phases):
    """Returns `--learning_rate` as floats: one for the whole run, or one a phase."""
    try:
        rates = [float(rate) for rate in FLAGS.learning_rate]
    except ValueError:
        rates = []
    if len(rates) not in (1, num_phases) or not all(0 <= rate < math.inf for rate in rates):
        raise ValueError(
            "--learning_rate must be one number from 0, or one for each of the "
            f"{num_phases} folders of --data_dir. Received: {FLAGS.learning_rate}."
        )
    return rates


def choose_objective(phases):
    """Returns one of `TASKS`, by the flags and by what the rows of all folders are."""
    if FLAGS.objective == "span_boundary":
        return "span_boundary"
    if FLAGS.objective == "replaced_tokens":
        if FLAGS.preset or FLAGS.causal:
            raise ValueError(
                "--objective replaced_tokens trains two new models that read both ways. Received: "
                f"--preset {FLAGS.preset}, --causal {FLAGS.causal}. Leave them out."
            )
        return "replaced_tokens"
    if FLAGS.objective == "masked_lm" or not compares_pairs():
        if FLAGS.objective == "both":
            raise ValueError(
                "--objective both needs a first token that sees the text, a pooler on it, and two "
                "segments: not a causal model, nor a checkpoint without these. Leave --objective "
                "out."
            )
        return "masked_lm"
    found = {folder: read_manifest(folder)["objective"] for folder in all_folders(phases)}
    if len(set(found.values())) > 1:
        raise ValueError(
            f"All data must be made with one --objective. Received: {found}. Make it anew, or "
            "train on masked tokens alone: --objective masked_lm."
        )
    has_pairs = "full_sentences" not in found.values()
    if FLAGS.objective == "both" and not has_pairs:
        raise ValueError("--objective both needs pairs: data that is not full_sentences.")
    return "both" if has_pairs else "masked_lm"


def compares_pairs():
    """Returns whether the model can learn if two texts follow one another, by its architecture."""
    if FLAGS.causal or not FLAGS.preset:
        return not FLAGS.causal
    backbone = load_model(bert_keras.MaskedLM, load_weights=False).backbone
    is_causal = getattr(backbone, "causal", False)
    return backbone.pooler is not None and backbone.num_segments > 1 and not is_causal


def all_folders(phases):
    """Returns the folders of all data, each once."""
    folders = [folder for phase in phases for folder in (phase.data, phase.heldout) if folder]
    return list(dict.fromkeys(folders))


def check_batches(phases):
    """Raises where a later phase's data, or held-out data, could not be read when it is reached."""
    for phase in phases:
        make_batches(phase.data, phase.batch_size)
        if phase.heldout:
            make_batches(phase.heldout, phase.batch_size, shuffle=False)
    if all(read_manifest(folder)["masking"] for folder in all_folders(phases)):
        given = [f"--{name}" for name in MASKING_FLAGS if FLAGS[name].present]
        if given:
            raise ValueError(
                "Data made with --static_masking keeps its masks. Received: "
                f"{', '.join(given)}. Leave them out, or make the data without it."
            )


def check_fits(model, phases):
    """Raises where data was made with another tokenizer, or has longer rows, than the model."""
    tokenizer, positions = model.preprocessor.tokenizer, model.backbone.max_sequence_length
    wanted = splitting(tokenizer)
    for folder in all_folders(phases):
        manifest = read_manifest(folder)
        of_data = bert_keras.Tokenizer.load(folder)
        found = splitting(of_data)
        differences = sorted(name for name in wanted | found if found.get(name) != wanted.get(name))
        if of_data.vocabulary != tokenizer.vocabulary:
            differences.insert(0, "vocabulary")
        if differences:
            raise ValueError(
                f"All data must be made with the model's tokenizer. Received: {folder}, made with "
                f"another {', '.join(differences)} ({of_data.vocabulary_size} tokens; the model's "
                f"has {tokenizer.vocabulary_size}). Make the data with the model's: "
                "bert-keras pretraining-data --vocabulary."
            )
        if positions is not None and manifest["sequence_length"] > positions:
            raise ValueError(
                f"Rows must fit the model's {positions} positions. Received: {folder} with rows of "
                f"{manifest['sequence_length']}. Raise --max_sequence_length, or make shorter rows."
            )


def splitting(tokenizer):
    """Returns what a tokenizer's settings say about how text becomes pieces, by name."""
    said = {}
    for part in ("normalizer", "pre_tokenizer", "model"):
        said |= {f"{part} ({name})": v for name, v in (tokenizer.settings[part] or {}).items()}
    accents = "normalizer (strip_accents)"
    if accents in said and said[accents] is None:  # Of BERT's: with the case.
        said[accents] = said["normalizer (lowercase)"]
    return said


def settings(phases, model):
    """Returns what the losses depend on: flags, the data's checksums, and the backend.

    What may be said in two ways is said in one, so that it may be said otherwise after a kill.
    """
    chosen = {name: FLAGS[name].value for name in FLAGS if name not in NOT_SETTINGS}
    if FLAGS.shares is not None:
        chosen["shares"] = [f"{share:.15g}" for share in phase_shares(len(phases))]
    rates = peak_rates(len(phases))
    chosen["learning_rate"] = rates if len(rates) > 1 else rates[0]
    if FLAGS.evaluate_every == FLAGS.checkpoint_every:
        chosen["evaluate_every"] = None
    if FLAGS.preset:
        config = json.dumps(model.backbone.get_config(), sort_keys=True, default=str)
        chosen["backbone"] = hashlib.sha256(config.encode()).hexdigest()[:16]
    data = [digest(phase.data) for phase in phases]
    heldout = [digest(phase.heldout) for phase in phases if phase.heldout]
    return {**chosen, "data": data, "heldout": heldout, "backend": keras.backend.backend()}


def digest(folder):
    """Returns what tells a folder's shards from others, str."""
    checksums = [shard["sha256"] for shard in read_manifest(folder)["shards"]]
    return hashlib.sha256("".join(checksums).encode()).hexdigest()[:16]


def make_model(phases, objective):
    """Returns the preset's model, or one with random weights; its masking is the last phase's."""
    task = TASKS[objective]
    masking = masking_of(phases[-1].data)
    if FLAGS.preset:
        return load_model(task, masking=masking)
    tokenizer = bert_keras.Tokenizer.load(phases[0].data)
    sizes = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "num_layers": FLAGS.num_layers,
        "num_heads": FLAGS.num_heads,
        "hidden_dim": FLAGS.hidden_dim,
        "intermediate_dim": FLAGS.intermediate_dim or 4 * FLAGS.hidden_dim,
        "max_sequence_length": FLAGS.max_sequence_length,
        "activation": FLAGS.activation,
        "initializer_range": FLAGS.initializer_range,
        "dropout": FLAGS.dropout,
        "attention_dropout": FLAGS.attention_dropout,
        "dtype": FLAGS.dtype,
        "remat": FLAGS.remat,
    }
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=FLAGS.max_sequence_length)
    if objective == "replaced_tokens":
        return make_pair(sizes, preprocessor, masking)
    backbone = bert_keras.BertBackbone(causal=FLAGS.causal, **sizes)
    return task(backbone, preprocessor=preprocessor, masking=masking)


def make_pair(sizes, preprocessor, masking):
    """Returns a discriminator and a generator as deep and less wide, in one task."""
    sizes = {**sizes, "embedding_dim": sizes["hidden_dim"]}
    narrower = {
        name: max(1, round(FLAGS.generator_size * sizes[name]))
        for name in ("num_heads", "hidden_dim", "intermediate_dim")
    }
    generator = bert_keras.ElectraBackbone(**{**sizes, **narrower})
    return bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(generator, preprocessor, masking=masking),
        bert_keras.ReplacedTokenDetector(bert_keras.ElectraBackbone(**sizes), preprocessor),
    )


def load_model(task, **options):
    """Returns a task on the backbone of `--preset`."""
    backbone = {
        "dropout": FLAGS.dropout,
        "attention_dropout": FLAGS.attention_dropout,
        "remat": FLAGS.remat,
    }
    if FLAGS.causal:
        backbone["causal"] = True
    return task.from_preset(FLAGS.preset, backbone=backbone, dtype=FLAGS.dtype, **options)


def masking_of(folder):
    """Returns how the rows of a folder are masked: as they were when made, or by the flags."""
    stored = read_manifest(folder)["masking"]
    # Of imported records nobody knows.
    is_known = stored is not None and "imported" not in stored
    return Masking.from_config(stored) if is_known else make_masking()


def make_masking():
    """Returns the `Masking` that the flags ask for."""
    return Masking(
        rate=FLAGS.mask_rate,
        mask_share=FLAGS.mask_share,
        random_share=FLAGS.random_share,
        strategy=FLAGS.mask_strategy,
        max_predictions=FLAGS.max_predictions,
    )


def make_optimizer(phases):
    """Returns the optimizer that the flags ask for, with the rates of all phases."""
    optimizer = {"adamw": AdamW, "lamb": Lamb}[FLAGS.optimizer]
    accumulation = FLAGS.gradient_accumulation_steps
    return optimizer(
        make_schedule(phases),
        weight_decay=FLAGS.weight_decay,
        global_clipnorm=FLAGS.clip_norm,
        gradient_accumulation_steps=accumulation if accumulation > 1 else None,
    )


def make_schedule(phases):
    """Returns the rate over all steps: one rise and fall, or one in each phase."""
    rates = peak_rates(len(phases))
    if len(rates) == 1:
        return WarmupDecay(rates[0], FLAGS.num_steps, warmup=FLAGS.warmup)
    steps = [phase.last - phase.first for phase in phases]
    # A phase with a share of 0 has no schedule.
    return PhasedSchedule(
        [WarmupDecay(rate, n, FLAGS.warmup) for rate, n in zip(rates, steps, strict=True) if n]
    )


def make_batches(folder, batch_size, model=None, **options):
    """Returns the batches of a folder, for a model with what it reads and learns."""
    is_masked = read_manifest(folder)["masking"] is not None
    if model is not None:
        options |= {"has_next_sentence": is_both(model), "input_names": model.backbone.input_names}
    return PretrainingBatches(
        folder,
        batch_size,
        masking=None if is_masked else make_masking(),
        seed=FLAGS.seed,
        unpadded=FLAGS.unpadded,
        **options,
    )


def train(model, phase, checkpoint, log):
    """Trains on the steps of a phase that are not done yet, in epochs of so many as are due."""
    due = min(FLAGS.log_every, FLAGS.checkpoint_every, evaluate_every())
    whole, rest = divmod(max(0, phase.last - max(phase.first, checkpoint.step)), due)
    for steps, epochs in ((due, whole), (rest, 1)):
        if not steps * epochs:
            continue
        batches = make_batches(
            phase.data,
            phase.batch_size,
            model,
            start_step=checkpoint.step - phase.first,
        )
        log.tokens_per_step = phase.batch_size * batches.sequence_length
        if phase.heldout:
            log.evaluate = lambda model: evaluate(model, phase)
        model.fit(
            batches,
            steps_per_epoch=steps,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=[log, checkpoint],
        )


def evaluate_every():
    """Returns after how many steps held-out data are read."""
    return FLAGS.evaluate_every or FLAGS.checkpoint_every


def is_both(model):
    """Whether a model learns masked tokens and next sentences."""
    return isinstance(model, bert_keras.Pretraining)


def name_heldout(phases):
    """Returns the held-out folders' phases by names of the rows' lengths, each folder once."""
    names = {}
    for folder in dict.fromkeys(phase.heldout for phase in phases if phase.heldout):
        name = f"heldout_{read_manifest(folder)['sequence_length']}"
        name = f"{name}_{len(names) + 1}" if name in names else name
        names[name] = next(phase for phase in phases if phase.heldout == folder)
    return names


def evaluate(model, phase):
    """Returns loss and metrics on held-out data, masked always alike.

    Keras's own losses are means over batches, the last of which has fewer rows; those of the
    metrics are means over all masked tokens and all pairs, whatever the batches. Only the loss of
    finding replaced tokens has no metric that says the same.
    """
    batches = make_batches(phase.heldout, phase.batch_size, model, shuffle=False)
    scores = model.evaluate(batches, verbose=0, return_dict=True)
    kept = {name: x for name, x in scores.items() if name[-4:] != "loss" or "detection" in name}
    scores = {name: float(value) for name, value in kept.items()}
    prefix = "masked_lm_" if "masked_lm_perplexity" in scores else ""
    return {f"{prefix}loss": math.log(scores[f"{prefix}perplexity"]), **scores}
