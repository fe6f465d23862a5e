"""Pre-train BERT by masked tokens and next sentences, from random weights or from a checkpoint.

    python examples/create_pretraining_data.py --input books --vocabulary vocab.txt \
        --output_dir data/train
    python examples/pretrain.py --data_dir data/train --heldout_dir data/heldout \
        --num_layers 4 --hidden_dim 256 --num_heads 4 --num_steps 10000 --output_dir pretrained
    python examples/pretrain.py --data_dir my_texts --preset bert_base_en_uncased --num_steps 2000

A run that was killed goes on by the same command, with the same losses as if it had not been. Two
folders in --data_dir, rows of 128 and of 512 tokens, are the paper's two phases; more are possible,
such as a first one of 32 tokens, in which a small model learns sooner to attend. The model is the
preset OUTPUT_DIR/final, the log OUTPUT_DIR/metrics.jsonl; the last line printed is JSON.
KERAS_BACKEND chooses the backend.
"""

import hashlib
import json
import os
import time
from typing import NamedTuple

import keras
from absl import app, flags, logging

import bert_keras
from bert_keras.datasets.shards import read_manifest
from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.pretraining_batches import PretrainingBatches
from bert_keras.training import AdamW, Lamb, WarmupDecay
from bert_keras.training.checkpoint import TrainingCheckpoint
from bert_keras.training.training_log import TrainingLog

FLAGS = flags.FLAGS
JIT_COMPILE = {"auto": "auto", "true": True, "false": False}

# Data
flags.DEFINE_list(
    "data_dir", None, "Folder of examples; several for phases one after the other.", required=True
)
flags.DEFINE_list("heldout_dir", [], "Folder of examples to measure on; one, or one a phase.")
flags.DEFINE_list(
    "shares", None, "Share of the steps in each phase; of two phases 0.9,0.1, as in the paper."
)
flags.DEFINE_enum(
    "objective", "auto", ["auto", "both", "masked_lm"], "auto: both where the data has pairs."
)
flags.DEFINE_float("mask_rate", 0.15, "Share of the tokens that is predicted.")
flags.DEFINE_float("mask_share", 0.8, "Share of these that becomes [MASK].")
flags.DEFINE_float("random_share", 0.1, "Share of these that becomes another token.")
flags.DEFINE_enum(
    "mask_strategy", "pieces", ["pieces", "whole_words", "spans"], "What is chosen to be masked."
)
flags.DEFINE_integer("max_predictions", None, "Most predictions in a row; by length without it.")

# Model
flags.DEFINE_string("preset", None, "Checkpoint to go on from, instead of the sizes below.")
flags.DEFINE_string("vocabulary", None, "vocab.txt or its folder; that of the data without it.")
flags.DEFINE_integer("num_layers", 4, "Encoder layers.")
flags.DEFINE_integer("num_heads", 4, "Attention heads.")
flags.DEFINE_integer("hidden_dim", 256, "Width of the hidden states.")
flags.DEFINE_integer("intermediate_dim", None, "Width in the feed-forward layers; 4 * hidden_dim.")
flags.DEFINE_integer("max_sequence_length", 512, "Positions.")
flags.DEFINE_string("activation", "gelu", "gelu or gelu_tanh.")
flags.DEFINE_float("dropout", 0.1, "Rate after embeddings and on residual branches.")
flags.DEFINE_float("attention_dropout", 0.1, "Rate on attention probabilities.")
flags.DEFINE_float(
    "initializer_range",
    0.02,
    "Standard deviation of the first weights; more for narrow models.",
    0.0,
)
flags.DEFINE_bool("causal", False, "Let tokens see only those before them; mask tokens only.")
flags.DEFINE_string("dtype", "float32", "float32, mixed_bfloat16 or mixed_float16.")
flags.DEFINE_bool("remat", False, "Compute the encoder twice a step, to need less memory.")

# Training
flags.DEFINE_integer("num_steps", None, "Batches to train on.", required=True, lower_bound=1)
flags.DEFINE_integer(
    "batch_size", 64, "Rows of a batch in the first phase; later ones have as many tokens.", 1
)
flags.DEFINE_integer("gradient_accumulation_steps", 1, "Batches of one update.", lower_bound=1)
flags.DEFINE_enum("optimizer", "adamw", ["adamw", "lamb"], "LAMB is for very large batches.")
flags.DEFINE_float("learning_rate", 5e-4, "Peak rate. The paper has 1e-4 for its larger models.")
flags.DEFINE_float("warmup", 0.1, "Share of the steps with a rising rate. The paper has 0.01.")
flags.DEFINE_float("weight_decay", 0.01, "On kernels and embeddings.")
flags.DEFINE_float("clip_norm", 1.0, "Largest norm of all gradients together.")
flags.DEFINE_integer("seed", 0, "Seed of weights, dropout, order and masks.")
flags.DEFINE_enum("jit_compile", "auto", list(JIT_COMPILE), "Whether XLA compiles.")

# Output
flags.DEFINE_string("output_dir", None, "Folder for checkpoints, log and model.", required=True)
flags.DEFINE_integer("checkpoint_every", 1000, "Steps between checkpoints.", lower_bound=1)
flags.DEFINE_integer("log_every", 100, "Steps a line of the log.", lower_bound=1)
flags.DEFINE_integer("evaluate_every", None, "Steps between evaluations; as checkpoint_every.")
flags.DEFINE_bool("tensorboard", True, "Also write TensorBoard's files, where TensorFlow is there.")
flags.DEFINE_string("plot_dir", None, "Folder for the picture of the loss (needs matplotlib).")

# What may differ when a killed run goes on: where files lie, and what changes no number.
NOT_SETTINGS = ("data_dir", "heldout_dir", "output_dir", "plot_dir", "tensorboard", "vocabulary")


class Phase(NamedTuple):
    """Steps `first` to `last - 1` of the run, on one folder of data."""

    data: str
    heldout: str | None
    batch_size: int
    first: int
    last: int


def main(argv):
    started = time.perf_counter()
    phases = plan_phases()
    objective = choose_objective(phases)
    checkpoint = TrainingCheckpoint(
        os.path.join(FLAGS.output_dir, "checkpoints"),
        every=FLAGS.checkpoint_every,
        settings=settings(phases),
    )
    if checkpoint.step:
        print(f"Going on after step {checkpoint.step}.", flush=True)
    keras.utils.set_random_seed(FLAGS.seed)
    model = make_model(phases, objective)
    model.compile(make_optimizer(), jit_compile=JIT_COMPILE[FLAGS.jit_compile])
    checkpoint.restore(model)
    log = TrainingLog(
        FLAGS.output_dir,
        step=checkpoint.step,
        evaluate_every=FLAGS.evaluate_every or FLAGS.checkpoint_every,
        tensorboard=FLAGS.tensorboard,
    )
    for phase in phases:
        train(model, phase, objective, checkpoint, log)
    final = os.path.join(FLAGS.output_dir, "final")
    model.save_to_preset(final)
    results = {"steps": checkpoint.step}
    for phase in phases:
        if phase.heldout:
            name = f"heldout_{read_manifest(phase.data)['sequence_length']}"
            scores = evaluate(model, phase, objective)
            results |= {f"{name}_{key}": value for key, value in scores.items()}
    plot_log(log.lines)
    results["tokens_per_second"] = log.tokens_per_second
    results["seconds"] = round(time.perf_counter() - started, 1)
    print(f"Saved {final}.")
    print(json.dumps(results), flush=True)


def plan_phases():
    """Returns the phases, one a folder, that share the steps as `--shares` says."""
    folders, heldout = FLAGS.data_dir, FLAGS.heldout_dir
    shares = phase_shares(len(folders))
    if len(heldout) not in (0, 1, len(folders)):
        raise app.UsageError(
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
        raise app.UsageError(
            f"--shares must be {num_phases} numbers from 0 with the sum 1, one for each folder of "
            f"--data_dir. Received: {FLAGS.shares}."
        )
    return shares


def choose_objective(phases):
    has_pairs = all(read_manifest(p.data)["objective"] != "full_sentences" for p in phases)
    if FLAGS.objective == "both" and not has_pairs:
        raise app.UsageError("--objective both needs pairs: data that is not full_sentences.")
    if FLAGS.objective == "both" and FLAGS.causal:
        raise app.UsageError(
            "--objective both needs a first token that sees the text, which --causal forbids."
        )
    has_both = has_pairs and FLAGS.objective != "masked_lm" and not FLAGS.causal
    return "both" if has_both else "masked_lm"


def settings(phases):
    """Returns what the losses depend on: flags, the data's checksums, and the backend."""
    values = FLAGS.flags_by_module_dict()[FLAGS.find_module_defining_flag("num_steps")]
    chosen = {flag.name: flag.value for flag in values if flag.name not in NOT_SETTINGS}
    data = [digest(phase.data) for phase in phases]
    heldout = [digest(phase.heldout) for phase in phases if phase.heldout]
    return {**chosen, "data": data, "heldout": heldout, "backend": keras.backend.backend()}


def digest(folder):
    checksums = [shard["sha256"] for shard in read_manifest(folder)["shards"]]
    return hashlib.sha256("".join(checksums).encode()).hexdigest()[:16]


def make_model(phases, objective):
    task = bert_keras.Pretraining if objective == "both" else bert_keras.MaskedLM
    data_tokenizer = bert_keras.WordPieceTokenizer.load(phases[0].data)
    if FLAGS.preset:
        model = task.from_preset(
            FLAGS.preset,
            dropout=FLAGS.dropout,
            attention_dropout=FLAGS.attention_dropout,
            dtype=FLAGS.dtype,
            remat=FLAGS.remat,
            masking=make_masking(),
            **({"causal": True} if FLAGS.causal else {}),
        )
        tokenizer = model.preprocessor.tokenizer
    else:
        tokenizer = data_tokenizer
        if FLAGS.vocabulary:
            tokenizer = bert_keras.WordPieceTokenizer.load(FLAGS.vocabulary)
        backbone = bert_keras.BertBackbone(
            vocabulary_size=tokenizer.vocabulary_size,
            num_layers=FLAGS.num_layers,
            num_heads=FLAGS.num_heads,
            hidden_dim=FLAGS.hidden_dim,
            intermediate_dim=FLAGS.intermediate_dim or 4 * FLAGS.hidden_dim,
            max_sequence_length=FLAGS.max_sequence_length,
            activation=FLAGS.activation,
            initializer_range=FLAGS.initializer_range,
            dropout=FLAGS.dropout,
            attention_dropout=FLAGS.attention_dropout,
            dtype=FLAGS.dtype,
            causal=FLAGS.causal,
            remat=FLAGS.remat,
        )
        preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=FLAGS.max_sequence_length)
        model = task(backbone, preprocessor=preprocessor, masking=make_masking())
    if tokenizer.vocabulary != data_tokenizer.vocabulary:
        raise app.UsageError(
            f"The data was made with another vocabulary ({data_tokenizer.vocabulary_size} tokens) "
            f"than the model's ({tokenizer.vocabulary_size}). Make the data with the model's: "
            "create_pretraining_data.py --vocabulary."
        )
    return model


def make_masking():
    return Masking(
        rate=FLAGS.mask_rate,
        mask_share=FLAGS.mask_share,
        random_share=FLAGS.random_share,
        strategy=FLAGS.mask_strategy,
        max_predictions=FLAGS.max_predictions,
    )


def make_optimizer():
    optimizer = {"adamw": AdamW, "lamb": Lamb}[FLAGS.optimizer]
    accumulation = FLAGS.gradient_accumulation_steps
    return optimizer(
        WarmupDecay(FLAGS.learning_rate, FLAGS.num_steps, warmup=FLAGS.warmup),
        weight_decay=FLAGS.weight_decay,
        global_clipnorm=FLAGS.clip_norm,
        gradient_accumulation_steps=accumulation if accumulation > 1 else None,
    )


def make_batches(folder, objective, batch_size, **options):
    is_masked = read_manifest(folder)["masking"] is not None
    batches = PretrainingBatches(
        folder,
        batch_size,
        masking=None if is_masked else make_masking(),
        seed=FLAGS.seed,
        **options,
    )
    return batches if objective == "both" else MaskedOnly(batches)


class MaskedOnly(keras.utils.PyDataset):
    """The batches of `PretrainingBatches` without next sentences, for `MaskedLM`."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches
        self.sequence_length = batches.sequence_length

    @property
    def num_batches(self):
        return self.batches.num_batches

    def __getitem__(self, index):
        inputs, labels, weights = self.batches[index]
        return inputs, labels["masked_lm"], weights["masked_lm"]


def train(model, phase, objective, checkpoint, log):
    """Trains on the steps of a phase that are not done yet, in epochs of `--log_every` steps."""
    whole, rest = divmod(max(0, phase.last - max(phase.first, checkpoint.step)), FLAGS.log_every)
    for steps, epochs in ((FLAGS.log_every, whole), (rest, 1)):
        if not steps * epochs:
            continue
        batches = make_batches(
            phase.data, objective, phase.batch_size, start_step=checkpoint.step - phase.first
        )
        log.tokens_per_step = phase.batch_size * batches.sequence_length
        if phase.heldout:
            log.evaluate = lambda model: evaluate(model, phase, objective)
        model.fit(
            batches,
            steps_per_epoch=steps,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=[log, checkpoint],
        )


def evaluate(model, phase, objective):
    """Returns loss and metrics on held-out data, masked always alike."""
    batches = make_batches(phase.heldout, objective, phase.batch_size, shuffle=False)
    scores = model.evaluate(batches, verbose=0, return_dict=True)
    return {name: float(value) for name, value in scores.items()}


def plot_log(lines, name="pretraining.png"):
    """Draws losses, accuracies and the learning rate over the steps into `--plot_dir`."""
    if not FLAGS.plot_dir:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = ("loss", "accuracy", "learning_rate")
    figure, axes = plt.subplots(1, len(titles), figsize=(4.5 * len(titles), 3.5))
    for axis, title in zip(axes, titles, strict=True):
        for key in sorted({key for line in lines for key in line if key.endswith(title)}):
            points = [(line["step"], line[key]) for line in lines if key in line]
            style = "o-" if key.startswith("heldout_") else "-"
            axis.plot(*zip(*points, strict=True), style, label=key, markersize=3)
        axis.set(xlabel="step", title=title)
        axis.legend(fontsize=6)
    os.makedirs(FLAGS.plot_dir, exist_ok=True)
    figure.tight_layout()
    figure.savefig(os.path.join(FLAGS.plot_dir, name), dpi=120)
    logging.info("Drew %s", os.path.join(FLAGS.plot_dir, name))


if __name__ == "__main__":
    app.run(main)
