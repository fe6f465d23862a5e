r"""What each choice of pre-training is worth, at a size where one run takes about ten minutes.

    python benchmarks/pretraining_ablations.py --input 'books/train/01*' \
        --heldout 'books/heldout/*' --vocabulary vocab.txt --sst2_dir SST-2 --mrpc_dir MRPC \
        --wnut17_dir wnut17 --output_dir ablations

Each row of the table changes one thing of BERT-tiny's pre-training (2 layers, 128 wide; rows of 32
tokens first and of 64 then, since a model as small as this learns sooner from short ones), with
`--seeds` seeds: without next sentences, with the left context only (see below), other shares of
[MASK] and random tokens (its table 8), masks drawn once, whole words, and no pre-training at all.
The left context only is not the paper's "LTR & No NSP" of table 5, which predicts every next token:
here masked tokens are guessed, as in the other rows, from what stands to the left of them.
All rows are measured alike: masked tokens of held-out books, masked as in the paper, and three
fine-tuned tasks, with the mean of the tokens as a text's vector, since the first token sees nothing
where tokens see the left context only. Seconds are those of the training steps.

It runs bert-keras pretraining-data, pretrain, train text_classification and
token_classification. Every result is kept in results.jsonl as soon as it is there: the same
command goes on where a killed one stopped; other flags need another folder. Writes table.md, and
prints it.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "Text files to train on, a book each: a pattern.", required=True)
flags.DEFINE_string("heldout", None, "Text files to measure on: a pattern.", required=True)
flags.DEFINE_string("vocabulary", None, "vocab.txt, lowercase.", required=True)
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2.", required=True)
flags.DEFINE_string("mrpc_dir", None, "Folder of MRPC.", required=True)
flags.DEFINE_string("wnut17_dir", None, "Folder of WNUT-17.", required=True)
flags.DEFINE_string("output_dir", None, "Folder for data, models and results.", required=True)
flags.DEFINE_integer("seeds", 2, "Runs of each row.", 1)
flags.DEFINE_integer("num_steps", 1300, "Steps of pre-training.", 1)
flags.DEFINE_integer("batch_size", 128, "Rows of a step of the first phase.", 1)
flags.DEFINE_list("sequence_length", ["32", "64"], "Tokens of a row, one number a phase.")
flags.DEFINE_list("shares", ["0.6", "0.4"], "Share of the steps in each phase.")
flags.DEFINE_float("learning_rate", 2e-3, "Peak rate of pre-training.")
flags.DEFINE_string("dtype", "float32", "float32 or mixed_bfloat16, of pre-training.")
flags.DEFINE_integer("sample", None, "Train each fine-tuned task on so many examples.", 1)
flags.DEFINE_list("rows", None, "Rows to run, by name; without it all.")
flags.DEFINE_string("measure", None, "A model's folder: print its scores on the held-out data.")

# What changes no value of the table.
NOT_SETTINGS = ("output_dir", "seeds", "rows", "measure")
SIZES = ("--num_layers=2", "--hidden_dim=128", "--num_heads=2", "--initializer_range=0.09")

# Row -> what it changes: flags of `pretraining-data`, and of `pretrain`.
ROWS = {
    "BERT": ((), ()),
    "no next sentences": ((), ("--objective=masked_lm",)),
    "left context only, no next sentences": ((), ("--causal",)),
    "100 % [MASK]": ((), ("--mask_share=1", "--random_share=0")),
    "100 % random tokens": ((), ("--mask_share=0", "--random_share=1")),
    "masks drawn once": (("--static_masking",), ()),
    "whole words": ((), ("--mask_strategy=whole_words",)),
    "not pre-trained": ((), ("--num_steps=1", "--learning_rate=0")),
}
# Fine-tuned task -> task of `train`, flags, and the metric of the last line. Rate and epochs are
# among those that google-research/bert tries for its small models.
TASKS = {
    "SST-2 accuracy": (
        "text_classification",
        ("--dataset=SST-2", "--pooling=mean"),
        "accuracy",
    ),
    "MRPC accuracy": (
        "text_classification",
        ("--dataset=MRPC", "--pooling=mean"),
        "accuracy",
    ),
    "WNUT-17 F1": ("token_classification", (), "f1"),
}
FINE_TUNING = ("--learning_rate=3e-4", "--epochs=4")
HELDOUT = ("masked tokens", "perplexity")


def main(argv):
    if FLAGS.measure:
        print(json.dumps(measure(FLAGS.measure)), flush=True)
        return
    folder = Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder / "results.jsonl", settings())
    make_data(folder / "heldout", FLAGS.heldout, FLAGS.sequence_length[-1])
    for seed in range(FLAGS.seeds):
        for row in FLAGS.rows or ROWS:
            run_row(row, seed, folder, results)
            (folder / "table.md").write_text(table(results), encoding="utf-8")
    print(table(results))


def settings():
    """Returns the flags that the results depend on."""
    own = FLAGS.flags_by_module_dict()[FLAGS.find_module_defining_flag("wnut17_dir")]
    return {flag.name: flag.value for flag in own if flag.name not in NOT_SETTINGS}


class Results:
    """What has been measured, by (row, seed, metric); kept in a file behind the settings."""

    def __init__(self, path, settings):
        self.path = path
        if not path.exists():
            path.write_text(json.dumps({"settings": settings}) + "\n", encoding="utf-8")
        first, *entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if first.get("settings") != settings:
            raise SystemExit(
                "Results of one folder must be measured with the same flags. Received: "
                f"{path} with {first.get('settings')}, now {settings}. Choose another --output_dir."
            )
        self.known = {tuple(entry["key"]): entry["value"] for entry in entries}

    def add(self, row, seed, values):
        """Keeps a dict of values by the names of their metrics."""
        with open(self.path, "a", encoding="utf-8") as file:
            for metric, value in values.items():
                self.known[row, seed, metric] = value
                file.write(json.dumps({"key": [row, seed, metric], "value": value}) + "\n")

    def has(self, row, seed, metric):
        """Whether a value is known."""
        return (row, seed, metric) in self.known

    def of(self, row, metric):
        """Returns the values of all seeds."""
        return [v for (r, _, m), v in self.known.items() if (r, m) == (row, metric)]


def make_data(folder, pattern, sequence_length, arguments=()):
    """Returns a folder of examples, made now if it is not there."""
    if not (folder / "manifest.json").exists():
        run(
            "pretraining-data",
            f"--input={pattern}",
            f"--vocabulary={FLAGS.vocabulary}",
            "--documents=file",
            f"--sequence_length={sequence_length}",
            f"--output_dir={folder}",
            *arguments,
        )
    return folder


def run_row(row, seed, folder, results):
    """Pre-trains, measures and fine-tunes one row with one seed, as far as it has not been done."""
    data_flags, pretrain_flags = ROWS[row]
    data = []
    for length in FLAGS.sequence_length:
        rows = folder / "_".join(["data", length, *data_flags]).replace("--", "")
        data.append(str(make_data(rows, FLAGS.input, length, data_flags)))
    name = f"{row} {seed}".replace(" ", "_").replace("%", "percent").replace(",", "")
    place = folder / name
    if not results.has(row, seed, "masked tokens"):
        print(f"Pre-training: {row}, seed {seed}.", flush=True)
        scores = run(
            "pretrain",
            f"--data_dir={','.join(data)}",
            f"--shares={','.join(FLAGS.shares)}",
            f"--output_dir={place}",
            *SIZES,
            f"--num_steps={FLAGS.num_steps}",
            f"--batch_size={FLAGS.batch_size}",
            f"--learning_rate={FLAGS.learning_rate}",
            f"--dtype={FLAGS.dtype}",
            "--warmup=0.05",
            "--dropout=0",
            "--attention_dropout=0",
            "--notensorboard",
            f"--checkpoint_every={max(1, FLAGS.num_steps // 4)}",
            f"--seed={seed}",
            *pretrain_flags,
        )
        command = [sys.executable, *sys.argv, f"--measure={place / 'final'}"]
        measured = last_line(command)
        results.add(row, seed, {**measured, "seconds": scores["seconds"]})
    for task, (script, task_flags, metric) in TASKS.items():
        if results.has(row, seed, task):
            continue
        directory = getattr(FLAGS, task.split()[0].lower().replace("-", "") + "_dir")
        scores = run(
            f"train {script}",
            f"--preset={place / 'final'}",
            f"--data_dir={directory}",
            f"--output_dir={place / 'fine_tuned'}",
            "--overwrite",
            *FINE_TUNING,
            *task_flags,
            *([f"--sample={FLAGS.sample}"] if FLAGS.sample else []),
            f"--seed={seed}",
        )
        results.add(row, seed, {task: scores[metric]})
        print(f"{row}, seed {seed}: {task} {scores[metric]:.4f}", flush=True)


def run(command, *arguments):
    """Runs `bert-keras` and returns the JSON object of its last line."""
    return last_line([sys.executable, "-m", "bert_keras", *command.split(), *arguments])


def last_line(command):
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{process.stderr[-3000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def measure(folder):
    """Returns accuracy and perplexity on the held-out data, masked as the paper masks."""
    import bert_keras
    from bert_keras.corpora import PretrainingBatches

    heldout = os.path.join(FLAGS.output_dir, "heldout")
    batches = PretrainingBatches(heldout, FLAGS.batch_size, shuffle=False)
    # A head for next sentences that was not trained starts at random; its score is not used.
    model = bert_keras.Pretraining.from_preset(folder)
    scores = model.evaluate(batches, verbose=0, return_dict=True)
    names = ("masked_lm_accuracy", "masked_lm_perplexity")
    return {ours: scores[name] for ours, name in zip(HELDOUT, names, strict=True)}


def table(results):
    """Returns the table in Markdown: means, and in brackets the lowest and the highest."""
    metrics = [*HELDOUT, *TASKS, "seconds"]
    lines = ["| | " + " | ".join(metrics) + " |", "|---" * (len(metrics) + 1) + "|"]
    for row in ROWS:
        cells = [cell(results.of(row, metric), metric) for metric in metrics]
        if any(cells):
            lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(values, metric):
    if not values:
        return ""
    digits = {"perplexity": 1, "seconds": 0}.get(metric, 4)
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1 or metric == "seconds":
        return mean
    return f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})"


if __name__ == "__main__":
    app.run(main)
