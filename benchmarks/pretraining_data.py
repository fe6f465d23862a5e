"""Time the making of pre-training examples against google-research/bert's algorithm.

    python benchmarks/pretraining_data.py --input 'books/*.txt.gz' --vocabulary vocab.txt

Both sides read the same file, one sentence a line, and make masked sentence pairs of it in one
process and one thread; what counts is the processor's time. Ours also writes its shards and
checksums; the other, whose rules stand in bert_pretraining_rules.py, stops before its TFRecords.
Prints statistics of the examples of both, and one line of JSON.
"""

import glob
import json
import os
import random
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
from absl import app, flags
from bert_pretraining_rules import PlainTokenizer, create_examples

from bert_keras.corpora import create_pretraining_data, open_shard, read_documents, split_sentences
from bert_keras.preprocessing import Masking
from bert_keras.tokenizers import WordPieceTokenizer

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "Text files, a book each: a pattern.", required=True)
flags.DEFINE_string("vocabulary", None, "vocab.txt, lowercase.", required=True)
flags.DEFINE_float("megabytes", 4.0, "How much text to use.")
flags.DEFINE_integer("sentences_per_document", 50, "Books are cut into documents of so many.")
flags.DEFINE_integer("duplicates", 1, "Passes over the text; Google's default is 10.")


def main(argv):
    tokenizer = WordPieceTokenizer.load(FLAGS.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sentences.txt")
        megabytes = write_sentences(path)
        ours = time_ours(path, tokenizer, os.path.join(folder, "examples"))
        theirs = time_theirs(path, tokenizer)
    for name, result in (("ours", ours), ("theirs", theirs)):
        result["megabytes_per_second"] = round(megabytes * FLAGS.duplicates / result["seconds"], 3)
        print(name, result)
    ratio = theirs["seconds"] / ours["seconds"]
    print(json.dumps({"megabytes": round(megabytes, 2), "ratio": round(ratio, 1)}))


def write_sentences(path):
    """Writes one sentence a line, a blank line between documents; returns megabytes."""
    with open(path, "w", encoding="utf-8") as file:
        for book in read_documents(sorted(glob.glob(FLAGS.input))):
            sentences = [sentence for passage in book for sentence in split_sentences(passage)]
            for number, sentence in enumerate(sentences):
                file.write(sentence + "\n")
                if number % FLAGS.sentences_per_document == FLAGS.sentences_per_document - 1:
                    file.write("\n")
            file.write("\n")
            if file.tell() > FLAGS.megabytes * 1e6:
                break
        return file.tell() / 1e6


def time_ours(path, tokenizer, folder):
    started = time.process_time()
    manifest = create_pretraining_data(
        path,
        tokenizer,
        folder,
        sentences_per_line=True,
        duplicates=FLAGS.duplicates,
        masking=Masking(max_predictions=20),
        short_per="document",
        num_workers=1,
    )
    seconds = time.process_time() - started
    lengths, predictions, not_next = [], [], []
    for shard in manifest["shards"]:
        arrays, _ = open_shard(os.path.join(folder, shard["file"]))
        lengths.append(np.diff(arrays["offsets"]))
        predictions.append(np.diff(arrays["mask_offsets"]))
        not_next.append(arrays["is_random_next"])
    return {"seconds": round(seconds, 2)} | statistics(lengths, predictions, not_next)


def time_theirs(path, tokenizer):
    started = time.process_time()
    plain, generator = PlainTokenizer(tokenizer.vocabulary), random.Random(12345)
    documents = [[]]
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.strip():
                documents.append([])
            tokens = plain.tokenize(line.strip())
            if tokens:
                documents[-1].append(tokens)
    documents = [document for document in documents if document]
    generator.shuffle(documents)
    examples = create_examples(documents, plain.words, 128, 0.15, 20, FLAGS.duplicates, generator)
    seconds = time.process_time() - started
    columns = (
        [[len(example.tokens) for example in examples]],
        [[len(example.labels) for example in examples]],
        [[example.not_next for example in examples]],
    )
    return {"seconds": round(seconds, 2)} | statistics(*columns)


def statistics(lengths, predictions, not_next):
    """Returns what the examples are like, from lists of arrays."""
    lengths, predictions, not_next = map(np.concatenate, (lengths, predictions, not_next))
    return {
        "num_examples": len(lengths),
        "mean_length": round(float(lengths.mean()), 2),
        "below_120_tokens": round(float(np.mean(lengths < 120)), 4),
        "predictions_share": round(float(predictions.sum() / lengths.sum()), 5),
        "not_next_share": round(float(not_next.mean()), 4),
    }


if __name__ == "__main__":
    app.run(main)
