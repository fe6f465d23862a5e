r"""Make pre-training examples from text files: pairs of segments, to be masked during training.

    bert-keras pretraining-data --input 'books/*.txt.gz' --documents=file \
        --vocabulary vocab.txt --output_dir data/train

Reads plain or gzip UTF-8 text, in English and Chinese. Blank lines separate documents, or each file
is one. Sentences are on lines of their own (`--sentences_per_line`), or found by rules. Writes
shards, the tokenizer and manifest.json. After a kill the same command continues. Masks are drawn
anew in each epoch when the shards are read.
"""

import json
import os
import pkgutil
import re
import sys

from absl import logging

from bert_keras.cli.options import REQUIRED, TRACEBACK, Option, parse
from bert_keras.corpora import create_pretraining_data
from bert_keras.tokenizers import Tokenizer

INPUT = (
    Option("input", list, REQUIRED, "Text files, folders of .txt and .txt.gz, or patterns with *."),
    Option("documents", ("blank_line", "file"), "blank_line", "What separates two documents."),
    Option("sentences_per_line", bool, False, "Each line is a sentence; do not split lines."),
)
TOKENIZER = (
    Option("vocabulary", str, REQUIRED, "A checkpoint, a vocab.txt or a tokenizer.json."),
    Option("lowercase", bool, None, "Lowercase the text; by default as vocab.txt suggests."),
    Option("word_segmenter", str, None, "module:function, a str to its words, for Chinese."),
)
EXAMPLES = (
    Option("sequence_length", int, 128, "Most tokens in a row, with special tokens."),
    Option(
        "objective",
        ("next_sentence", "sentence_order", "full_sentences"),
        "next_sentence",
        "Pairs as in BERT, pairs as in ALBERT, or rows of full sentences as in RoBERTa.",
    ),
    Option("duplicates", int, 1, "Passes over the text, each with other pairs."),
    Option("short_probability", float, 0.1, "Share of examples with a shorter target length."),
    Option("random_probability", float, 0.5, "Share of pairs whose second segment is random."),
    Option("short_per", ("example", "document"), "example", "What a target length is drawn for."),
    Option("seed", int, 0, "Seed of the pairs and the order."),
)
OUTPUT = (
    Option("output_dir", str, REQUIRED, "Folder to write."),
    Option("examples_per_shard", int, 16384, "Examples in a file."),
    Option("num_workers", int, None, "Processes; by default by the size of the input."),
    TRACEBACK,
)
GROUPS = {"Input": INPUT, "Tokenizer": TOKENIZER, "Examples": EXAMPLES, "Output": OUTPUT}


def main(arguments):
    """Runs the command with the arguments after `pretraining-data`."""
    flags, _ = parse("pretraining-data", __doc__, GROUPS, arguments)
    settings = {"lowercase": flags.lowercase} if flags.lowercase is not None else {}
    load = Tokenizer.load if os.path.exists(flags.vocabulary) else Tokenizer.from_preset
    tokenizer = load(flags.vocabulary, **settings)
    logging.set_verbosity(logging.INFO)  # For the progress.
    names = [option.name for option in EXAMPLES]
    names += ["documents", "sentences_per_line", "examples_per_shard", "num_workers"]
    manifest = create_pretraining_data(
        flags.input,
        tokenizer,
        flags.output_dir,
        word_segmenter=flags.word_segmenter and word_segmenter(flags.word_segmenter),
        progress=lambda message: logging.log_every_n_seconds(logging.INFO, message, 5),
        **{name: flags[name].value for name in names},
    )
    sizes = {"num_examples": manifest["num_examples"], "num_shards": len(manifest["shards"])}
    print(json.dumps(sizes | manifest["counts"] | manifest["statistics"]), flush=True)


def word_segmenter(path):
    """Returns the function of a path `module:function`."""
    if not re.fullmatch(r"[\w.]+:[\w.]+", path):
        raise ValueError(f"--word_segmenter must be module:function. Received: {path!r}.")
    sys.path.insert(0, "")
    return pkgutil.resolve_name(path)
