"""`ZeroShotTagger` beside the package gliner, on the model of tests/gliner_tiny and a larger one.

    pip install gliner==0.2.29
    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/zero_shot_tagger.py [--no_reference]

Prints the largest difference of logits from the reference's (of the file, on each backend) and the
milliseconds for a text. The larger model has random weights: DeBERTa-v3-small's 6 layers of width
768, a head of width 512 and spans of up to 12 words.
"""

import json
import pathlib
import sys
import tempfile
import time

import keras
import numpy as np

import bert_keras

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tests" / "gliner_tiny"
EXAMPLES = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
LABELS = ["person", "city", "park name"]


def parity(tagger):
    worst = 0.0
    for each in EXAMPLES:
        rows = tagger.answerer(labels=each["labels"]).encode([each["text"]])
        found = tagger.predict(rows.inputs(np.arange(1), int(rows.lengths[0])), verbose=0)[0]
        shape = (*rows.is_counted[0].shape, len(each["labels"]))
        worst = max(worst, np.abs(found[: shape[0]] - np.reshape(each["logits"], shape)).max())
    return worst


def milliseconds(function, texts, repeats=3, **options):
    function(texts, LABELS, **options)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(texts, LABELS, **options)
        times.append(time.perf_counter() - start)
    return round(1000 * min(times) / len(texts), 2)


def larger(folder):
    """Writes a model of the size of gliner_small-v2.1, with the tokenizer of the tiny one."""
    tiny = bert_keras.ZeroShotTagger.from_preset(FOLDER)
    sizes = {"num_layers": 6, "num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}
    sizes |= {"vocabulary_size": 181, "num_buckets": 256, "max_distance": 512}
    config = {**tiny.backbone.get_config(), **sizes, "embedding_dim": 768}
    backbone = bert_keras.DebertaV2Backbone.from_config(config)
    options = {"dim": 512, "max_width": 12, "max_words": 384, "dropout": 0.4}
    bert_keras.ZeroShotTagger(backbone, tiny.preprocessor, **options).export_to_huggingface(folder)


def main():
    texts = [each["text"] for each in EXAMPLES]
    with tempfile.TemporaryDirectory() as folder:
        larger(folder)
        for name, path, copies in (("tiny", FOLDER, 50), ("larger", folder, 4)):
            tagger = bert_keras.ZeroShotTagger.from_preset(path, num_windows=1)
            if name == "tiny":
                print(f"{keras.backend.backend()}: logits differ by {parity(tagger):.1e} at most")
            times = {"bert_keras": milliseconds(tagger.tag, texts * copies)}
            if "--no_reference" not in sys.argv:
                import gliner

                theirs = gliner.GLiNER.from_pretrained(str(path), local_files_only=True).eval()
                times["gliner"] = milliseconds(theirs.inference, texts * copies, batch_size=32)
            print(name, times, "ms a text")


if __name__ == "__main__":
    main()
