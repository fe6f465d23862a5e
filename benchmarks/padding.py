"""How many tokens a model computes for each real one, padding included, by how texts are batched.

    python benchmarks/padding.py --data_dir SST-2 --part dev

Prints a row for each way to batch and a column for the lengths that batches are padded to: those of
compiled backends (JAX and TensorFlow), those of PyTorch, and the number of shapes of each.
"""

from absl import app, flags

from bert_keras import TextPreprocessor, WordPieceTokenizer, datasets
from bert_keras.preprocessing import BucketedBatches, length_buckets
from bert_keras.presets.resolve import resolve

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Folder of a GLUE set.", required=True)
flags.DEFINE_string("task", None, "Name of the set, where --data_dir does not tell.")
flags.DEFINE_string("part", "train", "train or dev.")
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Whose vocabulary.")
flags.DEFINE_integer("batch_size", 32, "Rows of a batch.", 1)
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.", 3)
flags.DEFINE_integer("token_budget", 2048, "Tokens of a batch that PyTorch predicts.", 1)


def main(argv):
    tokenizer = WordPieceTokenizer.load(resolve(FLAGS.preset))
    preprocessor = TextPreprocessor(tokenizer, max_length=FLAGS.max_length)
    texts = datasets.load_glue(FLAGS.task, FLAGS.data_dir, FLAGS.part).texts
    lengths = preprocessor.packed_lengths(*preprocessor.tokenize(texts))
    ways = {
        "fit": {},
        "fit, windows of 100 batches": {"window": 100},
        "fit, random batches": {"window": 1},
        "predict": {"shuffle": False},
        "predict, a budget of tokens": {"shuffle": False, "token_budget": FLAGS.token_budget},
    }
    buckets = length_buckets(FLAGS.max_length), length_buckets(FLAGS.max_length, step=4, first=4)
    print(f"{len(lengths)} rows, {lengths.sum()} tokens")
    for name, options in ways.items():
        found = [
            BucketedBatches(lengths, None, batch_size=FLAGS.batch_size, buckets=each, **options)
            for each in buckets
        ]
        print(f"{name:30}" + "".join(map(told, found)))


def told(batches):
    tokens = sum(len(rows) * length for rows, length in batches.batches)
    shapes = len({(len(rows), length) for rows, length in batches.batches})
    real = sum(batches.lengths[rows].sum() for rows, _ in batches.batches)
    return f"{tokens / real:8.2f} in {shapes:2} shapes"


if __name__ == "__main__":
    app.run(main)
