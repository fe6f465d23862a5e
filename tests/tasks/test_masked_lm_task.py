import numpy as np
import pytest
from checks import check_task, check_token_metrics, made_again, refusals
from tiny import (
    VOCABULARY,
    batches_of,
    ready_inputs,
    tiny_backbone,
    tiny_preprocessor,
    tiny_task,
)

import bert_keras
from bert_keras.preprocessing.masking import Masking
from bert_keras.preprocessing.ragged import Ragged

pytestmark = pytest.mark.once

TEXTS = ["a b c d e f g h", "b c", "h g f e d c b a", "a a b b c c d"]
MASK = VOCABULARY.index("[MASK]")


def tiny_model(**options):
    return tiny_task("MaskedLM", **options)


# A task that no test changes: it is compiled once for all.
shared = pytest.fixture(tiny_model, scope="module")


def random_inputs(num_predictions=2):
    return ready_inputs(3, 9, least=3, num_predictions=num_predictions)


def test_it_keeps_the_contract_of_tasks_and_its_masking(tmp_path, shared):
    model = tiny_model(masking=Masking(rate=0.3, strategy="whole_words"), frozen="embeddings")
    answers = {"fill_mask": (["a [MASK] c"],), "score": (TEXTS,)}
    for copy in check_task(model, random_inputs(), tmp_path, answers):
        assert copy.masking.get_config() == model.masking.get_config()
    of_dict = tiny_model(backbone=shared.backbone, masking={"strategy": "spans"})
    assert made_again(of_dict).masking.strategy == "spans"


@pytest.mark.each_backend
@pytest.mark.eager
def test_the_loss_is_the_mean_over_masked_positions_of_the_whole_batch(shared):
    inputs = random_inputs(num_predictions=4)
    labels = np.random.default_rng(1).integers(0, len(VOCABULARY), (3, 4))
    weights = np.array([[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], "float32")
    results = shared.evaluate(
        inputs, labels, sample_weight=weights, batch_size=3, verbose=0, return_dict=True
    )
    logits = shared.predict(inputs, verbose=0)
    loss = check_token_metrics(results, labels, logits, weights)
    assert results["loss"] == pytest.approx(loss, rel=1e-5)


@pytest.mark.each_backend
def test_the_weight_of_a_row_is_that_of_each_of_its_masked_tokens(shared):
    x, y = random_inputs(), np.random.default_rng(0).integers(5, 10, (3, 2))
    of_rows = np.array([1.0, 0.0, 3.0])
    for measure in (shared.evaluate, shared.test_on_batch):
        expected = measure(x, y, sample_weight=np.repeat(of_rows[:, None], 2, axis=1))
        for weights in (of_rows, of_rows[:, None]):
            found = measure(x, y, sample_weight=weights)
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_masks_are_new_in_each_epoch_of_fit_and_the_same_in_each_evaluation():
    model = tiny_model()
    data = batches_of(model, TEXTS, training=True, shuffle=True)
    first = [data[i][0]["token_ids"] for i in range(len(data))]
    data.on_epoch_begin()
    _ = [data[i] for i in range(len(data))]
    data.on_epoch_end()
    second = [data[i][0]["token_ids"] for i in range(len(data))]
    assert any((a != b).any() for a, b in zip(first, second, strict=True))
    once, again = (model.evaluate(TEXTS, verbose=0, return_dict=True) for _ in range(2))
    assert once == again


@pytest.mark.each_backend
def test_masked_batches_are_padded_alike_on_each_backend():
    # Which tokens are masked depends on it.
    backbone = tiny_backbone(max_sequence_length=48)
    model = bert_keras.MaskedLM(backbone, preprocessor=tiny_preprocessor(max_length=48))
    for shuffle in (True, False):
        found = batches_of(model, TEXTS, shuffle=shuffle, training=True).buckets
        assert found == (16, 24, 32, 40, 48)


def test_labels_are_the_tokens_that_stood_there():
    model = tiny_model(masking={"rate": 0.4})
    data = batches_of(model, TEXTS, training=True, shuffle=True, batch_size=8)
    inputs, labels, weights = data[0]
    original = model.preprocessor(TEXTS, length=16)["token_ids"]
    rows = data.batches[0][0]
    for place, row in enumerate(rows):
        real = weights[place] > 0
        positions = inputs["mask_positions"][place][real]
        np.testing.assert_array_equal(original[row][positions], labels[place][real])
        others = np.delete(np.arange(inputs["token_ids"].shape[1]), positions)
        np.testing.assert_array_equal(inputs["token_ids"][place][others], original[row][others])
    assert weights[: len(rows)].any(axis=1).all()


def test_fill_mask_answers_each_mask_of_each_text(shared):
    texts = ["[MASK] b", "a [MASK] c [MASK] e f g h", "a b c [MASK]"]
    answers = shared.fill_mask(texts, top_k=3)
    assert [len(answer) for answer in answers] == [1, 2, 1]
    inputs = shared.preprocessor(texts)
    logits = shared.predict(inputs, verbose=0)  # of every position
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for row, answer in enumerate(answers):
        hidden = inputs["token_ids"][row] == MASK
        for found, expected in zip(answer, probabilities[row][hidden], strict=True):
            best = np.argsort(-expected)[:3]
            assert [token for token, _ in found] == [VOCABULARY[i] for i in best]
            np.testing.assert_allclose([p for _, p in found], expected[best], atol=1e-5)
    assert np.shape(shared.fill_mask(texts, top_k=3)[0]) == (1, 3, 2)


def test_score_is_the_sum_of_each_token_s_log_probability_when_it_is_masked(shared):
    texts = ["a b c", "", "hab", "d"]
    rows = [shared.preprocessor.tokenizer(text) for text in texts]
    places = [(row, place) for row, ids in enumerate(rows) for place in range(len(ids))]
    hidden = [[*rows[r][:p], MASK, *rows[r][p + 1 :]] for r, p in places]
    inputs = shared.preprocessor.pack(Ragged.from_rows(hidden))
    logits = shared.predict(inputs, verbose=0).astype("float64")
    expected = np.zeros(len(texts))
    for found, (row, place) in zip(logits[:, 1:], places, strict=True):
        normalizer = np.log(np.exp(found[place]).sum())
        expected[row] += found[place][rows[row][place]] - normalizer
    np.testing.assert_allclose(shared.score(texts), expected, atol=1e-4)
    assert shared.score("") == 0


test_what_does_not_fit_is_refused = refusals(
    (lambda m: m.fit(TEXTS, [0, 1, 0, 1]), "have no labels"),
    (lambda m: m.fill_mask("a b"), r"needs a \[MASK\].*index 0"),
    (
        lambda m: m.fill_mask(["[MASK]", "a " * 20 + "[MASK]"]),
        r"No \[MASK\] may fall off .* Received 1 at the index 1",
    ),
    (lambda m: m.fill_mask("[MASK]", top_k=0), "top_k"),
    (lambda m: m.score(["a", "a " * 15]), "must fit whole.*index 1"),
    (lambda m: m.fit(random_inputs(), np.full((3, 2), 99)), "ids from 0 to"),
    (lambda m: m.fit(random_inputs(), [[5, 6], [5], [6]]), "rows of different.*Give positions"),
    (lambda m: m.fit(random_inputs(), np.zeros(3, int)), "shape"),
    (
        lambda m: m.predict({**random_inputs(), "mask_positions": np.full((3, 2), 9)}),
        "mask_positions.*0 to 8",
    ),
    (
        lambda m: m.predict({**random_inputs(), "mask_positions": np.zeros((2, 2), int)}),
        "a row for each row",
    ),
    (lambda m: tiny_model(masking="spans"), TypeError, "masking"),
    of="shared",
)


@pytest.mark.parametrize("name", ["MaskedLM", "Pretraining"])
def test_a_vocabulary_without_mask_is_refused_when_the_task_is_made(name):
    preprocessor = tiny_preprocessor(vocabulary=[x for x in VOCABULARY if x != "[MASK]"])
    with pytest.raises(ValueError, match=r"hold a `mask_token`.*\[MASK\]"):
        tiny_task(name, preprocessor=preprocessor)
    assert tiny_task("TextClassifier", preprocessor=preprocessor)


def test_a_longer_table_than_the_vocabulary_answers_with_tokens_of_it():
    backbone = tiny_backbone(vocabulary_size=len(VOCABULARY) + 3)
    model = bert_keras.MaskedLM(backbone, tiny_preprocessor())
    bias = np.zeros(len(VOCABULARY) + 3, "float32")
    bias[-1] = 9
    model.head.bias.assign(bias)
    (answers,) = model.fill_mask("a [MASK]", top_k=3)
    assert all(token in VOCABULARY for token, _ in answers)


@pytest.mark.parametrize("strategy", ["pieces", "whole_words", "spans"])
def test_evaluation_masks_a_text_alike_whatever_the_batches(strategy):
    model = tiny_model(masking={"rate": 0.3, "strategy": strategy})
    texts = ["a b c d e f g h", "b", "ab cd ef gh a b", "c d", "hgf edcba hg fe"]

    def masked(batch_size):
        batches = batches_of(model, texts, batch_size=batch_size, shuffle=False, training=True)
        found = {}
        for number, (rows, _) in enumerate(batches.batches):
            inputs, labels, weights = batches[number]
            for place, row in enumerate(rows.tolist()):
                counts = weights[place] > 0
                length = int(inputs["padding_mask"][place].sum())
                found[row] = (
                    inputs["token_ids"][place, :length].tolist(),
                    inputs["mask_positions"][place, counts].tolist(),
                    labels[place, counts].tolist(),
                )
        return found

    alone = masked(1)
    assert len(alone) == len(texts) and all(places for _, places, _ in alone.values())
    assert masked(2) == masked(5) == alone
    one, all_at_once = (
        model.evaluate(texts, batch_size=b, return_dict=True, verbose=0) for b in (1, 5)
    )
    assert one["perplexity"] == pytest.approx(all_at_once["perplexity"], rel=1e-5)
