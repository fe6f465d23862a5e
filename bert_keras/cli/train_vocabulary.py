"""Trains a WordPiece vocabulary on text files.

    bert-keras vocabulary --input 'books/*.txt.gz' --vocabulary_size 8192 \
        --output vocab.txt

Reads plain or gzip UTF-8 text, line by line. The same text gives the same vocabulary.
"""

import glob
import json
import os
import time

from absl import flags

from bert_keras.cli import options
from bert_keras.corpora import find_text_files, read_documents, train_wordpiece
from bert_keras.datasets.remote import is_remote
from bert_keras.tokenizers import write_vocabulary

FLAGS = flags.FlagValues()
flags.DEFINE_list(
    "input", None, "Text files, folders of .txt and .txt.gz, or patterns with *.", flag_values=FLAGS
)
flags.DEFINE_string("output", "vocab.txt", "File to write.", flag_values=FLAGS)
flags.DEFINE_integer("vocabulary_size", 30522, "Most tokens.", lower_bound=6, flag_values=FLAGS)
flags.DEFINE_bool("lowercase", True, "Lowercase the text and strip its accents.", flag_values=FLAGS)
flags.DEFINE_integer(
    "min_frequency", 2, "How often a pair of pieces must occur to be merged.", flag_values=FLAGS
)
flags.DEFINE_integer(
    "limit_alphabet", 1000, "Characters kept; some 8,000 for Chinese.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "invalid_bytes", "strict", ["strict", "replace"], "What is not UTF-8.", flag_values=FLAGS
)
flags.mark_flags_as_required(["input"], flag_values=FLAGS)


class Lines:
    """The lines of files, read anew each time they are gone through."""

    def __init__(self, files, errors):
        self.files, self.errors = files, errors

    def __iter__(self):
        for document in read_documents(self.files, passages="line", errors=self.errors):
            yield from document


def main(arguments):
    """Runs as the arguments after `vocabulary` say."""
    options.read(FLAGS, "vocabulary", __doc__, arguments)
    started = time.perf_counter()
    # Now, since training may take hours.
    os.makedirs(os.path.dirname(os.path.abspath(FLAGS.output)), exist_ok=True)
    files = find_text_files([path for pattern in FLAGS.input for path in expand(pattern)])
    vocabulary = train_wordpiece(
        texts=Lines(files, FLAGS.invalid_bytes),
        vocabulary_size=FLAGS.vocabulary_size,
        lowercase=FLAGS.lowercase,
        min_frequency=FLAGS.min_frequency,
        limit_alphabet=FLAGS.limit_alphabet,
    )
    write_vocabulary(FLAGS.output, vocabulary)
    seconds = round(time.perf_counter() - started, 2)
    print(json.dumps({"num_files": len(files), "tokens": len(vocabulary), "seconds": seconds}))


def expand(pattern):
    """Returns the files and folders that a pattern names; it must match something."""
    found = [pattern] if is_remote(pattern) else sorted(glob.glob(pattern))
    if not found:
        raise FileNotFoundError(f"--input must name files. Received: {pattern}, no such file.")
    return found
