"""Google's TensorFlow 1 checkpoint folder of BERT or ALBERT, read by TensorFlow.

| file | what it holds |
|---|---|
| `bert_config.json`, `albert_config.json` | the architecture |
| `bert_model.ckpt.index` | names, shapes and places of the tensors |
| `bert_model.ckpt.data-00000-of-00001` | the tensors; there may be several such files |
| `vocab.txt` | the vocabulary; whether text is lowercased follows from the folder's name |
| `checkpoint` | after a training: the name of the last of several checkpoints |

References: https://github.com/google-research/bert, https://github.com/google-research/albert.
"""

import functools
import re

from bert_keras.presets.families import records
from bert_keras.presets.formats.checkpoint import Checkpoint
from bert_keras.presets.tf_checkpoint import read_tf_checkpoint

_SCOPE = "bert/"
# Kernels have our layout, `(input, output)`, except in heads that Google's scripts write by hand.
KINDS = {
    "embedding": [("embeddings", "", None)],
    "norm": [("gamma", "/gamma", None), ("beta", "/beta", None)],
    "dense": [("kernel", "/kernel", None), ("bias", "/bias", None)],
    "by_hand": [("kernel", "_weights", "transpose"), ("bias", "_bias", None)],
    "bias": [("bias", "/output_bias", None)],
}


class Tf1Folder(Checkpoint):
    """An opened checkpoint folder in the layout of google-research/bert."""

    kinds = KINDS

    def __init__(self, folder, config, path, name):
        # No key names the family: it is that which has most of the config's keys.
        record = max(records("TF1"), key=lambda record: len(record.config.keys() & config.keys()))
        super().__init__(folder, config, path, name, record)

    @functools.cached_property
    def tensors(self):
        """The tensors of the checkpoint without those that only training needs."""
        tensors = read_tf_checkpoint(_prefix_of_checkpoint(self.folder))
        # Counters and scales have no axes. Averages of a weight, and what optimizers keep for it,
        # are named after it.
        shapes = tensors.shapes.items()
        names = {name: name for name, x in shapes if x and name.rpartition("/")[0] not in tensors}
        if not any(name.startswith(_SCOPE) for name in names):
            # Scripts that call `BertModel` within a scope of their own omit the scope `bert/`.
            parts = {theirs.split("/")[1] for _, theirs, *_ in self.record.rows}
            names = {_SCOPE + name if name.split("/")[0] in parts else name: name for name in names}
        return tensors.renamed(names)


def _prefix_of_checkpoint(folder):
    """Returns the path of the checkpoint without the endings of its files.

    Of several checkpoints, the file `checkpoint` tells the last. Else it is `bert_model.ckpt`.
    """
    names = sorted(path.name.removesuffix(".index") for path in folder.glob("*.index"))
    if len(names) == 1:
        return folder / names[0]
    path, last = folder / "checkpoint", None
    if path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        last = re.search(r'^model_checkpoint_path: "(?:.*[/\\])?([^"/\\]+)"', text, re.MULTILINE)
    for name in (last and last[1], "bert_model.ckpt"):
        if name in names:
            return folder / name
    raise ValueError(
        "A folder must hold one TensorFlow checkpoint, name the last in the file `checkpoint`, or "
        f"call it bert_model.ckpt. Received: {folder}, which holds {names or 'no *.index'}. Move "
        "the others away."
    )
