r"""Makes pre-training examples of text files: sentence pairs, ready to be masked.

    bert-keras pretraining-data --input 'books/*.txt.gz' --documents=file \
        --vocabulary vocab.txt --output_dir data/train

Reads plain or gzip UTF-8 text, blank lines between documents (or a document a file), sentences one
a line (`--sentences_per_line`) or split by rules, in English and Chinese. Writes shards, the
tokenizer and manifest.json; the same command goes on where a killed run stopped. Masks are drawn
afresh in each epoch by whoever reads the shards, unless `--static_masking` draws them now.

    bert-keras pretraining-data --records 'tf_examples.tfrecord*' \
        --vocabulary vocab.txt --output_dir data/train

`--records` takes the files of google-research/bert's create_pretraining_data.py instead: the same
examples, masked as they are, for training without TensorFlow. Without any pair that does not follow
they count as rows of full sentences.
"""

import contextlib
import glob
import importlib
import json
import sys
import time

from absl import flags, logging

from bert_keras.cli import options
from bert_keras.corpora import create_pretraining_data, import_records
from bert_keras.datasets.remote import is_remote
from bert_keras.preprocessing import Masking
from bert_keras.tokenizers import Tokenizer

FLAGS = flags.FlagValues()
flags.DEFINE_list(
    "input",
    None,
    "Text files, folders of .txt and .txt.gz, or patterns with *; addresses such as s3:// too.",
    flag_values=FLAGS,
)
flags.DEFINE_list(
    "records", None, "TFRecord files of Google's script, in place of --input.", flag_values=FLAGS
)
flags.DEFINE_string(
    "vocabulary",
    None,
    "A tokenizer: vocab.txt, tokenizer.json, or a folder, as of a checkpoint.",
    flag_values=FLAGS,
)
flags.DEFINE_string("output_dir", None, "Folder to write.", flag_values=FLAGS)
flags.DEFINE_integer(
    "sequence_length", 128, "Longest row, special tokens included.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "objective",
    "next_sentence",
    ["next_sentence", "sentence_order", "full_sentences"],
    "Pairs as in BERT, pairs as in ALBERT, or rows of full sentences as in RoBERTa.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "documents", "blank_line", ["blank_line", "file"], "What ends a document.", flag_values=FLAGS
)
flags.DEFINE_bool(
    "sentences_per_line", False, "Each line is a sentence; do not split.", flag_values=FLAGS
)
flags.DEFINE_bool(
    "lowercase", None, "For vocab.txt: lowercase; without it as it looks.", flag_values=FLAGS
)
flags.DEFINE_string(
    "word_segmenter", None, "module:function, a str to its words (Chinese).", flag_values=FLAGS
)
flags.DEFINE_integer(
    "duplicates", 1, "Passes over the text, each with other pairs and masks.", flag_values=FLAGS
)
flags.DEFINE_float(
    "short_probability", 0.1, "How often a shorter length is aimed at.", flag_values=FLAGS
)
flags.DEFINE_float(
    "random_probability", 0.5, "How often segment B is a random one.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "short_per",
    "example",
    ["example", "document"],
    "What a length is drawn for.",
    flag_values=FLAGS,
)
flags.DEFINE_bool(
    "static_masking", False, "Mask once, now; else afresh in each epoch.", flag_values=FLAGS
)
flags.DEFINE_float(
    "mask_rate", 0.15, "Static masking: share of tokens that is predicted.", flag_values=FLAGS
)
flags.DEFINE_float(
    "mask_share", 0.8, "Static masking: share of these that becomes [MASK].", flag_values=FLAGS
)
flags.DEFINE_float(
    "random_share", 0.1, "Static masking: share that becomes a random token.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "mask_strategy",
    "pieces",
    ["pieces", "whole_words", "spans", "n_grams"],
    "Static masking: what is chosen.",
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "max_predictions", None, "Static masking: the most predictions in a row.", flag_values=FLAGS
)
flags.DEFINE_integer("seed", 0, "Seed of the pairs, the order and the masks.", flag_values=FLAGS)
flags.DEFINE_enum(
    "format", "safetensors", ["safetensors", "tfrecord"], "Format of the shards.", flag_values=FLAGS
)
flags.DEFINE_integer("examples_per_shard", 16384, "Examples in a file.", flag_values=FLAGS)
flags.DEFINE_integer(
    "num_workers", None, "Processes; without it by the size of the input.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "runner",
    "local",
    ["local", "ray", "beam"],
    "Processes of this machine, of Ray, or of Apache Beam.",
    flag_values=FLAGS,
)
flags.DEFINE_multi_string(
    "runner_option",
    [],
    "name=value, an argument of ray.init or a pipeline option of Beam; for several repeated.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "invalid_bytes", "strict", ["strict", "replace"], "What is not UTF-8.", flag_values=FLAGS
)
flags.mark_flags_as_required(["vocabulary", "output_dir"], flag_values=FLAGS)
flags.mark_flags_as_mutual_exclusive(["input", "records"], required=True, flag_values=FLAGS)

MASKING_FLAGS = ("mask_rate", "mask_share", "random_share", "mask_strategy", "max_predictions")
RECORDS_FLAGS = ("records", "vocabulary", "lowercase", "output_dir")


def main(arguments):
    """Runs as the arguments after `pretraining-data` say."""
    options.read(FLAGS, "pretraining-data", __doc__, arguments)
    refuse_unused()
    settings = {"lowercase": FLAGS.lowercase} if FLAGS.lowercase is not None else {}
    tokenizer = Tokenizer.load(FLAGS.vocabulary, **settings)
    started = time.perf_counter()
    if FLAGS.records:
        manifest = import_records(expand(FLAGS.records), tokenizer, FLAGS.output_dir, report)
    else:
        manifest = make_examples(tokenizer)
    seconds = time.perf_counter() - started
    megabytes = manifest["counts"]["bytes"] / 1e6
    summary = {
        "num_examples": manifest["num_examples"],
        "num_shards": len(manifest["shards"]),
        **manifest["counts"],
        **manifest["statistics"],
        "seconds": round(seconds, 2),
        "megabytes_per_second": round(megabytes * FLAGS.duplicates / seconds, 2),
    }
    print(json.dumps(summary), flush=True)


def refuse_unused():
    """Raises where a flag was given that would change nothing."""
    unused, why = (), ""
    if FLAGS.records:
        unused = [name for name in FLAGS if name not in RECORDS_FLAGS]
        why = "--records takes the examples as they are."
    elif not FLAGS.static_masking:
        unused = MASKING_FLAGS
        why = "How to mask is for --static_masking; else it is said when the data is read."
    given = [f"--{name}" for name in unused if FLAGS[name].present]
    if given:
        raise ValueError(f"{why} Received: {', '.join(given)}. Leave them out.")


def make_examples(tokenizer):
    """Returns the manifest of the examples of `--input`."""
    return create_pretraining_data(
        expand(FLAGS.input),
        tokenizer,
        FLAGS.output_dir,
        sequence_length=FLAGS.sequence_length,
        objective=FLAGS.objective,
        documents=FLAGS.documents,
        sentences_per_line=FLAGS.sentences_per_line,
        duplicates=FLAGS.duplicates,
        masking=static_masking(),
        short_probability=FLAGS.short_probability,
        random_probability=FLAGS.random_probability,
        short_per=FLAGS.short_per,
        word_segmenter=word_segmenter(),
        seed=FLAGS.seed,
        format=FLAGS.format,
        examples_per_shard=FLAGS.examples_per_shard,
        num_workers=FLAGS.num_workers,
        errors=FLAGS.invalid_bytes,
        progress=report,
        runner=FLAGS.runner,
        runner_options=runner_options(FLAGS.runner_option),
    )


def runner_options(texts):
    """Returns the options as a dict; each may stand there once."""
    pairs = list(map(runner_option, texts))
    if len(dict(pairs)) < len(pairs):
        raise ValueError(
            "--runner_option sets each name once; a list is name=[1,2]. Received: "
            f"{' '.join(texts)}."
        )
    return dict(pairs)


def runner_option(text):
    """Returns the name and the value of a `name=value`: what is JSON, such as 8, is read so."""
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--runner_option takes name=value. Received: {text!r}.")
    with contextlib.suppress(ValueError):
        value = json.loads(value)
    return name, value


def report(message):
    """Tells how far it is, every five seconds at most."""
    logging.log_every_n_seconds(logging.INFO, message, 5)


def expand(patterns):
    """Returns the files and folders that patterns name; a pattern must match something."""
    paths = []
    for pattern in patterns:
        found = [pattern] if is_remote(pattern) else sorted(glob.glob(pattern))
        if not found:
            raise FileNotFoundError(f"Input must be files. Received: {pattern}, no such file.")
        paths += found
    return paths


def static_masking():
    """Returns the `Masking` that the flags describe, or None for masks drawn when reading."""
    if not FLAGS.static_masking:
        return None
    return Masking(
        FLAGS.mask_rate,
        FLAGS.mask_share,
        FLAGS.random_share,
        FLAGS.mask_strategy,
        FLAGS.max_predictions,
    )


def word_segmenter():
    """Returns the function that --word_segmenter names, or None."""
    if FLAGS.word_segmenter is None:
        return None
    module, _, name = FLAGS.word_segmenter.partition(":")
    sys.path.insert(0, "")
    return getattr(importlib.import_module(module), name)
