"""Memory and compilations of a process that answers texts of all lengths for a long time.

    KERAS_BACKEND=jax python benchmarks/soak.py > soak.jsonl

A classifier answers single texts and lists of up to 8, with random lengths from one word to more
than it reads. It prints twenty lines: answers so far, resident memory in MB, shapes of batches so
far, compilations, and answers a second since the last line. Compilations are those that JAX reports
and the graphs that TensorFlow traces, of which XLA compiles one for each shape; PyTorch has none.
"""

import gc
import json
import random
import time

import keras
import numpy as np
import turns
from absl import app, flags

import bert_keras

FLAGS = flags.FLAGS
flags.DEFINE_integer("answers", 100_000, "How many texts are answered.", 20)
flags.DEFINE_integer("max_length", 128, "Tokens that the model reads.", 8)
flags.DEFINE_integer("num_layers", 2, "Layers of the model.", 1)
flags.DEFINE_integer("hidden_dim", 32, "Width of the model, of two heads.", 8)

LETTERS = "abcdefgh"


def make_model():
    roles = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = bert_keras.WordPieceTokenizer([*roles, *LETTERS])
    sizes = {"num_heads": 2, "intermediate_dim": 4 * FLAGS.hidden_dim}
    sizes |= {"max_sequence_length": FLAGS.max_length, "num_layers": FLAGS.num_layers}
    return bert_keras.TextClassifier(
        bert_keras.BertBackbone(len(roles) + len(LETTERS), hidden_dim=FLAGS.hidden_dim, **sizes),
        preprocessor=bert_keras.TextPreprocessor(tokenizer, max_length=FLAGS.max_length),
    )


def counted_compilations(model):
    """Returns a list that grows by one whenever something is compiled."""
    found = []
    if keras.backend.backend() == "jax":
        import jax

        def note(event, _, **__):
            if event == "/jax/core/compile/backend_compile_duration":
                found.append(event)

        jax.monitoring.register_event_duration_secs_listener(note)
    elif keras.backend.backend() == "tensorflow":
        call = model.head.call

        def traced(*args, **kwargs):
            found.append("trace")
            return call(*args, **kwargs)

        model.head.call = traced
    return found


def counted_shapes(model):
    """Returns the set of batch shapes that the model has seen."""
    shapes, pack = set(), model.preprocessor.pack

    def noted(*args, **kwargs):
        inputs = pack(*args, **kwargs)
        shapes.add(inputs["token_ids"].shape)
        return inputs

    model.preprocessor.pack = noted
    return shapes


def random_text():
    return " ".join(random.choices(LETTERS, k=random.randint(1, FLAGS.max_length + 8)))


def main(_):
    random.seed(0)
    keras.utils.set_random_seed(0)
    model = make_model()
    compilations, shapes = counted_compilations(model), counted_shapes(model)
    answers, last, start = 0, 0, time.perf_counter()
    while answers < FLAGS.answers:
        texts = [random_text() for _ in range(random.choice((1, 1, 1, 2, 3, 5, 8)))]
        found = model.classify(texts if len(texts) > 1 else texts[0])
        found = found if isinstance(found, list) else [found]
        assert len(found) == len(texts)
        assert np.isfinite([[*x["probabilities"].values()] for x in found]).all()
        answers += len(texts)
        if answers - last >= FLAGS.answers / 20 or answers >= FLAGS.answers:
            gc.collect()
            line = {
                "backend": keras.backend.backend(),
                "answers": answers,
                "resident_mb": round(turns.resident_bytes() / 2**20, 1),
                "shapes": len(shapes),
                "compilations": len(compilations),
                "answers_a_second": round((answers - last) / (time.perf_counter() - start)),
            }
            print(json.dumps(line), flush=True)
            last, start = answers, time.perf_counter()


if __name__ == "__main__":
    app.run(main)
