"""How long the first epoch of a small set lasts where XLA compiles, and the next ones.

    python benchmarks/first_epoch.py --sst2_dir SST-2 --backends jax --rounds 3

MiniLM is fine-tuned on 640 sentences in batches of 32, in a new process each time and without
programs that were kept. Sides, in turns: "every length", where each length of `length_buckets` is
a program, and "worth it", what `fit` does: those that save more than they cost, see
`buckets_worth_compiling`. They differ where `task_data.COMPILATION` names a cost, on JAX, or with
`--cost`. Printed in Markdown, medians over the rounds: shapes, seconds of the first epoch and of
each that follows, and of all; and last how the sums of both sides compare.
"""

import json
import os
import statistics
import subprocess
import sys
import time

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2.", required=True)
flags.DEFINE_list("backends", ["jax"], "Backends.")
flags.DEFINE_list("epochs", ["1", "3"], "Numbers of epochs.")
flags.DEFINE_integer("num_texts", 640, "Sentences.", 1)
flags.DEFINE_integer("rounds", 3, "Rounds.", 1)
flags.DEFINE_float("cost", None, "In place of `task_data.COMPILATION`, for another machine or backend.")
flags.DEFINE_string("side", None, "A side to run in this process: for the command itself.")
SIDES = ("every length", "worth it")


def main(argv):
    if FLAGS.side:
        print(json.dumps(fine_tuned(FLAGS.side, int(FLAGS.epochs[0]))))
        return
    print("| backend, epochs | lengths | shapes | first epoch, s | each later one, s | all, s |")
    print("|---|---|---|---|---|---|")
    for backend in FLAGS.backends:
        for epochs in FLAGS.epochs:
            rounds = [
                [started(side, backend, epochs) for side in SIDES] for _ in range(FLAGS.rounds)
            ]
            for side, runs in zip(SIDES, zip(*rounds, strict=True), strict=True):
                first, later, whole = (
                    statistics.median(column)
                    for column in zip(*(parts_of(run) for run in runs), strict=True)
                )
                told = f"{first:.1f} | {later:.2f}" if int(epochs) > 1 else f"{first:.1f} | "
                print(
                    f"| {backend}, {epochs} | {side} | {runs[0]['shapes']} | {told} | {whole:.1f} |"
                )
            ratios = [sum(old["seconds"]) / sum(new["seconds"]) for old, new in rounds]
            print(f"| | times quicker | | | | {statistics.median(ratios):.2f} |", flush=True)


def parts_of(run):
    first, *later = run["seconds"]
    return first, statistics.mean(later or [0]), sum(run["seconds"])


def started(side, backend, epochs):
    """Returns what a new process reports."""
    command = [sys.executable, __file__, f"--side={side}", f"--epochs={epochs}"]
    command += [f"--sst2_dir={FLAGS.sst2_dir}", f"--num_texts={FLAGS.num_texts}"]
    command += [f"--cost={FLAGS.cost}"] if FLAGS.cost is not None else []
    environment = {"KERAS_BACKEND": backend, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    environment = {**os.environ, **environment, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def fine_tuned(side, epochs):
    """Returns the shapes of the batches and the seconds of each epoch, compiling among them."""
    import keras

    import bert_keras
    from bert_keras import datasets
    from bert_keras.tasks import task_data

    cost = 0 if side == "every length" else FLAGS.cost
    if cost is not None:
        task_data.COMPILATION[keras.backend.backend()] = cost
    train = datasets.load_glue("SST-2", FLAGS.sst2_dir, "train").take(range(FLAGS.num_texts))
    keras.utils.set_random_seed(0)
    model = bert_keras.TextClassifier.from_preset("minilm_l6_en_uncased", num_classes=2)
    model.compile()
    ends = []
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.perf_counter()))
    begun = time.perf_counter()
    model.fit(train.texts, train.labels, epochs=epochs, verbose=0, callbacks=[note])
    seconds = [end - start for start, end in zip([begun, *ends], ends, strict=False)]
    examples, lengths = model.data.encode(train.texts, train.labels), set()
    for epoch in range(epochs):
        batches = model.data.batches(examples, None, True, epoch, num_epochs=epochs)
        lengths |= {length for _, length in batches.batches}
    return {"shapes": len(lengths), "seconds": seconds}


if __name__ == "__main__":
    app.run(main)
