"""Neither padding nor the other rows of a batch change an answer; padding alone causes no NaN.

`NUMBERS=all pytest tests/tasks/test_numbers.py -s` goes through every family, task and dtype, and
prints how far answers of one text alone are from those in a batch.
"""

import os

import keras
import numpy as np
import pytest
import test_input_kinds as input_kinds
from checks import TINY, call
from tiny import VOCABULARY, batches_of, tiny_preprocessor

import bert_keras
from bert_keras.models.model import BuiltModel

pytestmark = pytest.mark.once

FAMILIES = {
    "Bert": {"num_layers": 1},
    "Roberta": {"padding_id": 0},
    "Albert": {"embedding_dim": 6},
    "DistilBert": {},
    "Electra": {"embedding_dim": 6},
    "ModernBert": {"local_attention": 4},
}
DTYPES = ("float32", "bfloat16", "mixed_bfloat16", "float16", "mixed_float16")
NEED_A_POOLER = ("NextSentencePrediction", "Pretraining")
# One draws what it replaces, and one refuses documents without a token, in training too.
LEFT_OUT = ("ReplacedTokenDetection", "LongTextClassifier")
TASKS = [name for name in input_kinds.TASKS if name not in LEFT_OUT]
LENGTHS = (12, 1, 0, 5)
EVERY = [(f, t, d) for f in FAMILIES for t in TASKS for d in DTYPES]
ONCE = [("Bert", t, "mixed_float16") for t in TASKS]
ONCE += [(f, "TextEmbedder", d) for f, d in zip(FAMILIES, (*DTYPES, "float32"), strict=True)]
FEW = [("Bert", "TextClassifier", "float16")]
CASES = EVERY if os.environ.get("NUMBERS") == "all" else [*FEW, *ONCE]


def make_task(family, name, dtype):
    keras.utils.set_random_seed(0)
    cls = getattr(bert_keras, name)
    if name in input_kinds.PAIRS:
        return cls(*(make_task(family, part, dtype) for part in input_kinds.PAIRS[name]))
    sizes = {**TINY, "vocabulary_size": len(VOCABULARY), "dropout": 0.0, **FAMILIES[family]}
    backbone = getattr(bert_keras, f"{family}Backbone")(**sizes, dtype=dtype)
    options = {"num_classes": 2} if name == "TokenClassifier" else {}
    options |= {"objective": "similarity"} if name == "TextEmbedder" else {}
    task = cls(backbone, preprocessor=tiny_preprocessor(max_length=12), **options)
    task.compile(learning_rate=1e-3, warmup=0)
    return task


def rows_of(task):
    """Returns rows of so many tokens as `LENGTHS` says, of all that a task reads."""
    mask = (np.arange(12) < np.array(LENGTHS)[:, None]).astype("int32")
    ids = np.random.default_rng(0).integers(5, len(VOCABULARY), mask.shape)
    inputs = {"token_ids": ids * mask, "padding_mask": mask, "segment_ids": 0 * mask}
    inputs["mask_positions"] = np.ones((len(LENGTHS), 1), "int32")
    inputs = {name: array for name, array in inputs.items() if name in task.input_names}
    if task.num_input_axes == 3:
        return {name: np.stack([array, array[::-1]], 1) for name, array in inputs.items()}
    return inputs


def outputs_of(task, inputs):
    outputs = keras.tree.flatten(task.predict(inputs, verbose=0))
    return [np.asarray(output, "float32") for output in outputs]


@pytest.mark.eager
@pytest.mark.parametrize(
    ("family", "name", "dtype"),
    [pytest.param(*case, marks=pytest.mark.each_backend if case in FEW else ()) for case in CASES],
)
def test_padding_and_other_rows_change_no_answer_and_cause_no_nan(family, name, dtype):
    if name in NEED_A_POOLER and family not in ("Bert", "Roberta", "Albert"):
        with pytest.raises(ValueError, match="needs a backbone with a pooler"):
            make_task(family, name, dtype)
        return
    task = make_task(family, name, dtype)
    inputs = rows_of(task)
    together, furthest = outputs_of(task, inputs), 0.0
    assert all(np.isfinite(output).all() for output in together)
    outputs = keras.tree.flatten(call(task, inputs, only_shapes=True))
    dtypes = {keras.backend.standardize_dtype(x.dtype) for x in outputs}
    assert dtypes == {"float32"} or name == "Distillation"  # which gives the encoders' states too
    for row, length in enumerate(LENGTHS):
        if length < 3 or task.num_input_axes == 3:  # The masked token has neighbours.
            continue
        alone = {key: x[row : row + 1, :length] for key, x in inputs.items()}
        for found, expected in zip(outputs_of(task, alone), together, strict=True):
            expected = expected[row : row + 1]
            expected = expected[:, :length] if found.shape != expected.shape else expected
            furthest = max(furthest, np.abs(found - expected).max())
    assert furthest < (1e-5 if dtype == "float32" else 0.05)
    print(f"{keras.backend.backend()} {family} {name} {dtype} {furthest:.1e}")
    check_that_padding_trains(task, name)


def check_that_padding_trains(task, name):
    """A row that is all padding, among others, makes neither loss nor weights NaN."""
    columns, labels = input_kinds.TASKS[name]
    columns = tuple(columns) if len(columns) > 1 else columns[0]
    inputs, *others = batches_of(task, columns, labels, training=True, batch_size=4)[0]
    inputs = {key: np.array(array) for key, array in inputs.items()}
    for key in {"token_ids", "segment_ids", "padding_mask"} & set(inputs):
        inputs[key][-1] = 0
    batch = (inputs, *others)
    for _ in range(2):
        # `Task` would refuse a label in a row without tokens.
        losses = BuiltModel.train_on_batch(task, *batch, return_dict=True)
        assert all(np.isfinite(loss) for loss in losses.values())
    assert all(np.isfinite(weight.astype("float32")).all() for weight in task.get_weights())
