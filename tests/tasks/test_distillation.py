import numpy as np
import pytest
import scipy.special
from checks import cases, to_numpy
from tiny import VOCABULARY, tiny_backbone, tiny_classifier, tiny_preprocessor, tiny_task

import bert_keras
from bert_keras.presets.assign import by_path

pytestmark = pytest.mark.once

TEXTS = ["a b c d", "d e", "h a g g", "b c c"] * 4
LABELS = [0, 1, 1, 0] * 4


def language_model(num_layers=3, **sizes):
    backbone = tiny_backbone(num_layers=num_layers, initializer_range=0.3, **sizes)
    return tiny_task("MaskedLM", backbone)


def batch():
    rng = np.random.default_rng(0)
    mask = np.ones((2, 6), "int32")
    mask[1, 4:] = 0
    inputs = {
        "token_ids": rng.integers(5, len(VOCABULARY), (2, 6)).astype("int32"),
        "padding_mask": mask,
        "mask_positions": np.array([[1, 3], [2, 0]], "int32"),
    }
    return inputs, np.array([[5, 7], [6, 0]], "int32"), np.array([[1.0, 1.0], [1.0, 0.0]])


def values(model):
    return [to_numpy(weight) for weight in model.weights]


def softened(logits, temperature):
    return scipy.special.log_softmax(logits / temperature, axis=-1)


def test_the_loss_is_the_formula_s():
    teacher, student = language_model(), language_model(1)
    model = bert_keras.distill(teacher, student, temperature=3.0)
    (inputs, labels, weights), parts = batch(), []
    for task in (teacher, student):
        read = {name: value for name, value in inputs.items() if name != "mask_positions"}
        outputs = task.backbone(read)
        logits = task.head(outputs, token_embedding=task.backbone.token_embedding)
        parts.append((to_numpy(outputs["sequence_output"]), to_numpy(logits)))
    (h_t, t), (h_s, s) = parts
    is_real = inputs["padding_mask"] == 1
    wanted, found = softened(t, 3.0), softened(s, 3.0)
    soft = 9 * (np.exp(wanted) * (wanted - found)).sum(-1)[is_real].mean()
    lengths = np.linalg.norm(h_t, axis=-1) * np.linalg.norm(h_s, axis=-1)
    cosine = (1 - (h_t * h_s).sum(-1) / lengths)[is_real].mean()
    hard = -np.mean(
        [softened(s, 1)[row, at, i] for row, at, i in ((0, 1, 5), (0, 3, 7), (1, 2, 6))]
    )
    scores = model.evaluate(inputs, labels, sample_weight=weights, verbose=0, return_dict=True)
    expected = {"soft_loss": soft, "hard_loss": hard, "cosine_loss": cosine}
    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-5)
    assert scores["loss"] == pytest.approx(5 * soft + 2 * hard + cosine, abs=1e-4)
    assert scores["hard_perplexity"] == pytest.approx(np.exp(hard), rel=1e-4)
    np.testing.assert_allclose(model.predict(inputs, verbose=0), student.predict(inputs, verbose=0))


@pytest.mark.parametrize("name", ["MaskedLM", "TextClassifier"])
def test_rows_of_weight_0_have_no_loss(name):
    """JAX fills up the last batch with such rows."""
    teacher, student = (tiny_task(name, tiny_backbone(initializer_range=x)) for x in (0.3, 0.2))
    model = bert_keras.distill(teacher, student)
    inputs, labels, weights = batch()
    if name == "TextClassifier":
        labels, weights = labels[:, 0] % 2, weights[:, 0]
        del inputs["mask_positions"]
    options = {"verbose": 0, "return_dict": True}
    first = {key: x[:1] for key, x in inputs.items()}
    expected = model.evaluate(first, labels[:1], sample_weight=weights[:1], **options)
    weights[1] = 0
    found = model.evaluate(inputs, labels, sample_weight=weights, **options)
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.also_on("jax")
def test_the_student_learns_and_the_teacher_stays():
    teacher = language_model(2)
    model = bert_keras.distill(teacher, student=(1,))
    before, started = values(teacher), values(model.student)
    model.compile(learning_rate=1e-3)
    loss = model.fit(TEXTS, epochs=6, batch_size=8, verbose=0).history["soft_loss"]
    assert loss[-1] < loss[0]
    np.testing.assert_equal(values(teacher), before)
    assert any((old != new).any() for old, new in zip(started, values(model.student), strict=True))
    assert all(weight.trainable for weight in teacher.trainable_weights)


def test_a_file_has_both_models_and_a_preset_the_student(tmp_path, reloaded):
    model = bert_keras.distill(language_model(2), student=(1,))
    scores = [m.evaluate(TEXTS, verbose=0) for m in (model, reloaded(model))]
    np.testing.assert_allclose(*scores, atol=1e-5)
    model.save_to_preset(tmp_path / "student")
    assert bert_keras.MaskedLM.from_preset(tmp_path / "student").backbone.num_layers == 1


@pytest.mark.parametrize("family", ["BertBackbone", "AlbertBackbone", "ModernBertBackbone"])
def test_a_student_begins_with_layers_of_its_teacher(family):
    sizes = tiny_backbone().get_config()
    names = ("vocabulary_size", "num_heads", "hidden_dim", "intermediate_dim")
    options = {name: sizes[name] for name in names}
    backbone = getattr(bert_keras, family)(num_layers=4, **options)
    teacher = bert_keras.MaskedLM(backbone, tiny_preprocessor())
    student = bert_keras.distill(teacher, range(4)).student
    inputs = batch()[0]
    np.testing.assert_allclose(
        student.predict(inputs, verbose=0), teacher.predict(inputs, verbose=0), atol=1e-6
    )
    shallow = bert_keras.distill(teacher, (1, 3)).student.backbone
    for layer, of_teacher in enumerate((1, 3)):
        theirs = by_path(backbone.encoder.blocks[of_teacher].weights)
        for path, weight in by_path(shallow.encoder.blocks[layer].weights).items():
            path = path.replace(f"/layer_{layer}/", f"/layer_{of_teacher}/")
            np.testing.assert_array_equal(to_numpy(weight), to_numpy(theirs[path]))


def test_a_classifier_teaches_by_its_probabilities():
    teacher = tiny_classifier(tiny_backbone(num_layers=2, initializer_range=0.5))
    student = tiny_classifier(tiny_backbone(hidden_dim=8, num_heads=1))
    model = bert_keras.distill(teacher, student, cosine_weight=0, hard_weight=0)
    model.compile(learning_rate=1e-2)
    loss = model.fit(TEXTS, LABELS, epochs=10, batch_size=8, verbose=0).history["loss"]
    assert loss[-1] < 0.97 * loss[0]  # Ten steps of a weak run reach 0.94.
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), student.predict(TEXTS, verbose=0))


@cases(
    (lambda: tiny_classifier(), lambda t: language_model(), {}, "one class"),
    (lambda: tiny_task("TextEmbedder"), lambda t: (0,), {}, "objective='vectors'"),
    (lambda: language_model(), lambda t: (0, 5), {}, r"`student` must be .*from 0 to 2"),
    (lambda: language_model(), lambda t: t, {}, "must have two backbones"),
    (lambda: language_model(), lambda t: language_model(hidden_dim=8), {}, "cosine_weight=0"),
    (lambda: language_model(), lambda t: (0,), {"temperature": 0}, "`temperature`"),
    (
        lambda: tiny_classifier(problem_type="regression"),
        lambda t: (0,),
        {},
        "choose one class",
    ),
)
def test_what_does_not_fit_is_refused(teacher, student, options, message):
    teacher = teacher()
    with pytest.raises((TypeError, ValueError), match=message):
        bert_keras.distill(teacher, student(teacher), **options)
