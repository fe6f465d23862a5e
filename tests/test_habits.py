"""What a user of Keras, KerasHub or transformers writes from habit works, or names the remedy."""

import abc
import copy
import inspect
import operator
import re

import datasets
import keras
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.special
from checks import call, cases, refused
from tiny import (
    Batches,
    as_data_loader,
    as_tensorflow,
    guide_to_tasks,
    tiny_backbone,
    tiny_classifier,
    tiny_preprocessor,
)

import bert_keras
from bert_keras.tasks.encoded_labels import class_weighted

pytestmark = pytest.mark.once

TEXTS = ["a b c", "d e", "h a g g", "b c", "a", "c d e"]
LABELS = [0, 1, 1, 0, 1, 0]
NAMES = ["no", "yes"]
NAMED = [NAMES[label] for label in LABELS]
MINI = "bert_mini_en_gutenberg"


@pytest.fixture(scope="module")
def classifier():
    return tiny_classifier(tiny_backbone(dropout=0.0), label_names=NAMES)


@pytest.fixture(scope="module")
def traced_once():
    """A task with an optimizer that does not depend on the number of steps."""
    task = tiny_classifier(tiny_backbone(dropout=0.0), label_names=NAMES)
    task.compile("sgd")
    return task


# Arguments


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_arguments_by_position_have_keras_s_order(method):
    ours, theirs = (inspect.signature(getattr(x, method)) for x in (bert_keras.Task, keras.Model))
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    names = [[n for n, p in s.parameters.items() if p.kind not in kinds] for s in (ours, theirs)]
    assert names[0] == names[1]


def test_arguments_of_the_backbone_are_passed_separately(tmp_path):
    tiny_backbone().save_to_preset(tmp_path)
    options = {"preprocessor": None, "dropout": 0.3, "dtype": "float16"}
    options["backbone"] = {"attention_dropout": 0.2}
    task = bert_keras.TextClassifier.from_preset(tmp_path, **options)
    backbone = task.backbone
    assert (task.dropout, backbone.dropout, backbone.attention_dropout) == (0.3, 0.1, 0.2)
    assert task.compute_dtype == backbone.compute_dtype == "float16"
    for options, remedy in [
        ({"activation": "softmax"}, r"backbone=\{'activation': 'softmax'\}.*logits.*`classify`"),
        ({"remat": True}, r"backbone=\{'remat': True\}"),
        ({"sequence_length": 8}, "Here: `max_length`"),
        ({"num_labels": 3}, "Here: `num_classes`"),
        ({"backbone": {"colour": 1}}, "must be a dict with some of"),
        ({"backbone": backbone}, r"TextClassifier\(backbone\)"),
    ]:
        with pytest.raises(TypeError, match=remedy):
            bert_keras.TextClassifier.from_preset(tmp_path, preprocessor=None, **options)
    for model in (backbone, task):
        with pytest.raises(TypeError, match=r"Here: `.*return_hidden_states=True\)`"):
            model({"token_ids": np.zeros((1, 2), int)}, output_hidden_states=True)


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_the_learning_rate_can_be_set_by_callbacks():
    task = tiny_classifier()
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: 1e-3 * (epoch + 1))
    for callback in (keras.callbacks.ReduceLROnPlateau(monitor="loss"), schedule):
        with pytest.raises(ValueError, match=r"compile\(lr_schedule='constant', warmup=0\)"):
            task.fit(TEXTS, LABELS, callbacks=[callback])
    task.compile(lr_schedule="constant", warmup=0)
    task.fit(TEXTS, LABELS, epochs=2, callbacks=[schedule], verbose=0)
    assert float(task.optimizer.learning_rate) == pytest.approx(2e-3)


def test_the_learning_rate_can_be_set_directly_before_fit():
    task = tiny_classifier()
    task.optimizer.learning_rate = 3e-3
    task.fit(TEXTS, LABELS, epochs=1, verbose=0)
    assert task.optimizer._learning_rate.peak_learning_rate == pytest.approx(3e-3)
    with pytest.raises(TypeError, match=r"compile\(learning_rate=...\)"):
        task.optimizer.learning_rate = 1e-3


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_padding_can_count_in_the_softmax_of_spans_as_in_transformers():
    inputs = tiny_preprocessor()(["a b", "c"], ["d e f g", "h"])
    labels, padding = ([4, 3], [5, 3]), inputs["padding_mask"] == 0
    for mask_padding in (True, False):
        task = bert_keras.QuestionAnswering(tiny_backbone(), mask_padding=mask_padding)
        logits = task.predict(inputs, verbose=0)
        start, end = (logits[name].astype("float64") for name in ("start_logits", "end_logits"))
        loss, *_ = task.evaluate(inputs, tuple(map(np.array, labels)), verbose=0)
        by_hand = [
            scipy.special.logsumexp(row, axis=-1) - row[[0, 1], column]
            for row, column in zip((start, end), labels, strict=True)
        ]
        assert loss == pytest.approx(np.mean(by_hand), abs=1e-5)
        is_right = start[padding] == -1e9 if mask_padding else np.abs(start[padding]) < 10
        assert is_right.all()


# Text in every container that people use


BATCHES = [(TEXTS[start : start + 2], NAMED[start : start + 2]) for start in (0, 2, 4)]
ROWS = list(zip(TEXTS, NAMED, strict=True))
DATASETS = {
    "PyDataset": lambda: Batches(BATCHES),
    "generator": lambda num_epochs=1: (batch for batch in BATCHES * num_epochs),
    "tf.data": lambda: as_tensorflow((TEXTS, NAMED), 2),
    "torch": lambda: as_data_loader(ROWS, 2),
    "grain": lambda: pytest.importorskip("grain").MapDataset.source(ROWS).batch(2),
}


@pytest.mark.also_on("tensorflow")
@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_of_texts_is_tokenized_while_it_is_read(traced_once, name):
    make, task, steps = DATASETS[name], traced_once, 3 if name == "generator" else None
    expected = task.evaluate(TEXTS, NAMED, batch_size=2, verbose=0)
    assert task.evaluate(make(), steps=steps, verbose=0) == pytest.approx(expected, abs=1e-5)
    expected = task.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(task.predict(make(), verbose=0), expected, atol=1e-5)
    options = {"steps_per_epoch": steps, "validation_data": Batches(BATCHES)}
    history = task.fit(make(2) if steps else make(), epochs=2, verbose=0, **options).history
    assert np.isfinite(history["val_loss"]).all() and len(history["loss"]) == 2


@pytest.mark.each_backend
@pytest.mark.parametrize("name", ["tf.data", "torch"])
def test_each_batch_of_a_dataset_is_read_once_per_epoch(traced_once, noted, name):
    seen = noted(traced_once.preprocessor, "tokenize")
    traced_once.fit(DATASETS[name](), epochs=3, verbose=0)
    batches = [TEXTS[:2], TEXTS[2:4], TEXTS[4:]]
    # On TensorFlow Keras looks at the first two before.
    assert seen[-9:] == 3 * batches and len(seen) <= 11


@pytest.mark.also_on("tensorflow")
@pytest.mark.eager
def test_one_batch_may_be_texts(classifier):
    inputs = classifier.preprocessor(TEXTS)
    expected = classifier.predict(inputs, verbose=0)
    np.testing.assert_allclose(classifier.predict_on_batch(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(classifier(TEXTS)), expected, atol=1e-5)
    weights = np.linspace(0.5, 1, len(TEXTS))
    pairs = (TEXTS, NAMED), (inputs, LABELS)
    losses = [classifier.test_on_batch(x, y, weights) for x, y in pairs]
    np.testing.assert_allclose(*losses, atol=1e-5)
    losses = [classifier.train_on_batch(TEXTS, NAMED, return_dict=True)["loss"] for _ in "ab"]
    assert losses[1] < losses[0]


def test_one_batch_may_be_texts_that_are_cut_into_windows():
    windows = bert_keras.QuestionAnswering(tiny_backbone(), preprocessor=tiny_preprocessor())
    pair = (["a b"], ["c " * 40])
    logits = [x["start_logits"] for x in (windows.predict_on_batch(pair), windows.predict(pair))]
    np.testing.assert_allclose(*logits, atol=1e-5)
    with pytest.raises(ValueError, match=r"1 examples, which make \d+ rows. Use `predict`"):
        windows(pair)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, datasets.Dataset.from_dict])
def test_a_table_is_read_by_its_column_of_str(make):
    one = make({"stars": LABELS, "review": TEXTS})
    task = tiny_classifier()
    expected = task.predict(TEXTS, verbose=0)
    np.testing.assert_array_equal(task.predict(one, verbose=0), expected)
    assert task.classify(one) == task.classify(TEXTS)
    task.fit(one, one["stars"], validation_split=0.5, epochs=1, verbose=0)
    task.fit(one, one["stars"], validation_data=(one, one["stars"]), epochs=1, verbose=0)
    two = make({"first": TEXTS, "second": TEXTS, "stars": LABELS})
    with pytest.raises(ValueError, match=r"text_columns=\['premise', 'hypothesis'\].*'second'"):
        task.predict(two)
    pairs = tiny_classifier(preprocessor=tiny_preprocessor(text_columns=["first", "second"]))
    expected = pairs.predict((TEXTS, TEXTS), verbose=0)
    np.testing.assert_array_equal(pairs.predict(two, verbose=0), expected)
    again = type(pairs.preprocessor).from_config(pairs.preprocessor.get_config())
    assert again.text_columns == ["first", "second"]
    with pytest.raises(ValueError, match="columns"):
        pairs.predict(one)


def test_balanced_class_weights_are_scikit_learn_s(classifier):
    from sklearn.utils.class_weight import compute_class_weight

    labels = [0, 0, 0, 0, 1, 0]
    weights = compute_class_weight("balanced", classes=np.array([0, 1]), y=labels)
    found = class_weighted(classifier.encode_labels(labels), None, "balanced", 2)
    np.testing.assert_allclose(found, weights[labels], rtol=1e-6)
    classifier.fit(TEXTS, labels, class_weight="balanced", epochs=1, verbose=0)


# At home in Keras


class Halved(bert_keras.TextClassifier):
    """Has a step and a loss of its own, as Keras's guides write them."""

    num_steps = 0

    def train_step(self, *args):
        self.num_steps += 1
        return super().train_step(*args)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return 0.5 * super().compute_loss(x, y, y_pred, sample_weight, training)


@pytest.mark.also_on("jax")
def test_a_subclass_can_override_the_step_and_the_loss():
    # Larger weights, so that the vectors of the two classes are not almost alike.
    backbone = tiny_backbone(dropout=0.0, initializer_range=0.3)
    task = Halved(backbone, preprocessor=tiny_preprocessor(), dropout=0.0)
    before = task.head.dense.get_weights()[0]
    whole = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    expected = whole(np.array(LABELS), task.predict(TEXTS, verbose=0)) / 2
    task.compile(keras.optimizers.SGD(100.0))
    losses = task.fit(TEXTS, LABELS, epochs=1, verbose=0).history["loss"]
    assert losses == pytest.approx([float(expected)], abs=1e-5)
    assert np.abs(task.head.dense.get_weights()[0] - before).max() > 1e-3
    assert task.num_steps >= 1


def test_a_metric_is_computed_once_if_compile_names_it_again(classifier):
    # Of a sentence the padding must not count, as it would under `metrics`.
    tagger = bert_keras.TokenClassifier(tiny_backbone(), 2, preprocessor=tiny_preprocessor())
    words = [text.split() for text in TEXTS]
    tags = [[0] * len(row) for row in words]
    for task, x, y in [(classifier, TEXTS, LABELS), (tagger, words, tags)]:
        task.compile()
        expected = task.evaluate(x, y, verbose=0, return_dict=True)
        task.compile(metrics=["accuracy"])
        assert task.evaluate(x, y, verbose=0, return_dict=True) == pytest.approx(expected)
        task.compile(metrics=["accuracy", "sparse_categorical_crossentropy"])
        assert len(task.evaluate(x, y, verbose=0)) == 3
        task.compile()


def test_without_a_terminal_each_epoch_prints_one_line(classifier, capfd):
    classifier.fit(TEXTS, LABELS, batch_size=2, epochs=3)
    said = capfd.readouterr().out
    assert "\b" not in said and said.count("loss:") == 3
    classifier.evaluate(TEXTS, LABELS, batch_size=2)
    said = capfd.readouterr().out
    assert "\b" not in said and len(said.splitlines()) == 1


def test_a_folder_without_a_tokenizer_says_how_to_load_it_anyway(tmp_path, classifier):
    classifier.backbone.save_to_preset(tmp_path)
    for cls in (bert_keras.TextClassifier, bert_keras.WordPieceTokenizer):
        with pytest.raises(FileNotFoundError, match="pass `preprocessor=None`"):
            cls.from_preset(tmp_path)
    with pytest.raises(ValueError, match=r"Tokenizer\.from_preset\(folder\)"):
        bert_keras.WordPieceTokenizer(tmp_path)


@pytest.mark.also_on("jax")
def test_a_functional_model_begins_with_the_inputs_of_a_model(tmp_path):
    task = tiny_classifier(tiny_backbone(max_sequence_length=128, dropout=0.0))
    backbone, inputs = task.backbone, task.preprocessor(TEXTS)
    scores = keras.layers.Dense(3)(backbone.output["pooled_output"])
    model = keras.Model(backbone.input, scores)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(inputs, np.array(LABELS), epochs=1, verbose=0)
    vectors = keras.ops.convert_to_numpy(call(backbone, inputs)["pooled_output"])
    kernel, bias = model.layers[-1].get_weights()
    expected = vectors @ kernel + bias
    model.save(tmp_path / "model.keras")
    for each in (model, keras.models.load_model(tmp_path / "model.keras")):
        np.testing.assert_allclose(each.predict(inputs, verbose=0), expected, atol=1e-5)
    on_lists = keras.Model(task.inputs, task.outputs)
    found = on_lists.predict(inputs, verbose=0)
    found = found[0] if isinstance(found, list) else found
    kernel, bias = task.head.dense.get_weights()
    np.testing.assert_allclose(found, vectors @ kernel + bias, atol=1e-5)


def test_a_functional_model_changes_nothing_in_its_task():
    task = tiny_classifier(tiny_backbone(max_sequence_length=128, dropout=0.0))
    expected = task.predict(TEXTS, verbose=0)
    keras.Model(task.backbone.input, keras.layers.Dense(3)(task.backbone.output["pooled_output"]))
    keras.Model(task.inputs, task.outputs)
    for each in (task, copy.deepcopy(task)):
        np.testing.assert_allclose(each.predict(TEXTS, verbose=0), expected, atol=1e-5)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = task.nothing_of_the_kind
    assert task.get_layer("head") is task.head


@pytest.mark.each_backend
@pytest.mark.eager
def test_a_clone_takes_the_vocabulary_of_its_original(classifier):
    clone = keras.models.clone_model(classifier)
    clone.preprocessor = classifier.preprocessor
    clone.set_weights(classifier.get_weights())
    found, expected = (task.predict(TEXTS, verbose=0) for task in (clone, classifier))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_tokenizers_and_preprocessors_come_from_presets():
    tokenizer = bert_keras.WordPieceTokenizer.from_preset(MINI)
    assert tokenizer.get_vocabulary()[:1] == ["[PAD]"]
    assert tokenizer.vocabulary_size == 8192
    preprocessor = bert_keras.TextPreprocessor.from_preset(MINI, max_length=16)
    assert preprocessor(["A ship."])["token_ids"].shape[0] == 1
    task = tiny_classifier()
    assert task.tokenizer is task.preprocessor.tokenizer
    assert tiny_classifier(preprocessor=None).tokenizer is None


@cases(
    ("BertTextClassifier", "TextClassifier"),
    ("RobertaForMaskedLM", "MaskedLM"),
    ("BertTokenizer", "Tokenizer"),
    ("AutoModelForQuestionAnswering", "QuestionAnswering"),
    ("BertTextClassifierPreprocessor", "TextPreprocessor"),
    ("BertModel", "BertBackbone"),
    ("BertClassifier", "TextClassifier"),
    ("RobertaClassifier", "TextClassifier"),
    ("Backbone", "models.backbone.Backbone"),
    ("XLMRobertaBackbone", "models.backbone.Backbone"),
    ("BertEncoder", "BertBackbone"),
    ("BertTokenClassifier", "TokenClassifier"),
    ("BertSpanLabeler", "QuestionAnswering"),
    ("BertPretrainer", "Pretraining"),
    ("BertPackInputs", "TextPreprocessor"),
    ("MaskedLMMaskGenerator", "MaskedLM"),
    ("upload_preset", "Task.export_to_huggingface"),
    ("Lamb", "training.Lamb"),
    ("BestOnMetric", "training.BestOnMetric"),
    # In the module where KerasHub has it.
    ("models.BertBackbone", "BertBackbone"),
    ("models.BertTextClassifier", "TextClassifier"),
    ("layers.MaskedLMMaskGenerator", "MaskedLM"),
    ("tokenizers.BertTokenizer", "Tokenizer"),
)
def test_a_name_of_another_package_or_module_leads_to_ours(name, here):
    with pytest.raises(AttributeError, match=rf"Here it is `bert_keras\.{here}`"):
        operator.attrgetter(name)(bert_keras)
    assert operator.attrgetter(here)(bert_keras)
    with pytest.raises(AttributeError, match="no attribute 'anything'"):
        _ = bert_keras.anything


class WithEncode(bert_keras.TextEmbedder):
    def build(self, input_shape=None):
        self.encode = keras.layers.Dense(2)
        super().build()


def test_a_missing_method_names_its_counterpart_and_stays_missing(classifier):
    tagger = bert_keras.TokenClassifier(tiny_backbone(), 2)
    settings = "max_seq_length", "sequence_length"
    for owner, name, here in [
        (bert_keras.TextClassifier, "from_pretrained", "from_preset"),
        (classifier, "save_pretrained", "export_to_huggingface"),
        (bert_keras.TextEmbedder(tiny_backbone()), "encode", "embed"),
        (classifier.tokenizer, "convert_tokens_to_ids", "token_to_id"),
        (classifier.tokenizer, "decode", "detokenize"),
        (bert_keras.WordPieceTokenizer, "from_pretrained", "from_preset"),
        (classifier.tokenizer, "from_pretrained", "from_preset"),
        (classifier.tokenizer, "batch_decode", "detokenize"),
        (classifier.tokenizer, "vocab_size", "vocabulary_size"),
        (classifier, "max_seq_length", "preprocessor.max_length"),
        (classifier.preprocessor, "sequence_length", "max_length"),
        (classifier, "predict_proba", "classify"),
        (classifier.backbone, "upload_preset", "export_to_huggingface"),
        (tagger, "classify", "tag"),
        (classifier, "freeze", r"from_preset\(..., frozen='backbone'\)"),
    ]:
        with pytest.raises(AttributeError, match=f"no `{name}` here.*`{here}`"):
            getattr(owner, name)
        assert not hasattr(owner, name)
        # Python lists what a class has of a name, here the error that it raises.
        assert name not in dir(owner) or name in ("from_pretrained", *settings)
    for owner, name in ((classifier, settings[0]), (classifier.preprocessor, settings[1])):
        with pytest.raises(AttributeError, match=f"no `{name}` here"):
            setattr(owner, name, 8)
    assert hasattr(classifier, "classify")
    # A layer of that name is found, on PyTorch too, which keeps layers apart.
    assert WithEncode(tiny_backbone()).encode.units == 2
    assert type("Abstract", (bert_keras.TextClassifier, abc.ABC), {}).from_preset


def test_dir_lists_the_public_names():
    names = dir(bert_keras)
    assert {"TextClassifier", "presets", "layers", "training", "heads", "Task"} <= set(names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
    assert bert_keras.layers.CRF and bert_keras.training.Lamb
    table = bert_keras.presets()
    assert {row["name"] for row in table} >= {MINI, "roberta_base_en_cased"}
    assert re.search(r"roberta_base_en_cased +124645632 +English +MIT", repr(table))
    assert pd.DataFrame(table).shape == (len(table), 5)
    arguments = inspect.signature(bert_keras.TextClassifier.fit).parameters
    assert {"x", "y", "epochs", "validation_data", "class_weight"} <= set(arguments)


def test_a_custom_task_and_its_answers_take_sixty_lines(tmp_path):
    guide = guide_to_tasks()
    source = inspect.getsource(guide.GradeAnswerer) + inspect.getsource(guide.Grader)
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 60
    grader = guide.Grader(tiny_backbone(), tiny_preprocessor(), num_grades=3)
    grader.fit(TEXTS, [1, 2, 3, 1, 2, 3], epochs=1, verbose=0)
    expected = grader.predict(TEXTS, verbose=0)
    answers = grader.grade(TEXTS)
    assert {answer["grade"] for answer in answers} <= {1, 2, 3}
    assert grader.grade(TEXTS[0], confidence=0.0) == {"grade": 3, "of": 3}
    number = "`confidence` must be a finite number from 0"
    for options, message in (({"confidence": -1.0}, number), ({"top_k": 3}, "takes confidence")):
        with pytest.raises(ValueError, match=message):
            grader.grade(TEXTS, **options)
    with pytest.raises(ValueError, match="Grades are 1 to 3"):
        grader.fit(TEXTS, [1, 2, 4, 1, 2, 3])
    grader.save_weights(tmp_path / "grader.weights.h5")
    grader.save(tmp_path / "grader.keras")
    grader.save_to_preset(tmp_path / "preset")
    loaded = keras.models.load_model(tmp_path / "grader.keras")
    for again in (loaded, guide.Grader.from_preset(tmp_path / "preset")):
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)
        assert again.grade(TEXTS) == answers


# Mistakes


def fit(*data, **options):
    return lambda task: task.fit(*data, verbose=0, **options)


def compiled(**options):
    return lambda task: tiny_classifier().compile("adam", **options)


def trained_on_scores(task):
    embedder = bert_keras.TextEmbedder(tiny_backbone(), preprocessor=tiny_preprocessor())
    embedder.fit((TEXTS, TEXTS), np.linspace(0, 1, len(TEXTS)))


def with_a_backbone_of_keras_hub(task):
    from keras_hub.models import BertBackbone

    bert_keras.MaskedLM(BertBackbone(9, 1, 1, 4, 4, max_sequence_length=4))


def slices(*columns):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(columns)


WRONG_BATCH = Batches([*BATCHES[:2], ([1.5, 2.5], [0, 1])])
UNKNOWN_LABEL = (batch for batch in [(["a"], ["maybe"])])
MISSPELT = {**tiny_backbone().get_config(), "dropuot": 0.4}
IDS = tiny_preprocessor()(TEXTS)
BY_OUTPUT = {"sample_weight": {"logits": np.ones(6)}}
PROBABILITIES = keras.losses.SparseCategoricalCrossentropy()


@refused(
    (fit(map(str, TEXTS), [0] * len(TEXTS)), "Make it a list"),
    (fit(TEXTS, 0), "examples, 1 label"),
    (fit(TEXTS, LABELS, class_weight="auto"), "`class_weight` must be"),
    (fit(TEXTS, LABELS, initial_epoch=-1), "`initial_epoch` must be an int from 0"),
    (
        lambda task: task.fit(TEXTS, LABELS, verbose="no"),
        r"`verbose` must be one of \('auto', 0, 1, 2\)",
    ),
    (lambda task: task.predict(TEXTS, verbose=3), r"`verbose` must be one of \('auto', 0, 1, 2\)"),
    (lambda task: task({"input_word_ids": IDS["token_ids"]}), "Did you mean 'token_ids'"),
    (lambda task: task({**IDS, "input_type_ids": 0}), "Did you mean 'segment_ids'"),
    (
        lambda task: keras.models.clone_model(task).classify(TEXTS),
        r"`new.preprocessor = task.preprocessor`.*`copy.deepcopy\(task\)`",
    ),
    (fit(Batches(BATCHES), LABELS), "must yield its labels"),
    (fit(Batches([BATCHES[0] * 2])), "Batch 0 of the dataset: A batch must be inputs"),
    (fit(IDS, LABELS, **BY_OUTPUT), "pass an arr"),
    (fit(TEXTS, LABELS, **BY_OUTPUT), "pass an arr"),
    (fit(TEXTS, LABELS, validation_data=(Batches(BATCHES), LABELS)), "must yield its labels"),
    (fit(UNKNOWN_LABEL, steps_per_epoch=1), r"Batch 0 of .*must be one of.*'maybe'"),
    (trained_on_scores, "objective='similarity'"),
    (lambda task: task.compile(lr_schedule="polynomial"), "`lr_schedule` must be one of"),
    (compiled(loss=PROBABILITIES), r"SparseCategoricalCrossentropy\(from_logits=True\)"),
    (compiled(loss="mse"), "whose labels have the shape of the scores"),
    (compiled(loss="binary_crossentropy"), "whose labels have the shape of the scores"),
    (lambda task: task.compile(keras.optimizers.Adam(float("nan"))), "a finite number from 0"),
    (lambda task: task.compile(keras.optimizers.Adam(float("inf"))), "a finite number from 0"),
    (lambda task: task.compile(keras.optimizers.Adam(-1e-3)), "a finite number from 0"),
    (lambda task: task.save("m.h5"), r"\*\.keras.*save_to_preset.*save_weights"),
    (lambda task: task.save("m"), r"\*\.keras.*save_to_preset.*save_weights"),
    (lambda task: task.save("m.hdf5"), r"\*\.keras.*save_to_preset.*save_weights"),
    (fit(TEXTS, LABELS, batch_size=0), "`batch_size` must be an int from 1"),
    (lambda task: task.predict(TEXTS, batch_size=0), "`batch_size` must be an int from 1"),
    (lambda task: task.predict(IDS, batch_size=0), "`batch_size` must be an int from 1"),
    (lambda task: task.backbone.predict(IDS, 0), "`batch_size` must be an int from 1"),
)
def test_a_wrong_value_is_refused_with_the_remedy(classifier, call):
    call(classifier)


@refused(
    (fit(["a", b"a"], [0, 0]), "Decode the bytes among the str"),
    (
        fit(dict.fromkeys(["train", "test"], pd.DataFrame({"text": TEXTS}))),
        r"one table.*\['train', 'test'\].*data\['train'\]",
    ),
    (fit(np.ones((2, 4), int), [0, 1]), r"Token ids go into a dict: \{'token_ids': ids, 'pad"),
    (fit([[2, 4, 3], [2, 3]], [0, 1]), "'token_ids': ids.*padded to one length"),
    (fit(np.array([["a"], ["b"]]), [0, 1]), r"those of an array are x\[:, 0\]"),
    (lambda task: task(np.ones((2, 4), int)), "Pass {'token_ids': ids}"),
    (lambda task: task.evaluate(WRONG_BATCH), "Batch 2 of the dataset: .*Received: list"),
    (lambda task: task.evaluate(slices(TEXTS, LABELS)), r"Batch the dataset: `.batch\(32\)`"),
    (lambda task: task.evaluate(iter([{"text": "a", "label": 0}])), "Batch the dataset: "),
    (lambda task: slices(TEXTS).batch(2).map(tiny_preprocessor()), "the dataset of strings"),
    (lambda task: task.backbone.predict_on_batch(TEXTS), r"its `preprocessor\(texts\)`"),
    (lambda task: task.train_on_batch(np.ones((2, 4), int), [0, 1]), "'token_ids': ids"),
    (lambda _: bert_keras.BertBackbone(**MISSPELT), "no argument 'dropuot'"),
    (lambda _: bert_keras.BertBackbone.from_preset(MINI, num_layer=1), "no argument 'num_l"),
    (lambda _: bert_keras.TextClassifier.from_preset(MINI, freeze=1), "Here: `frozen`"),
    (
        lambda _: bert_keras.TextPreprocessor.from_preset(MINI, sequence_length=8),
        "Here: `max_length`",
    ),
    (lambda task: task.compile(lr=1e-3), "Here: `learning_rate`"),
    (lambda task: task.compile(lr_scheduler_type="cosine"), "Here: `lr_schedule`"),
    (lambda task: task.compile(rate=1e-3), "no argument 'rate'.*'learning_rate'"),
    (fit(TEXTS, LABELS, batchsize=2), "Here: `batch_size`"),
    (fit(TEXTS, LABELS, learning_rate=1e-3), r"compile\(learning_rate"),
    (with_a_backbone_of_keras_hub, r"keras_hub\..*BertBackbone.*`MaskedLM.from_preset`"),
    error=TypeError,
)
def test_a_wrong_type_or_argument_is_refused_with_the_remedy(classifier, call):
    call(classifier)


@pytest.mark.each_backend
def test_a_summary_lists_each_layer_with_its_shape_and_parameters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")

    def summary(model):
        lines = []
        model.summary(140, expand_nested=True, print_fn=lambda text, **_: lines.append(text))
        return "\n".join(lines)

    task = tiny_classifier(tiny_backbone(num_layers=2))  # Never called.
    backbone, found = task.backbone, summary(task)
    tokens, text = (None, None, backbone.hidden_dim), (None, backbone.hidden_dim)
    of_tokens = (backbone, backbone.embeddings, backbone.encoder, *backbone.encoder.blocks)
    shapes = dict.fromkeys(of_tokens, tokens) | {backbone.pooler: text, task.head: (None, 2)}
    for layer, shape in shapes.items():
        row = rf"{layer.name} .*{re.escape(str(shape))} .*\s{layer.count_params():,} "
        assert re.search(row, found), layer.name
    assert f"Total params: {task.count_params():,}" in found
    assert "?" not in summary(bert_keras.MultipleChoice(tiny_backbone()))
