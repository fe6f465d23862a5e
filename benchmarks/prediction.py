"""How long one text and a batch of 32 take from text to outputs, by several ways in turn.

    KERAS_BACKEND=torch python benchmarks/prediction.py --before=/path/of/another/checkout

The ways: this package, Keras's own `predict` on the same model, transformers with the same weights
on PyTorch, and this package as another checkout has it. Each has a process of its own on one
thread, and they take turns, so that the machine's speed meets all of them alike. What is printed
is the median over the rounds, with the quartiles, of each round's quickest call.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import app, flags
from turns import THREADS

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Name or folder.")
flags.DEFINE_string("before", None, "Another checkout of this repository.")
flags.DEFINE_integer("rounds", 15, "Turns of each way.", 1)
flags.DEFINE_integer("calls", 10, "Calls in a turn.", 1)
flags.DEFINE_string("way", None, "For the processes that the script starts: what to time.")
flags.DEFINE_string("folder", None, "The same: where the weights are.")

TEXT = "A gripping, well made film that never lets go of its audience, and hardly a dull minute."
TEXTS = {"one text": [TEXT], "32 texts": [TEXT] * 32}
HERE = pathlib.Path(__file__).resolve()


def main(_):
    if FLAGS.way:
        return serve()
    print(f"{FLAGS.preset}, KERAS_BACKEND={os.environ.get('KERAS_BACKEND')}, one thread")
    with tempfile.TemporaryDirectory() as folder:
        ways = ["ours", "keras", "transformers", *(["before"] if FLAGS.before else [])]
        children = {way: start(way, folder) for way in ways}  # The first one writes the weights.
        found = {way: [] for way in ways}
        for _ in range(FLAGS.rounds):
            for way, child in children.items():
                found[way].append(ask(child))
        for child in children.values():
            child.stdin.close()
            child.wait()
    for number, name in enumerate(TEXTS):
        for way in ways:
            low, median, high = np.percentile([turn[number] for turn in found[way]], [25, 50, 75])
            print(f"{name}, {way:12}: {median:7.2f} ms ({low:.2f} to {high:.2f})")


def start(way, folder):
    """Starts the process of a way and waits until it has warmed up."""
    root = FLAGS.before if way == "before" else HERE.parent.parent
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(root)}
    command = [sys.executable, HERE, f"--way={way}", f"--folder={folder}", f"--calls={FLAGS.calls}"]
    child = subprocess.Popen(
        [*command, f"--preset={FLAGS.preset}"],
        env={
            **environment,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    ask(child)
    return child


def ask(child):
    """Returns the milliseconds of one turn."""
    print(file=child.stdin, flush=True)
    for line in child.stdout:
        if line.startswith("ms "):
            return [float(number) for number in line.split()[1:]]
    raise RuntimeError(f"A process ended with {child.wait()}.")


def serve():
    calls = [make_call(texts) for texts in TEXTS.values()]
    for call in calls:
        call()
    for _ in sys.stdin:
        print(
            "ms",
            *(1e3 * min(seconds(call) for _ in range(FLAGS.calls)) for call in calls),
            flush=True,
        )


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def make_call(texts):
    """Returns a function that reads texts once, as the way has it."""
    if FLAGS.way == "transformers":
        return transformers_call(texts)
    import keras

    import bert_keras

    exported = os.path.join(FLAGS.folder, "exported")
    source = exported if os.path.exists(exported) else FLAGS.preset
    classifier = bert_keras.TextClassifier.from_preset(source, num_classes=2)
    if not os.path.exists(exported):
        classifier.export_to_huggingface(exported)
    if FLAGS.way == "keras":
        pack = classifier.preprocessor
        return lambda: keras.Model.predict(classifier, pack(texts), verbose=0)
    return lambda: classifier.predict(texts, verbose=0)


def transformers_call(texts):
    import torch
    import transformers

    torch.set_num_threads(1)
    exported = os.path.join(FLAGS.folder, "exported")
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(exported).eval()

    @torch.inference_mode()
    def call():
        inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        return model(**inputs).logits.numpy()

    return call


if __name__ == "__main__":
    app.run(main)
