r"""What a teacher is worth: its layers to begin with, and its answers to learn from.

    python benchmarks/distillation.py --data_dir gutenberg --output_dir distilled
    python benchmarks/distillation.py --data_dir gutenberg --sst2_dir SST-2 --output_dir distilled

A student of two layers learns the language of the books that the teacher, the package's own
`bert_mini_en_gutenberg`, was trained on: begun with the teacher's layers 0 and 2 and taught by its
answers, begun with random weights and taught, or begun with the layers and left to masked tokens
alone. Each reads the same batches with the same masks, `--seeds` times; the loss at masked tokens
of the three books that the teacher has not seen, always the same tokens, is measured at the same
steps. Seconds are those of the processor in training steps: being taught costs more a step, since
the teacher reads too and both answer at all tokens, so the last row goes on with masked tokens
alone for `--longer` times the steps, on a schedule of its own.

With `--sst2_dir` the package's MiniLM is fine-tuned on `--sample` sentences of SST-2, and students
of its layers 0, 2 and 4 learn the same sentences with and without its answers: accuracy on the dev
set, whose 872 sentences have a standard error of some 1.2 points.

Each run is a JSON file in `--output_dir`, whose runs are not repeated: the same command goes on
where a killed one stopped. Prints both tables in Markdown. KERAS_BACKEND chooses the backend.
"""

import json
import math
import os
import statistics
import time
from pathlib import Path

import books
import keras
from absl import app, flags

import bert_keras
from bert_keras import datasets

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(books)  # for --help
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2; without it no classifiers.")
flags.DEFINE_integer("seeds", 2, "Runs of each row.", 1)
flags.DEFINE_integer("steps", 60, "Steps of a run.", 1)
flags.DEFINE_integer("evaluate_every", 15, "Steps between two measurements.", 1)
flags.DEFINE_integer("longer", 4, "Times the steps of the last row.", 1)
flags.DEFINE_integer("batch_size", 32, "Rows of a step.", 1)
flags.DEFINE_integer("sequence_length", 64, "Tokens of a row.", 8)
flags.DEFINE_integer("heldout_rows", 256, "Rows that are measured.", 1)
flags.DEFINE_float("learning_rate", 1e-3, "Peak rate of the language models.")
flags.DEFINE_integer("sample", 5000, "Sentences of SST-2.", 1)
flags.DEFINE_integer("epochs", 3, "Times to go through them.", 1)


@flags.multi_flags_validator(
    ["steps", "evaluate_every"], "--steps must be a multiple of --evaluate_every."
)
def divides(given):
    return given["steps"] % given["evaluate_every"] == 0


# Row -> whether it begins with the teacher's layers, whether it is taught, and if it runs longer.
LANGUAGE_MODELS = {
    "layers 0 and 2, taught": (True, True, False),
    "random weights, taught": (False, True, False),
    "layers 0 and 2, masked tokens alone": (True, False, False),
    "the same, longer": (True, False, True),
}
# Row -> whose layers it begins with, and whether it is taught.
CLASSIFIERS = {
    "the fine-tuned teacher's layers, taught": ("teacher", True),
    "the same without its answers": ("teacher", False),
    "the checkpoint's layers, no teacher": ("checkpoint", False),
}


def main(argv):
    bert_keras.keep_freed_memory()
    books.check_settings("sst2_dir")
    seeds = range(FLAGS.seeds)
    runs = [(row, seed) for seed in seeds for row in LANGUAGE_MODELS]
    teacher = kept("teacher", measure_teacher)
    print(losses_table(teacher, {run: kept(name_of(*run), train, *run) for run in runs}))
    if FLAGS.sst2_dir:
        runs = [(row, seed) for seed in seeds for row in ("the teacher", *CLASSIFIERS)]
        print(accuracies_table({run: kept(name_of(*run), classify, *run) for run in runs}))


def kept(name, measure, *arguments):
    """Returns the results of a run, measured now unless its file is there."""
    path = Path(FLAGS.output_dir, f"{name}.json")
    if not path.exists():
        found = measure(*arguments)
        path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(f"{name}: {found}", flush=True)
    return json.loads(path.read_text(encoding="utf-8"))


def name_of(row, seed):
    return f"{row} {seed}".replace(" ", "_").replace(",", "").replace("'", "")


# Language models


def batches(part, **options):
    """Returns the batches of one part of the books, `train` or `heldout`."""
    length, rows = FLAGS.sequence_length, FLAGS.batch_size
    return books.batches(part, "full_sentences", length, rows, **options)


def heldout_loss(model):
    """Returns the mean loss at masked tokens of held-out books, always the same ones."""
    steps = FLAGS.heldout_rows // FLAGS.batch_size
    scores = model.evaluate(
        batches("heldout", shuffle=False), steps=steps, verbose=0, return_dict=True
    )
    return math.log(scores["perplexity"])


def measure_teacher():
    return {"loss": heldout_loss(bert_keras.MaskedLM.from_preset(books.PRESET))}


def train(row, seed):
    """Returns the steps that were measured, the losses there, and the seconds of training."""
    has_layers, is_taught, is_longer = LANGUAGE_MODELS[row]
    keras.utils.set_random_seed(seed)
    teacher = bert_keras.MaskedLM.from_preset(books.PRESET)
    model = bert_keras.distill(teacher, (0, 2) if has_layers else untrained(teacher, 2))
    student = model.student
    model = model if is_taught else student
    times = FLAGS.longer if is_longer else 1
    schedule = bert_keras.training.WarmupDecay(FLAGS.learning_rate, times * FLAGS.steps)
    model.compile(bert_keras.training.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0))
    losses, seconds = [heldout_loss(student)], 0.0
    every = times * FLAGS.evaluate_every
    for step in range(0, times * FLAGS.steps, every):
        data = batches("train", seed=seed, start_step=step, has_next_sentence=False)
        started = time.process_time()
        model.fit(data, steps_per_epoch=every, shuffle=False, verbose=0)
        seconds += time.process_time() - started
        losses.append(heldout_loss(student))
    return {"every": every, "losses": losses, "seconds": seconds}


def untrained(teacher, num_layers):
    """Returns a language model of the teacher's sizes, less deep, with random weights."""
    sizes = {**teacher.backbone.get_config(), "num_layers": num_layers, "name": None}
    return bert_keras.MaskedLM(type(teacher.backbone).from_config(sizes), teacher.preprocessor)


def losses_table(teacher, runs):
    """Returns the losses in Markdown: means over the seeds, and how far these lie apart."""
    steps = range(0, FLAGS.steps + 1, FLAGS.evaluate_every)
    lines = [f"| step | {' | '.join(map(str, steps))} | seconds |", "|---" * (len(steps) + 2) + "|"]
    for row in LANGUAGE_MODELS:
        found = [run for (name, _), run in runs.items() if name == row]
        cells = [
            books.cell(values, 2) for values in zip(*(run["losses"] for run in found), strict=True)
        ]
        name = f"{row}, {FLAGS.longer} times the steps" if LANGUAGE_MODELS[row][2] else row
        seconds = statistics.mean(run["seconds"] for run in found)
        lines.append(f"| {name} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join([*lines, f"\nThe teacher's own loss is {teacher['loss']:.2f}.\n"])


# Classifiers


def classify(row, seed):
    """Returns the accuracy on SST-2's dev set, and the seconds of training."""
    keras.utils.set_random_seed(seed)
    train = datasets.load_glue("SST-2", FLAGS.sst2_dir, "train")
    # Sampled alike for all seeds, since all students have one teacher.
    train = datasets.split_examples(train, test_size=FLAGS.sample, seed=0)[1]
    folder = os.path.join(FLAGS.output_dir, "teacher_of_sentences")
    begins_with, is_taught = CLASSIFIERS.get(row, ("checkpoint", False))
    preset = folder if begins_with == "teacher" else "minilm_l6_en_uncased"
    options = {"num_classes": 2, "max_length": 64, "pooling": "mean"}
    model = teacher = bert_keras.TextClassifier.from_preset(preset, **options)
    if row in CLASSIFIERS:
        model = bert_keras.distill(teacher, (0, 2, 4))
        model = model if is_taught else model.student
    model.compile(learning_rate=1e-4)
    started = time.process_time()
    model.fit(train.texts, train.labels, epochs=FLAGS.epochs, batch_size=32, verbose=0)
    seconds = time.process_time() - started
    if row not in CLASSIFIERS and seed == 0:
        model.save_to_preset(folder)
    dev = datasets.load_glue("SST-2", FLAGS.sst2_dir, "dev")
    right = model.predict(dev.texts, verbose=0).argmax(-1) == dev.labels
    parameters = getattr(model, "student", model).count_params()
    return {"accuracy": float(right.mean()), "seconds": seconds, "parameters": parameters}


def accuracies_table(runs):
    """Returns the accuracies in Markdown."""
    lines = ["| | parameters | accuracy | seconds |", "|---|---|---|---|"]
    for row in ("the teacher", *CLASSIFIERS):
        found = [run for (name, _), run in runs.items() if name == row]
        accuracy = books.cell([run["accuracy"] for run in found], 4)
        seconds = statistics.mean(run["seconds"] for run in found)
        lines.append(f"| {row} | {found[0]['parameters']:,} | {accuracy} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    app.run(main)
