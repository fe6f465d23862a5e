"""Show runs of `train` side by side, the best first: their scores, and what differs.

    bert-keras compare output/text_classification-1 output/text_classification-2

Each RUN is the output folder of `train`. `examples` is a checksum of the examples. Where it
differs, the runs were trained or measured on other examples, and their scores cannot be compared.
"""

from pathlib import Path

from bert_keras.cli.options import TRACEBACK, parse
from bert_keras.engine.atomic_files import read_json

GROUPS = {"Flags": (TRACEBACK,)}


def main(arguments):
    """Runs the command with the arguments after `compare`."""
    _, runs = parse("compare", __doc__, GROUPS, arguments, "RUN RUN ...")
    rows = [_row(run) for run in runs]
    names = dict.fromkeys(name for _, _, settings in rows for name in settings)
    differ = [name for name in names if len({str(row[2].get(name)) for row in rows}) > 1]
    rows.sort(key=lambda row: -row[1].get("value", -1))
    table = [["run", "score", "95 % confidence", *differ]]
    for run, score, settings in rows:
        score_text, interval = "not finished", ""
        if score:
            score_text = f"{score['name']} {score['value']:.3f}"
            interval = f"{score['low']:.3f} to {score['high']:.3f}"
        table.append([run, score_text, interval, *(str(settings.get(name)) for name in differ)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _row(run):
    """Returns a run, its main score with its interval, and its settings."""
    path = Path(run, "results.json")
    results = read_json(path) if path.is_file() else {}
    if not {"settings", "trials"} <= results.keys():
        raise ValueError(f"Each RUN must be the output folder of `train`. Received: {run}.")
    setting = results.get("metrics", {}).get("setting")
    trial = next((x for x in results["trials"] if setting in (None, x["setting"])), {})
    settings = results["settings"] | trial.get("setting", {}) | trial.get("chosen", {})
    return run, results.get("verdict", {}), settings
