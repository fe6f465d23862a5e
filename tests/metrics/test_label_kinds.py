"""Each metric of Keras gives scikit-learn's number on a task's labels, or `compile` refuses it."""

import functools
import itertools
import types

import numpy as np
import pytest
import scipy.special
import sklearn.metrics as sk
from checks import cases
from keras import metrics as km
from keras import ops

import bert_keras

WORDS = [f"w{i}" for i in range(60)]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
# Keras's curves have 200 thresholds. These probabilities lie between them, no two at one place.
STEP = 199
SIZES = {"two": 2, "three": 3, "several": 3, "score": 1, "scores": 3}


def outputs(kind):
    """Returns a logit, or a score, for each word."""
    rng, count = np.random.default_rng(0), len(VOCABULARY)
    if kind in ("score", "scores"):
        return rng.uniform(0.5, 3.0, (count, SIZES[kind]))
    if kind == "three":
        shares = np.indices((STEP, STEP)).reshape(2, -1).T + 1
        places = np.column_stack([shares, STEP - 1 - shares.sum(axis=1)])
        # No two classes of a word are equally likely: the best class is no tie.
        places = places[(places > 0).all(axis=1) & np.diff(np.sort(places)).all(axis=1)]
        places = rng.choice(places, count)
        return np.log((places + 1 / 3) / STEP) + rng.normal(0, 2, (count, 1))
    places = np.delete(np.arange(STEP), STEP // 2)  # Without one half.
    p = (rng.permuted(np.tile(places, (3, 1)), axis=1)[:, :count].T + 0.5) / STEP
    if kind == "several":
        return np.log(p / (1 - p))
    return np.log(np.stack([1 - p[:, 0], p[:, 0]], -1)) + rng.normal(0, 2, (count, 1))


class Told:
    """Mixin of a task: its outputs are a row of a table for each word."""

    table = None

    def call(self, inputs, *args, training=None, **kwargs):
        ids = inputs["token_ids"] if self.label_per_token else inputs["token_ids"][:, 1]
        return ops.take(ops.convert_to_tensor(self.table, "float32"), ids, axis=0)


class ToldClassifier(Told, bert_keras.TextClassifier):
    pass


class ToldTagger(Told, bert_keras.TokenClassifier):
    pass


@functools.cache
def task_of(kind, of_tokens=False):
    """Returns a task whose outputs are those of `outputs`."""
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
    backbone = bert_keras.BertBackbone(len(VOCABULARY), **sizes, max_sequence_length=16)
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    types_ = {"several": "multi_label", "score": "regression", "scores": "regression"}
    options = {} if of_tokens else {"problem_type": types_.get(kind, "single_label")}
    make = ToldTagger if of_tokens else ToldClassifier
    task = make(backbone, SIZES[kind], preprocessor=preprocessor, **options)
    task.table = outputs(kind)
    return task


def data_of(kind):
    """Returns the labels of all words, and their outputs in each form."""
    z = outputs(kind)[5:]
    rng, count, size = np.random.default_rng(1), *z.shape
    data = types.SimpleNamespace(z=z, size=size)
    if kind in ("score", "scores"):
        data.y = np.abs(z + rng.normal(0, 0.5, z.shape)) + 0.1
        return data
    # A column for each class or label: whether it is true, and whether it is predicted.
    if kind == "several":
        data.p = scipy.special.expit(z)
        data.y = (data.p + rng.normal(0, 0.3, z.shape) > 0.5).astype(int)
        data.each, data.chosen = data.y, z > 0
    else:
        data.p = scipy.special.softmax(z, axis=-1)
        data.y = np.where(rng.random(count) < 0.7, z.argmax(-1), rng.integers(0, size, count))
        data.each, data.chosen = (np.eye(size, dtype=int)[x] for x in (data.y, z.argmax(-1)))
    # Of two classes, the second is "yes". Equal probabilities stay equal.
    columns = np.s_[:, 1:] if size == 2 else np.s_[:]
    shares = data.p.round(9)
    data.true, data.pred, data.shares = (
        x[columns].ravel() for x in (data.each, data.chosen, shares)
    )
    return data


def of_classes(function):
    """Returns the scores of a function of classes: of two, of three, of several labels."""
    return {"two": function, "three": function}


def of_yes_or_no(function, three=True):
    return {"two": function, "several": function, **({"three": function} if three else {})}


def of_scores(function):
    return dict.fromkeys(("score", "scores"), lambda d: function(d.y, d.z))


def on(function, predictions="pred"):
    return lambda d: function(d.true, getattr(d, predictions))


def counts(which):
    return of_yes_or_no(lambda d: sk.confusion_matrix(d.true, d.pred).ravel()[which])


def best(values, limited, least):
    return max(v for v, limit in zip(values, limited, strict=True) if limit >= least - 1e-9)


def roc(d, least, swap):
    fall_out, recall, _ = sk.roc_curve(d.true, d.shares, drop_intermediate=False)
    return best(*((1 - fall_out, recall) if swap else (recall, 1 - fall_out)), least)


def curve(d, least, swap):
    precision, recall, _ = sk.precision_recall_curve(d.true, d.shares)
    return best(*((recall, precision) if swap else (precision, recall)), least)


def poisson(y, z):
    deviance = sk.mean_poisson_deviance(y.ravel(), z.ravel())
    return deviance / 2 + np.mean(y - scipy.special.xlogy(y, y))


def root_error(y, z):
    return sk.mean_squared_error(y, z) ** 0.5


def percentage_error(y, z):
    return 100 * sk.mean_absolute_percentage_error(y, z)


def accuracy(d):
    return sk.accuracy_score(d.y, d.z.argmax(-1))


def log_loss(d):
    return sk.log_loss(d.y, d.p)


def top_2(d):
    return 1.0 if d.size == 2 else sk.top_k_accuracy_score(d.y, d.p, k=2)


def auc(average):
    return lambda d: sk.roc_auc_score(d.each, d.p.round(9), average=average)


def f_score(average, beta=1):
    return lambda d: sk.fbeta_score(d.each, d.chosen, beta=beta, average=average)


def beyond_half(d):
    return sk.f1_score(d.each, d.p > 0.5, average="macro")


def of_class(function, number):
    return lambda d: function(d.each[:, number], d.chosen[:, number])


def at_threshold(function, threshold):
    return lambda d: function(d.true, d.shares > threshold)


NEVER = (km.CategoricalHinge, km.BinaryIoU, km.Hinge, km.SquaredHinge, km.CosineSimilarity)
NEVER += (km.PearsonCorrelation, km.ConcordanceCorrelation, km.KLDivergence)
NEVER += (km.Mean, km.Sum, km.Metric)
OF_LOGITS = (km.SparseCategoricalCrossentropy, km.CategoricalCrossentropy)
OF_LOGITS += (km.BinaryCrossentropy, km.AUC)
# A metric, and scikit-learn's score for each kind of labels that it fits. `compile` refuses others.
EXPECTED = [
    (lambda n: km.Accuracy(), of_classes(accuracy)),
    (lambda n: km.SparseCategoricalAccuracy(), of_classes(accuracy)),
    (lambda n: km.CategoricalAccuracy(), of_classes(accuracy)),
    (lambda n: km.SparseTopKCategoricalAccuracy(min(2, n)), of_classes(top_2)),
    (lambda n: km.TopKCategoricalAccuracy(min(2, n)), of_classes(top_2)),
    (lambda n: km.SparseCategoricalCrossentropy(), of_classes(log_loss)),
    (lambda n: km.CategoricalCrossentropy(), of_classes(log_loss)),
    (lambda n: km.F1Score(), of_classes(f_score(None))),
    (lambda n: km.F1Score("macro"), of_classes(f_score("macro"))),
    (lambda n: km.F1Score("macro", threshold=0.5), of_yes_or_no(beyond_half)),
    (lambda n: km.FBetaScore("micro", 0.5), of_classes(f_score("micro", 0.5))),
    (lambda n: km.FBetaScore("weighted", 2.0), of_classes(f_score("weighted", 2))),
    (lambda n: km.IoU(max(n, 2), [1]), {}),
    (lambda n: km.MeanIoU(n), {}),
    (lambda n: km.OneHotIoU(max(n, 2), [1]), {}),
    (lambda n: km.OneHotMeanIoU(n), {}),
    (lambda n: km.BinaryAccuracy(), of_yes_or_no(on(sk.accuracy_score), False)),
    (lambda n: km.BinaryAccuracy(threshold=0.0), {}),
    (lambda n: km.BinaryCrossentropy(), of_yes_or_no(on(sk.log_loss, "shares"), False)),
    (lambda n: km.AUC(), of_yes_or_no(on(sk.roc_auc_score, "shares"))),
    (lambda n: km.AUC(multi_label=True), of_yes_or_no(auc("macro"))),
    (lambda n: km.Precision(), of_yes_or_no(on(sk.precision_score))),
    (lambda n: km.Precision(class_id=0), of_yes_or_no(of_class(sk.precision_score, 0))),
    (lambda n: km.Precision(thresholds=0.6), of_yes_or_no(at_threshold(sk.precision_score, 0.6))),
    (lambda n: km.Precision(thresholds=0), {}),
    (
        lambda n: km.Precision(top_k=1, class_id=1),
        of_yes_or_no(lambda d: sk.precision_score(d.each[:, 1], d.z.argmax(-1) == 1)),
    ),
    (lambda n: km.Recall(), of_yes_or_no(on(sk.recall_score))),
    (lambda n: km.Recall(class_id=1), of_yes_or_no(of_class(sk.recall_score, 1))),
    (lambda n: km.TrueNegatives(), counts(0)),
    (lambda n: km.FalsePositives(), counts(1)),
    (lambda n: km.FalseNegatives(), counts(2)),
    (lambda n: km.TruePositives(), counts(3)),
    (lambda n: km.SensitivityAtSpecificity(0.8), of_yes_or_no(lambda d: roc(d, 0.8, False))),
    (lambda n: km.SpecificityAtSensitivity(0.8), of_yes_or_no(lambda d: roc(d, 0.8, True))),
    (lambda n: km.PrecisionAtRecall(0.8), of_yes_or_no(lambda d: curve(d, 0.8, False))),
    (lambda n: km.RecallAtPrecision(0.8), of_yes_or_no(lambda d: curve(d, 0.8, True))),
    (lambda n: km.MeanSquaredError(), of_scores(sk.mean_squared_error)),
    (lambda n: km.RootMeanSquaredError(), of_scores(root_error)),
    (lambda n: km.MeanAbsoluteError(), of_scores(sk.mean_absolute_error)),
    (lambda n: km.MeanAbsolutePercentageError(), of_scores(percentage_error)),
    (lambda n: km.MeanSquaredLogarithmicError(), of_scores(sk.mean_squared_log_error)),
    (lambda n: km.LogCoshError(), of_scores(lambda y, z: np.log(np.cosh(z - y)).mean())),
    (lambda n: km.Poisson(), of_scores(poisson)),
    (lambda n: km.R2Score(), of_scores(sk.r2_score)),
    (
        lambda n: km.MeanMetricWrapper(km.binary_accuracy),
        of_yes_or_no(on(sk.accuracy_score), False),
    ),
    (lambda n: km.MeanMetricWrapper(km.top_k_categorical_accuracy, k=min(2, n)), of_classes(top_2)),
    (lambda n: km.huber, of_scores(lambda y, z: scipy.special.huber(1, z - y).mean())),
    *((lambda n, make=make: make(), {}) for make in NEVER),
    *((lambda n, make=make: make(from_logits=True), {}) for make in OF_LOGITS),
]
REFUSED = "does not fit these labels: .* (Use|Leave)|not a metric of labels"
KINDS = [*((kind, False) for kind in SIZES), ("two", True), ("three", True)]


def test_the_table_has_every_metric_of_keras():
    public = {x for x in vars(km).values() if isinstance(x, type) and issubclass(x, km.Metric)}
    assert public <= {type(make(2)) for make, _ in EXPECTED}


def evaluated(task, kind, data, of_tokens, **compiled):
    """Returns what `evaluate` says of all words, and the indices of the words that it saw."""
    task.compile(**compiled)
    if not of_tokens:
        return task.evaluate(WORDS, data.y, verbose=0, return_dict=True, batch_size=20)
    cuts = [0, 1, 3, 6, 10, 20, 32, 40, 53, 60]
    slices = [slice(*cut) for cut in itertools.pairwise(cuts)]
    sentences, tags = ([list(x[cut]) for cut in slices] for x in (WORDS, data.y.tolist()))
    size = 4 if kind == "three" else 9
    return task.evaluate(sentences, tags, verbose=0, return_dict=True, batch_size=size)


@pytest.mark.parametrize(("kind", "of_tokens"), KINDS)
def test_metrics_equal_scikit_learn_s(kind, of_tokens):
    task, data = task_of(kind, of_tokens), data_of(kind)
    fitting = [(make(SIZES[kind]), fits[kind]) for make, fits in EXPECTED if kind in fits]
    names = []
    for number, (metric, _) in enumerate(fitting):
        names.append(f"{number}_{getattr(metric, 'name', '')}")
        if isinstance(metric, km.Metric):
            metric.name = names[-1]
        else:
            names[-1] = metric.__name__
    found = evaluated(task, kind, data, of_tokens, metrics=[metric for metric, _ in fitting])
    for name, (_, score) in zip(names, fitting, strict=True):
        options = {"rtol": 1e-6, "atol": 1e-6, "err_msg": name}
        np.testing.assert_allclose(np.asarray(found[name]), score(data), **options)


@pytest.mark.parametrize(("kind", "of_tokens"), KINDS)
def test_metrics_that_do_not_fit_are_refused_with_one_that_does(kind, of_tokens):
    task = task_of(kind, of_tokens)
    before = task.recipe
    for make, fits in EXPECTED:
        if kind not in fits:
            metric = make(SIZES[kind])
            for argument in ("metrics", "weighted_metrics"):
                name = getattr(metric, "name", metric)
                with pytest.raises(ValueError, match=REFUSED):
                    task.compile(**{argument: [metric]})
                    pytest.fail(f"{name} was taken")
    assert task.recipe is before


def test_weights_count_as_in_scikit_learn():
    task, data = task_of("two"), data_of("two")
    weights = np.random.default_rng(0).uniform(0, 2, len(WORDS)).astype("float32")
    options = {"sample_weight": weights}
    classes, shares = (data.y, data.pred), (data.y, data.shares)
    scores = {
        "precision": sk.precision_score(*classes, **options),
        "recall": sk.recall_score(*classes, **options),
        "auc": sk.roc_auc_score(*shares, **options),
        "accuracy": sk.accuracy_score(*classes, **options),
        "sparse_categorical_crossentropy": sk.log_loss(*shares, **options),
        "f1_score": sk.f1_score(*classes, average=None, **options),
    }
    used = km.Precision(name="used")
    used.update_state([0.0], [1.0])  # As by another model: its counts do not stay.
    task.compile(weighted_metrics=[*scores, used])
    found = task.evaluate(WORDS, data.y, 20, 0, weights, return_dict=True)
    assert found["used"] == found["precision"]
    for name, expected in scores.items():
        np.testing.assert_allclose(np.asarray(found[name]), expected, rtol=1e-6, err_msg=name)
    with pytest.raises(ValueError, match=r"no metric 'f1'.*'f1_score'"):
        task.compile(metrics=["f1"])
    # A history holds the score of each class.
    task = bert_keras.TextClassifier(task.backbone, 2, preprocessor=task.preprocessor)
    task.compile(metrics=["f1_score"])
    assert np.shape(task.fit(WORDS, data.y, epochs=1, verbose=2).history["f1_score"]) == (1, 2)


def brier(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


class DataShard(km.Mean):
    """The mean of the outputs themselves."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(ops.mean(y_pred, axis=-1))


def test_a_metric_of_one_s_own_reads_what_its_attribute_says():
    task, data = task_of("two"), data_of("two")
    brier.reads = ("probabilities", "probabilities")
    task.compile(metrics=[brier, DataShard(name="raw")])
    found = task.evaluate(WORDS, data.y, 20, verbose=0, return_dict=True)
    assert found["brier"] == pytest.approx(sk.brier_score_loss(data.y, data.shares), rel=1e-6)
    assert found["raw"] == pytest.approx(data.z.mean(), rel=1e-5)
    brier.reads = ("anything", "probabilities")
    with pytest.raises(ValueError, match="reads of brier"):
        task.compile(metrics=[brier])
    brier.reads = ("one_hot", "probabilities")
    with pytest.raises(ValueError, match="does not fit"):
        task_of("score").compile(metrics=[brier])
    with pytest.raises(ValueError, match="`class_id` must be from 0 to 1"):
        task.compile(metrics=[km.Recall(class_id=2)])
    with pytest.raises(ValueError, match="`k` must be at most 2"):
        task.compile(metrics=["sparse_top_k_categorical_accuracy"])


TEXTS = ["w1 w2", "w3 w4 w5", "w6", "w7 w8", "w9 w10 w11 w12", "w13"]
LISTS = [["w1", "w2 w3"], ["w4 w5", "w6", "w7"], ["w8"]]
IDS = {"token_ids": np.random.default_rng(0).integers(5, 65, (6, 4))}
REPLACED = np.random.default_rng(1).integers(0, 2, (6, 4))


OF_CHOICES = "sparse_categorical_crossentropy"
PAIRS, NEXT = (TEXTS, TEXTS[::-1]), [0, 1, 1, 0, 1, 0]
ENDINGS = (TEXTS, [["w1", "w2"], ["w3", "w4", "w5"]] * 3)


def recall_of_next(z, y):
    return sk.recall_score(y, z.argmax(-1))


def loss_of_choices(z, y):
    return sk.log_loss(y, scipy.special.softmax(z, -1), labels=[0, 1, 2])


def loss_of_tokens(z, y):
    return sk.log_loss(y.ravel(), scipy.special.expit(z).ravel())


def error_of_cosines(z, y):
    return np.abs(1 - sk.pairwise.paired_cosine_distances(z[:, 0], z[:, 1]) - y).mean()


@cases(
    ("NextSentencePrediction", PAIRS, NEXT, "recall", recall_of_next),
    ("MultipleChoice", ENDINGS, [0, 2, 1, 0, 1, 1], OF_CHOICES, loss_of_choices),
    ("Reranker", PAIRS, NEXT, km.AUC(100_001), lambda z, y: sk.roc_auc_score(y, z[:, 0])),
    ("ReplacedTokenDetector", IDS, REPLACED, "binary_crossentropy", loss_of_tokens),
    ("TextEmbedder", PAIRS, np.linspace(-1, 1, 6), "mae", error_of_cosines),
)
def test_other_tasks_with_labels_have_keras_s_metrics_too(name, x, y, metric, expected):
    classifier = task_of("two")
    options = {"objective": "similarity"} if name == "TextEmbedder" else {}
    config = {**classifier.backbone.get_config(), "initializer_range": 0.5}
    backbone = bert_keras.BertBackbone.from_config(config)
    task = getattr(bert_keras, name)(backbone, preprocessor=classifier.preprocessor, **options)
    task.compile(metrics=[metric])
    found = task.evaluate(x, y, batch_size=3, verbose=0, return_dict=True)
    name = getattr(metric, "name", metric)
    predicted = np.asarray(task.predict(x, verbose=0))
    assert found[name] == pytest.approx(expected(predicted, y), rel=1e-5)
    with pytest.raises(ValueError, match="does not fit these labels"):
        task.compile(metrics=[km.KLDivergence()])


def test_texts_that_lists_do_not_have_do_not_count():
    classifier = task_of("two")
    task = bert_keras.Reranker(classifier.backbone, preprocessor=classifier.preprocessor)
    queries, labels = TEXTS[:3], [[1, 0], [0, 1, 1], [1]]
    pairs = [(q, text) for q, texts in zip(queries, LISTS, strict=True) for text in texts]
    scores = task.predict(tuple(map(list, zip(*pairs, strict=True))), verbose=0)[:, 0]
    task.compile(metrics=["binary_crossentropy", "recall"])
    found = task.evaluate((queries, LISTS), labels, verbose=0, return_dict=True)
    true = np.concatenate(labels)
    expected = sk.log_loss(true, scipy.special.expit(scores))
    assert found["binary_crossentropy"] == pytest.approx(expected, rel=1e-6)
    assert found["recall"] == pytest.approx(sk.recall_score(true, scores > 0))
    with pytest.raises(ValueError, match="no classes and no scores"):
        task.compile(loss="mse", metrics=["recall"])


def test_metrics_of_several_outputs_are_given_by_output():
    classifier = task_of("two")
    task = bert_keras.QuestionAnswering(classifier.backbone, preprocessor=classifier.preprocessor)
    starts = np.array([0, 1, 2, 3, 1, 0])
    labels = {"start_logits": starts, "end_logits": np.array([1, 1, 3, 3, 2, 0])}
    top = [km.SparseTopKCategoricalAccuracy(2, name="top")]
    for metrics in ({"start_logits": top}, [[], top]):
        task.compile(metrics=metrics)
        found = task.evaluate(IDS, labels, verbose=0, return_dict=True)
        logits = task.predict(IDS, verbose=0)["start_logits"]
        expected = sk.top_k_accuracy_score(starts, logits, k=2, labels=range(4))
        assert found["start_logits_top"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="one of several places"):
        task.compile(metrics={"start_logits": ["precision"]})
    with pytest.raises(ValueError, match=r"dict with some of \['end_logits', 'start_logits'\]"):
        task.compile(metrics=["accuracy"])
