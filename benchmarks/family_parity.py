"""How far outputs differ from transformers' for each family and head, reading and writing.

    KERAS_BACKEND=torch python benchmarks/family_parity.py

transformers makes a tiny model of an odd shape with random weights and saves it; ours reads it.
What ours writes of it transformers reads again. `read` is how far our outputs are from those of the
first, `written` how far those of the last are: the largest absolute difference of all outputs on a
padded batch in float32, at the tokens that are no padding. The cases are those of
tests/presets/test_families.py, which also compares weights and configs.

Prints a Markdown table, and which models transformers has of each family that no task here has.
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

import keras
import transformers
from absl import app
from presets import test_families as families

from bert_keras.presets.families import records

LIMIT = 1e-5


def main(argv):
    print(f"keras {keras.__version__} on {keras.backend.backend()}, ", end="")
    print(f"transformers {transformers.__version__}\n")
    print("|transformers|ours|read|written|\n|-|-|-|-|")
    worst = 0.0
    for case in families.CASES:
        found = differences(*case)
        worst = max(worst, *found)
        cells = theirs_of(*case).__name__, case[2], *(f"{error:.1e}" for error in found)
        print(f"|{'|'.join(cells)}|", flush=True)
    print()
    for record in records("HUGGING_FACE"):
        for name, prefix in record.names.items():
            print(f"Not taken of {name}: {', '.join(not_taken(record, prefix)) or 'none'}")
    if not worst <= LIMIT:
        raise SystemExit(f"The largest difference must be at most {LIMIT}. Received: {worst}.")


def theirs_of(record, name, task):
    return families.their_class(record, name, task)


def differences(record, name, task):
    """Returns the differences when we read transformers' files, and when it reads ours."""
    with tempfile.TemporaryDirectory() as folder:
        reference = families.save_with_transformers(f"{folder}/theirs", record, name, task)
        ours = families.load(f"{folder}/theirs", task)
        ours.export_to_huggingface(f"{folder}/ours")
        first = theirs_of(record, next(iter(record.names)), task)
        again = first.from_pretrained(f"{folder}/ours").eval()
    arrays = families.inputs_of(ours, task)
    expected = families.their_outputs(reference, arrays)
    written = families.their_outputs(again, arrays)
    if (name, task) in families.BESIDE:
        expected, written = ({"logits": x["next_sentence"]} for x in (expected, written))
    found = families.our_outputs(ours, arrays), written
    return [families.difference(x, expected, arrays["padding_mask"]) for x in found]


def not_taken(record, prefix):
    """Returns the names of transformers' models of a family that no task reads."""
    taken = {prefix + head.architecture for head in record.heads.values()}
    found = {name for name in dir(transformers) if name.startswith((f"{prefix}For", f"{prefix}LM"))}
    return sorted(found - taken)


if __name__ == "__main__":
    app.run(main)
