"""Processor time and memory per text of `fit`, `predict`, `classify`, and of tokenizing alone.

    python benchmarks/growth.py --backends jax --sizes 10000,100000

The texts have 5 to 12 words. A classifier with one layer of width 16 computes next to nothing: the
rest is the cost of the host. Each cell is a process of its own, which compiles before it measures.
Memory is the peak above that before the call, which has the texts. `transformers` is a plain loop
over a model of the same size: its tokenizer pads batches of 32 texts, and AdamW is fused.
"""

import gc
import json
import os
import random
import subprocess
import sys
import time

from absl import app, flags
from result_tables import as_table

FLAGS = flags.FLAGS
flags.DEFINE_list("backends", ["jax", "tensorflow", "torch", "transformers"], "Backends.")
flags.DEFINE_list("methods", ["tokenize", "fit", "predict", "classify"], "Methods.")
flags.DEFINE_list("sizes", ["10000", "100000", "1000000"], "Numbers of texts.")
flags.DEFINE_bool("measure", False, "Whether to measure the first of each in this process.")

ROLES, WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], [f"w{i}" for i in range(1000)]
NAMES = ["negative", "positive"]


def main(_):
    if FLAGS.measure:
        print(json.dumps(measured(FLAGS.backends[0], FLAGS.methods[0], int(FLAGS.sizes[0]))))
        return
    rows = []
    for backend in FLAGS.backends:
        for method in FLAGS.methods:
            if not hasattr(SIDES.get(backend, BertKeras), method):
                continue
            cells = [
                found for size in FLAGS.sizes for found in in_new_process(backend, method, size)
            ]
            rows.append((backend, method, *cells))
            print(*rows[-1], file=sys.stderr, flush=True)
    columns = [f"{what}, {size}" for size in FLAGS.sizes for what in ("microseconds", "bytes")]
    print(as_table(["backend", "method", *columns], rows))


def in_new_process(backend, method, size):
    command = [sys.executable, __file__, "--measure", f"--backends={backend}"]
    command += [f"--methods={method}", f"--sizes={size}"]
    keras_backend = "torch" if backend == "transformers" else backend
    output = subprocess.check_output(
        command, env=os.environ | {"KERAS_BACKEND": keras_backend}, stderr=subprocess.DEVNULL
    )
    return json.loads(output.splitlines()[-1])


def measured(backend, method, size):
    """Returns the processor's microseconds and the bytes of memory per text."""
    random.seed(0)
    call = getattr(SIDES.get(backend, BertKeras)(), method)

    def seconds(texts):
        labels = [random.choices(NAMES, k=len(texts))] if method == "fit" else []
        start = time.process_time()
        call(texts, *labels)
        return time.process_time() - start

    seconds(random_texts(3200))
    texts = random_texts(size)
    gc.collect()
    before = resident("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # Lets the peak begin anew.
    microseconds = 1e6 * seconds(texts) / size
    return round(microseconds, 1), round((resident("VmHWM") - before) / size)


def random_texts(size):
    return [" ".join(random.choices(WORDS, k=random.randint(5, 12))) for _ in range(size)]


def resident(name):
    """Returns a number of bytes from what Linux says of this process."""
    with open("/proc/self/status") as file:
        return 1024 * int(next(line for line in file if line.startswith(name)).split()[1])


class BertKeras:
    def __init__(self):
        import bert_keras

        sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 64}
        tokenizer = bert_keras.WordPieceTokenizer([*ROLES, *WORDS])
        self.classifier = bert_keras.TextClassifier(
            bert_keras.BertBackbone(len(ROLES) + len(WORDS), max_sequence_length=64, **sizes),
            preprocessor=bert_keras.TextPreprocessor(tokenizer, max_length=64),
            label_names=NAMES,
        )
        # With the default, each `fit` compiles for an optimizer of its own.
        self.classifier.compile(bert_keras.AdamW(5e-5))

    def tokenize(self, texts):
        self.classifier.preprocessor.tokenize(texts)

    def fit(self, texts, labels):
        self.classifier.fit(texts, labels, epochs=1, verbose=0)

    def predict(self, texts):
        self.classifier.predict(texts, verbose=0)

    def classify(self, texts):
        self.classifier.classify(texts)


class Transformers:
    def __init__(self):
        import torch
        import transformers

        self.torch = torch
        vocabulary = {token: number for number, token in enumerate([*ROLES, *WORDS])}
        self.tokenizer = transformers.BertTokenizerFast(vocab=vocabulary)
        sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16}
        sizes |= {"intermediate_size": 64, "max_position_embeddings": 64}
        self.model = transformers.BertForSequenceClassification(
            transformers.BertConfig(vocab_size=len(vocabulary), **sizes)
        )

    def batch(self, texts):
        options = {"truncation": True, "max_length": 64, "return_tensors": "pt"}
        return self.tokenizer(texts, padding=True, **options)

    def fit(self, texts, labels):
        from sides import hugging_face

        step = hugging_face.stepper(self.model.train())
        labels = self.torch.tensor(list(map(NAMES.index, labels)))
        for rows in self.torch.randperm(len(texts)).split(32):
            step({**self.batch([texts[row] for row in rows]), "labels": labels[rows]})

    def predict(self, texts):
        self.model.eval()
        with self.torch.inference_mode():
            starts = range(0, len(texts), 32)
            found = [self.model(**self.batch(texts[i : i + 32])).logits for i in starts]
        self.torch.cat(found).numpy()


SIDES = {"transformers": Transformers}

if __name__ == "__main__":
    app.run(main)
