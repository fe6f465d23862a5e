"""The registered presets: names of well-known checkpoints, and where to find each.

`registered.json` lists them. Most have their weights as safetensors; the others have a
`pytorch_model.bin`, which is read without running anything in it.

| key | value |
|---|---|
| `description` | one sentence that helps to choose a preset |
| `parameters` | the number of parameters of the backbone, pooler included |
| `places` | where to look for it, in this order: `package://name/folder`, a folder inside an \
installed Python package, or `hf://owner/name`, a Hugging Face repository |
| `extra` | the extra of bert_keras that installs the package, if that is another one |
| `languages` | the language of its text, or how many there are |
| `license` | SPDX identifier of the weights' licence |
"""

import json
import pathlib

PRESETS = json.loads(pathlib.Path(__file__).with_name("registered.json").read_text("utf-8"))


class PresetTable(list):
    """A list of dicts, one per preset, that prints as a table and converts to a `DataFrame`."""

    def __repr__(self):
        rows = [list(self[0]), *([str(value) for value in row.values()] for row in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [zip(row, widths, strict=True) for row in rows]
        return "\n".join("  ".join(text.ljust(n) for text, n in line).rstrip() for line in lines)


def presets() -> PresetTable:
    """Returns the registered presets with name, parameters, languages, licence and description.

    Returns:
        A `PresetTable`, a list of dicts.
    """
    names = ("parameters", "languages", "license", "description")
    return PresetTable(
        {"name": name, **{key: preset[key] for key in names}} for name, preset in PRESETS.items()
    )
