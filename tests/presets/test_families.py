"""Every family and every head against transformers: imported, exported, and imported there.

transformers writes a tiny model of an odd shape with random weights. This package loads it and
gives the same numbers. transformers then loads what this package exports, with the same weights.
"""

import warnings
from types import MappingProxyType

import keras
import numpy as np
import pytest
from checks import (
    THEIR_NAMES,
    call,
    check_config_is_refused,
    inputs_of,
    make_backbones_once,
    model_of_transformers,
    perturbed,
    to_numpy,
    transformers_outputs,
)
from files import change_json
from forty import TOKENIZERS

import bert_keras
from bert_keras.models.backbone import Backbone
from bert_keras.presets.assign import NewHead, head_weights, relative_path
from bert_keras.presets.families import RECORDS, head_options
from bert_keras.presets.families.record import Head
from bert_keras.presets.formats import huggingface, keras_hub, tf1
from bert_keras.presets.name_map import expand
from bert_keras.presets.presets import open_preset

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.once
BATCH, LENGTH, CHOICES = 4, 9, 2
LABELS = ("bad", "fine", "good", "no")
CLASSIFIERS = ("TextClassifier", "TokenClassifier")
# A family's other names differ in the names only.
CASES = [
    (record, name, task)
    for record in RECORDS["HUGGING_FACE"]
    if "ernie" not in record.names  # It is exported as a BERT, see tests/models/test_ernie.py.
    for number, name in enumerate(record.names)
    if name != "new"  # transformers has it as "gte".
    for task in ("Backbone", *record.heads)
    if number == 0 or task in ("Backbone", "TextClassifier")
]
# transformers has no model with the head of DeBERTa's discriminators, nor with ColBERT's.
NOT_THEIRS = {("deberta-v2", "ReplacedTokenDetector"), ("bert", "MultiVectorEmbedder")}
IN_OUT = [case for case in CASES if case[1:] not in NOT_THEIRS]
# Each backend computes each family's backbone, and on a BERT the heads of which
# tests/presets/test_forty.py has no checkpoint for it; the rest is names.
ON_EACH = [(next(iter(record.names)), "Backbone") for record, *_ in CASES]
ON_EACH += [("bert", task) for task in ("MultipleChoice", "Pretraining", "QuestionAnswering")]
# A head without a model of its own in transformers -> prefix of the other head's weights.
BESIDE = {("albert", "NextSentencePrediction"): "predictions."}
BACKBONES = {}
OUR_NAMES = {theirs: ours for ours, theirs in THEIR_NAMES.items()}


def odd_sizes():
    """Returns an odd shape by our argument names, a different one on each backend."""
    rng = np.random.default_rng(list(keras.backend.backend().encode()))
    num_heads, head_dim = [(2, 14), (3, 10), (5, 6), (6, 4)][rng.integers(4)]
    return {
        "vocabulary_size": int(rng.integers(37, 60)),
        "num_layers": 2,
        "num_heads": num_heads,
        "hidden_dim": num_heads * head_dim,
        "embedding_dim": int(rng.integers(9, 21)),
        "intermediate_dim": int(rng.integers(17, 44)),
        "max_sequence_length": int(rng.integers(LENGTH, 20)),
        "num_segments": int(rng.integers(2, 4)),
        "padding_id": int(rng.integers(5)),
        "dropout": 0.31,
        "attention_dropout": 0.17,
        "embedding_dropout": 0.23,
        "layer_norm_epsilon": float(10.0 ** -rng.integers(4, 13)),
        "initializer_range": 0.2,
        "causal": False,
        **[
            {"num_groups": 1, "num_inner_layers": 1},
            {"num_groups": 2, "num_inner_layers": 1},
            {"num_groups": 1, "num_inner_layers": 2},
        ][rng.integers(3)],
        "local_attention": int(rng.integers(2, 8)),
        "global_attention_every": 2,
        "global_rotary_base": float(rng.integers(50, 200)),
        "local_rotary_base": float(rng.integers(5, 50)),
        "relative_attention": True,
        "relative_terms": ["p2c", "c2p"],
        "share_projections": False,
        "num_buckets": 2 * int(rng.integers(2, 5)),
        "max_distance": int(rng.integers(8, 20)),
        "relative_norm": True,
        "convolution_size": 3,
        "convolution_activation": "gelu",
        "rotary_base": float(rng.integers(50, 200)),
        "rotary_scale": 1.5,
        "has_pooler": True,
    }


def arguments_of(record):
    """Returns the arguments of an odd shape that a record reads from a config."""
    sizes = {**odd_sizes(), **record.fixed}
    fields = [field.argument for field in record.fields]
    names = {*record.config.values(), *fields, *record.fixed} - {"activation"}
    return {name: sizes[name] for name in names}


def backbone_of(record, **sizes):
    """Returns a random backbone of an odd shape, and of some given sizes, made once."""
    arguments = arguments_of(record) | {"activation": "gelu"}
    arguments |= {name: size for name, size in sizes.items() if name in arguments}
    key = record.backbone, str(arguments)
    if key not in BACKBONES:
        cls = keras.saving.get_registered_object(record.backbone)
        BACKBONES[key] = cls(**arguments)
    return BACKBONES[key]


def task_of(record, name):
    """Returns a new task on the random backbone of an odd shape."""
    options = {"num_classes": 2} if name in CLASSIFIERS else {}
    if name == "MultiVectorEmbedder":  # The backbone has few positions.
        options = {"query_length": 8, "query_expansion": 8}
    return getattr(bert_keras, name)(backbone_of(record), **options)


def config_of(record, name):
    sizes = {**odd_sizes(), **record.fixed}
    key, activations = record.activation_key, record.activations
    config = {theirs: sizes[ours] for theirs, ours in record.config.items()}
    config |= {key: values[0] for key, values in record.allowed.items()}
    for field in record.fields:
        config |= field.write(sizes)
    config.setdefault("pad_token_id", 0)  # ModernBERT's default is outside a tiny vocabulary
    return {**config, key: sorted(activations)[len(name) % len(activations)]}


def their_class(record, name, task):
    head = record.heads.get(task, Head(architecture="Model"))
    return getattr(transformers, record.names[name] + head.architecture)


def save_with_transformers(folder, record, name, task):
    cls, head = their_class(record, name, task), record.heads.get(task, Head())
    config = config_of(record, name)
    if task in CLASSIFIERS:
        config["id2label"] = dict(enumerate(LABELS))
        config["label2id"] = {label: i for i, label in enumerate(LABELS)}
    if task == "TextClassifier":
        config["problem_type"] = "multi_label_classification"
    if head.dropout:
        config[head.dropout] = 0.43
    if head.pooling:
        config[head.pooling] = "mean"
    model = perturbed(model_of_transformers(cls.__name__, len(name), **config))
    model.save_pretrained(folder)
    return model


def load(folder, task, **options):
    if task == "Backbone":
        return Backbone.from_preset(folder, **options)
    return getattr(bert_keras, task).from_preset(folder, preprocessor=None, **options)


def arrays_for(model, task):
    """Returns inputs in which the padding's id stands in a text too, as may occur."""
    arrays = inputs_of(model, BATCH // CHOICES if task == "MultipleChoice" else BATCH, LENGTH)
    arrays["token_ids"][0, ..., 2] = getattr(model, "backbone", model).padding_id or 0
    return {name: array for name, array in arrays.items() if name != "mask_positions"}


def their_outputs(model, arrays):
    outputs = transformers_outputs(model, arrays)
    renamed = {
        "last_hidden_state": "sequence_output",
        "pooler_output": "pooled_output",
        "prediction_logits": "masked_lm",
        "seq_relationship_logits": "next_sentence",
        "sop_logits": "next_sentence",
    }
    return {renamed.get(name, name): value.numpy() for name, value in outputs.items()}


def our_outputs(model, arrays):
    if isinstance(model, bert_keras.MaskedLM):
        everywhere = np.tile(np.arange(LENGTH, dtype="int32"), (BATCH, 1))
        arrays = {**arrays, "mask_positions": everywhere}
    outputs = call(model, arrays)
    outputs = outputs if isinstance(outputs, dict) else {"logits": outputs}
    return {name: to_numpy(value) for name, value in outputs.items()}


def difference(ours, theirs, padding_mask):
    assert set(ours) == set(theirs)
    real = padding_mask.astype(bool)
    largest = 0.0
    for name, value in ours.items():
        is_per_token = value.shape[:2] == (BATCH, LENGTH)
        error = np.abs(value - theirs[name])
        largest = max(largest, float((error[real] if is_per_token else error).max()))
    return largest


@pytest.mark.parametrize(
    ("record", "name", "task"),
    [
        pytest.param(
            *case, marks=[pytest.mark.each_backend] * (case[1:] in ON_EACH), id="-".join(case[1:])
        )
        for case in IN_OUT
    ],
)
def test_outputs_equal_transformers_and_weights_survive_the_export(
    tmp_path, monkeypatch, record, name, task
):
    make_backbones_once(monkeypatch)
    reference = save_with_transformers(tmp_path / "theirs", record, name, task)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = load(tmp_path / "theirs", task)
    arrays, beside = arrays_for(model, task), BESIDE.get((name, task))
    theirs = their_outputs(reference, arrays)
    if beside:
        theirs = {"logits": theirs["next_sentence"]}
    worst = difference(our_outputs(model, arrays), theirs, arrays["padding_mask"])
    print(f"{name} {task}: {worst:.1e}")
    assert worst <= 1e-5
    head = record.heads.get(task, Head())
    if task in CLASSIFIERS:
        assert (model.num_classes, model.label_names) == (len(LABELS), LABELS)
    if task == "TextClassifier":
        assert model.problem_type == "multi_label"
    if head.dropout:
        assert model.dropout == 0.43
    if head.pooling:
        assert model.pooling == "mean"
    if name != next(iter(record.names)):  # The export has the first name.
        return

    model.export_to_huggingface(tmp_path / "ours")
    cls = their_class(record, name, task)
    again, info = cls.from_pretrained(tmp_path / "ours", output_loading_info=True)
    missing = {key for key in info["missing_keys"] if not (beside and key.startswith(beside))}
    assert not missing and not info["mismatched_keys"]
    assert all("pooler" in key for key in info["unexpected_keys"])
    exported = again.state_dict()
    for key, value in reference.state_dict().items():
        if key in info["missing_keys"]:
            continue
        np.testing.assert_array_equal(exported[key].numpy(), value.numpy(), err_msg=key)
    before, after = reference.config.to_dict(), again.config.to_dict()
    keys = {*config_of(record, name), "id2label", "problem_type", "architectures", head.dropout}
    keys |= {head.pooling}
    keys -= {None}
    activation, table = record.activation_key, record.activations
    assert table[before.pop(activation)] == table[after[activation]]
    assert {key: after.get(key) for key in keys & set(before)} == {
        key: before[key] for key in keys & set(before)
    }
    saved = [to_numpy(weight).copy() for weight in model.weights]
    second = load(tmp_path / "ours", task)
    for ours, weight in zip(saved, second.weights, strict=True):
        if "pooler" not in weight.path:
            np.testing.assert_array_equal(ours, to_numpy(weight), err_msg=weight.path)


# The tokenizers that families are exported with, see `forty.TOKENIZERS`. BERT has others too.
TOKENIZERS_OF = {name: ["word pieces"] for name in ("bert", "electra", "distilbert", "gte")}
TOKENIZERS_OF |= {"bert": ["word pieces", "word pieces in NFC", "Unigram with segments"]}
TOKENIZERS_OF |= {"nomic_bert": ["word pieces"], "jina_embeddings_v3": ["Unigram"]}
TOKENIZERS_OF |= {"albert": ["Unigram with segments"], "deberta-v2": ["DeBERTa"]}
TOKENIZERS_OF |= {"roberta": ["byte pairs", "Unigram"], "mpnet": ["MPNet"]}
TOKENIZERS_OF |= {"modernbert": ["ModernBERT"]}
FIRST = ["The low town, (New York)!", "a new town", "one", "of town " * 30]
SECOND = [
    "The lower ones: \N{FULLWIDTH LATIN SMALL LETTER A} cafe\u0301.",
    "low",
    "of town " * 30,
    "the lower " * 30,
]
PAIRS = [
    (record, kind)
    for record in RECORDS["HUGGING_FACE"]
    if "ernie" not in record.names
    for kind in TOKENIZERS_OF[next(iter(record.names))]
]


def tokenizer_of(kind, folder):
    """Returns a tokenizer that this package reads from files of transformers or SentencePiece."""
    changes = {"word pieces in NFC": ("word pieces", "normalizer", {"type": "NFC"})}
    template = [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ]
    template += [{"SpecialToken": {"id": "</s>", "type_id": 0}}]
    second = [
        {"Sequence": {"id": "B", "type_id": 1}},
        {"SpecialToken": {"id": "</s>", "type_id": 1}},
    ]
    tokens = {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (("<s>", 0), ("</s>", 2))}
    segments = {"type": "TemplateProcessing", "single": template, "pair": template + second}
    segments["special_tokens"] = tokens
    changes["Unigram with segments"] = ("Unigram", "post_processor", segments)
    kind, *change = changes.get(kind, (kind,))
    TOKENIZERS[kind](folder)
    for part, value in (change,) if change else ():
        change_json(folder / "tokenizer.json", **{part: value})
        (folder / "tokenizer_config.json").unlink()
    return bert_keras.Tokenizer.load(folder)


@pytest.mark.parametrize(
    ("record", "kind"),
    [pytest.param(*case, id=f"{next(iter(case[0].names))}-{case[1]}") for case in PAIRS],
)
def test_exported_pairs_equal_transformers_from_text(tmp_path, record, kind):
    """All tasks on pairs have these rows; a cross-encoder is exported as a classifier."""
    (tmp_path / "files").mkdir()
    tokenizer = tokenizer_of(kind, tmp_path / "files")
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "max_sequence_length": 32}
    sizes |= {"padding_id": tokenizer.pad_token_id, "max_distance": 16}
    backbone = backbone_of(record, **sizes)
    # An odd number of places for two texts: the odd token must go to the same of them.
    length = 17 + len(tokenizer.encode("", "").ids)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=length)
    model = bert_keras.Reranker(backbone, preprocessor=preprocessor)
    model.export_to_huggingface(tmp_path / "ours")
    arrays = preprocessor((FIRST, SECOND))
    ours = our_outputs(model, {name: arrays[name] for name in backbone.input_names})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    options = {"padding": True, "truncation": True, "max_length": length, "return_tensors": "pt"}
    found = theirs(FIRST, SECOND, **options)
    for name, array in found.items():
        np.testing.assert_array_equal(array, arrays[OUR_NAMES[name]])
    cls = their_class(record, next(iter(record.names)), "TextClassifier")
    with torch.no_grad():
        outputs = cls.from_pretrained(tmp_path / "ours").eval()(**found)
    worst = np.abs(ours["logits"] - outputs["logits"].numpy()).max()
    print(f"{next(iter(record.names))} | {kind} | {worst:.1e}")
    assert worst <= 1e-5


# Each format's records, its kinds of rows, and the tasks that have rows.
ROWS = [
    (record, kinds, task)
    for format, kinds in (
        ("HUGGING_FACE", huggingface.KINDS),
        ("KERAS_HUB", keras_hub.KINDS),
        ("TF1", tf1.KINDS),
    )
    for record in RECORDS[format]
    for task in ("Backbone", *record.heads)
]


@pytest.mark.parametrize(("record", "kinds", "task"), ROWS)
def test_the_rows_are_the_weights_of_the_backbone_and_of_each_head(record, kinds, task):
    backbone = backbone_of(record)
    layers, rows = [backbone], record.rows
    if task != "Backbone":
        layers = [task_of(record, task).head]
        rows = record.heads[task].rows
        asked = head_options(backbone, task)
        assert {key: getattr(layers[0], key) for key in asked} == asked
    names = expand(rows, kinds, record.counts, backbone)
    paths = {relative_path(v) for layer in layers for v in layer.weights}
    # KerasHub's RoBERTa has no pooler.
    left_out = "pooler/" if kinds is keras_hub.KINDS else ()
    assert {path for path in paths if path in names or not path.startswith(left_out)} == set(names)
    assert len({theirs for theirs, _ in names.values()}) == len(names)


MUST_BE = r"`{}` in `.*config\.json` must be one of"
UNSUPPORTED = [
    (record, name, key, wrong, MUST_BE.format(key))
    for record in RECORDS["HUGGING_FACE"]
    for name in list(record.names)[:1]
    for key, values in {**record.allowed, record.activation_key: ("gelu",)}.items()
    for wrong in (7, "relative_key", None, [values[0]], not values[0])
    if wrong not in values
]
UNSUPPORTED += [
    (record, "roberta", key, wrong, "max_sequence_length")
    for record in RECORDS["HUGGING_FACE"]
    if "roberta" in record.names
    for key in ("max_position_embeddings", "pad_token_id")
    for wrong in ("514", None, [514])
]
UNSUPPORTED += [  # Whatever else a record allows, the table has 32 rows.
    (record, "mpnet", "relative_attention_num_buckets", 16, "must be one of")
    for record in RECORDS["HUGGING_FACE"]
    if "mpnet" in record.names
]


@pytest.mark.parametrize(("record", "name", "key", "wrong", "message"), UNSUPPORTED)
def test_a_config_that_no_backbone_supports_is_refused_before_weights_are_read(
    tmp_path, record, name, key, wrong, message
):
    config = {"model_type": name, **config_of(record, name), key: wrong}
    check_config_is_refused(tmp_path, config, message)


def roberta():
    (record,) = [record for record in RECORDS["HUGGING_FACE"] if "roberta" in record.names]
    return backbone_of(record)


def test_a_head_that_differs_from_the_architecture_is_not_exported(tmp_path):
    bert = bert_keras.BertBackbone(9, 1, 1, 4, 4)
    for model, message in [
        (bert_keras.MultipleChoice(bert, pooling="mean"), "pooling='mean'"),
        (bert_keras.TextClassifier(bert, pooling="cls"), "pooling='cls'"),
        (bert_keras.TextClassifier(roberta(), pooling="pooler"), "pooling='pooler'"),
        (
            bert_keras.TextClassifier(
                roberta(), pooling="cls", head_options={"hidden_activation": "relu"}
            ),
            "hidden_activation='relu'",
        ),
        (bert_keras.LongTextClassifier(bert), "no counterpart"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.export_to_huggingface(tmp_path)
        assert not list(tmp_path.iterdir())


def test_a_missing_pooler_matters_where_it_is_read(tmp_path):
    bert_keras.TextClassifier(roberta(), num_classes=3).export_to_huggingface(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        bert_keras.TextClassifier.from_preset(tmp_path, preprocessor=None)
    with pytest.warns(UserWarning, match="pooler/dense/kernel"):
        Backbone.from_preset(tmp_path)
    # `classifier.dense` is not part of a tagger's head, which is called `classifier` too.
    with pytest.warns(UserWarning, match="random") as noted:
        bert_keras.TokenClassifier.from_preset(tmp_path, num_classes=3, preprocessor=None)
    assert "head/dense/kernel" in str(noted[0].message)
    assert "pooler/" not in str(noted[0].message) and noted[0].filename == __file__


WITH_POOLER = [
    (record, next(iter(record.names)))
    for record in RECORDS["HUGGING_FACE"]
    if "ernie" not in record.names and any(row[0].startswith("pooler/") for row in record.rows)
]


@pytest.mark.parametrize(("record", "name"), WITH_POOLER, ids=[name for _, name in WITH_POOLER])
def test_a_backbone_may_be_loaded_without_its_pooler(tmp_path, record, name, shared_backbones):
    save_with_transformers(tmp_path / "theirs", record, name, "Backbone")
    whole = load(tmp_path / "theirs", "Backbone")
    inputs = arrays_for(whole, "Backbone")
    expected = our_outputs(whole, inputs)["sequence_output"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = load(tmp_path / "theirs", "Backbone", has_pooler=False)
    outputs = our_outputs(model, inputs)
    assert list(outputs) == ["sequence_output"]
    assert not [weight for weight in model.weights if "pooler" in weight.path]
    np.testing.assert_array_equal(outputs["sequence_output"], expected)
    model.export_to_huggingface(tmp_path / "exported")
    cls = their_class(record, name, "Backbone")
    _, info = cls.from_pretrained(tmp_path / "exported", output_loading_info=True)
    assert info["missing_keys"] and all("pooler" in key for key in info["missing_keys"])
    assert not info["unexpected_keys"]
    with pytest.raises(ValueError, match="needs a backbone with a pooler"):
        bert_keras.TextClassifier(model, pooling="pooler")


def test_a_preset_may_be_loaded_without_its_pooler(tmp_path):
    whole = bert_keras.BertBackbone(9, 1, 1, 4, 4)
    whole.save_to_preset(tmp_path / "whole")
    bare = load(tmp_path / "whole", "Backbone", has_pooler=False)
    bare.save_to_preset(tmp_path / "bare")
    for model in (bare, load(tmp_path / "bare", "Backbone")):
        assert not model.has_pooler
        for ours, weight in zip(model.get_weights(), whole.get_weights(), strict=False):
            np.testing.assert_array_equal(ours, weight)
    # A task on it has another pooling by default.
    options = {"num_classes": 2, "backbone": {"has_pooler": False}}
    with pytest.warns(NewHead):
        task = load(tmp_path / "whole", "TextClassifier", **options)
    assert task.pooling == "cls"
    with pytest.warns(UserWarning, match="pooler/dense/kernel"):
        assert load(tmp_path / "bare", "Backbone", has_pooler=True).pooler is not None
    # Tensors that the config does not announce are no wish of the user's.
    config = {**whole.get_config(), "has_pooler": False}
    change_json(tmp_path / "whole" / "config.json", config=config)
    with pytest.raises(ValueError, match="Tensors without a weight"):
        load(tmp_path / "whole", "Backbone")


class Mine(bert_keras.TextClassifier):
    """A task that names the task whose head it has."""

    compatible_heads = MappingProxyType({"TextClassifier": {"head/": "head/"}})


def test_a_subclass_takes_the_head_that_it_names(tmp_path):
    plain = bert_keras.TextClassifier(roberta(), num_classes=3)
    mine = Mine(plain.backbone, num_classes=3)
    mine.head.set_weights(plain.head.get_weights())
    plain.save_to_preset(tmp_path / "own")
    mine.export_to_huggingface(tmp_path / "theirs")
    for name in ("own", "theirs"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            again = Mine.from_preset(tmp_path / name, preprocessor=None)
        np.testing.assert_equal(again.head.get_weights(), plain.head.get_weights())


def kernels_of(task, layers=()):
    """Returns the kernels of some or all layers of a task's head."""
    return {
        to_numpy(weight).tobytes()
        for path, weight in head_weights(task).items()
        if "kernel" in path and path.startswith(layers or "head/")
    }


def shared_kernels(record, head, other, saved):
    """Returns kernels at other places in the other head, such as ModernBERT's in all heads."""
    theirs, others = (
        {theirs: ours for ours, theirs, *_ in record.heads[task].rows} for task in (head, other)
    )
    names = [name for name in theirs.keys() & others.keys() if theirs[name] != others[name]]
    layers = tuple(f"{theirs[name]}/" for name in names)
    return kernels_of(saved, layers) if layers else set()


@pytest.mark.parametrize(
    "record", [pytest.param(x, id=next(iter(x.names))) for x in RECORDS["HUGGING_FACE"]]
)
def test_no_task_takes_the_head_of_another(tmp_path, record):
    tasks = {name: task_of(record, name) for name in record.heads}
    for head, saved in tasks.items():
        saved.export_to_huggingface(tmp_path / head)
        folder, kernels = open_preset(tmp_path / head), kernels_of(saved)
        for other, task in tasks.items():
            if other == head or head in task.compatible_heads:
                continue
            assert not folder.task_arguments(type(task))
            own = task.head.get_weights()
            with pytest.warns(NewHead, match="start at random"):
                folder.load_head_weights(task)
            assert kernels_of(task) & kernels == shared_kernels(record, head, other, saved), other
            task.head.set_weights(own)
