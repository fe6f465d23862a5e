"""Books to pre-train on, and a folder of results that stand: shared by benchmarks of objectives."""

import functools
import glob
import json
import os
import statistics
from pathlib import Path

from absl import flags

import bert_keras
from bert_keras.corpora import PretrainingBatches, create_pretraining_data

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Folder of the books, .txt or .txt.gz.", required=True)
flags.DEFINE_list("heldout", ["Alice", "Dorian", "Sherlock"], "What held-out books' names hold.")
flags.DEFINE_string("output_dir", None, "Folder for data and results.", required=True)

PRESET = "bert_mini_en_gutenberg"  # It has not seen the three books that are held out.


def check_settings(*free):
    """Makes `--output_dir`; raises `SystemExit` where it holds results of other flags.

    Args:
        *free: names of flags of the script that change no result.
    """
    own = FLAGS.flags_by_module_dict()[FLAGS.find_module_defining_flag("seeds")]
    settings = {flag.name: flag.value for flag in own if flag.name not in ("seeds", *free)}
    settings["heldout"] = FLAGS.heldout
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    path = Path(FLAGS.output_dir, "settings.json")
    if not path.exists():
        path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    found = json.loads(path.read_text(encoding="utf-8"))
    if found != settings:
        raise SystemExit(
            "Results of one folder must be measured with the same flags. Received: "
            f"{settings}, and in {path} {found}. Choose another --output_dir."
        )


@functools.cache
def tokenizer():
    """Returns the tokenizer of all models: that of the package's own checkpoint."""
    return bert_keras.Tokenizer.from_preset(PRESET)


def batches(part, objective, length, rows, **options):
    """Returns the batches of one part of the books, which are made if need be.

    Args:
        part: `"train"` or `"heldout"`.
        objective: what a row is, see `create_pretraining_data`.
        length: int, tokens of a row.
        rows: int, rows of a batch.
        **options: of `PretrainingBatches`.
    """
    books = sorted(glob.glob(os.path.join(FLAGS.data_dir, "*.txt*")))
    is_heldout = [any(word in os.path.basename(book) for word in FLAGS.heldout) for book in books]
    chosen = [b for b, out in zip(books, is_heldout, strict=True) if out == (part == "heldout")]
    folder = os.path.join(FLAGS.output_dir, f"{part}_{objective}_{length}")
    create_pretraining_data(
        chosen,
        tokenizer(),
        folder,
        sequence_length=length,
        objective=objective,
        documents="file",
    )
    return PretrainingBatches(folder, rows, **options)


def cell(values, digits=3):
    """Returns a mean, with the lowest and the highest where there are several."""
    if not values:
        return ""
    mean = f"{statistics.mean(values):.{digits}f}"
    spread = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else ""
    return mean + spread
