import warnings

import numpy as np
import pytest
from checks import assert_same_structure_close, check_task, refused
from tiny import VOCABULARY as LETTER_PIECES
from tiny import batches_of, ready_inputs, tiny_preprocessor, tiny_task
from tiny import tiny_backbone as tiny_bert

from bert_keras.answers.span_search import NBest, Span
from bert_keras.datasets import QuestionExample
from bert_keras.datasets.squad import Answer
from bert_keras.tasks.question_examples import as_columns

pytestmark = pytest.mark.once

VOCABULARY = [*LETTER_PIECES, *"東京塔在哪里?ıi."]

QUESTIONS = ["a b", "c", "東京在哪里?", "e f g h a b c d"]
CONTEXTS = ["abc d  e f g h a b c d e f g h a", "b", "東京塔在東京. 里里", "e  f\tg é h"]
ANSWERS = [("f g", 9), ("b", 0), ("東京塔", 0), None]


def tiny_backbone(**overrides):
    sizes = {"vocabulary_size": len(VOCABULARY), "hidden_dim": 8, "intermediate_dim": 16}
    return tiny_bert(**{**sizes, "initializer_range": 0.5, **overrides})


def tiny_qa(backbone=None, **options):
    options = {"preprocessor": tiny_preprocessor(vocabulary=VOCABULARY), "stride": 4, **options}
    return tiny_task("QuestionAnswering", backbone or tiny_backbone(), **options)


# A task that no test changes: it is compiled once for all.
shared = pytest.fixture(tiny_qa, scope="module")


def examples():
    return [
        QuestionExample("0", "a b", CONTEXTS[0], (Answer("f g", 9),)),
        QuestionExample("1", "c", "b a", (Answer("x", 0), Answer("a", 2))),
        QuestionExample("2", "e", "e f g", (), is_impossible=True),
    ]


# The contract every task keeps


@pytest.mark.each_backend
def test_outputs_have_the_contract_s_names_shapes_and_masked_padding(shared):
    inputs = ready_inputs(3, 7)
    outputs = shared.predict(inputs, verbose=0)
    assert set(outputs) == {"start_logits", "end_logits"}
    for logits in outputs.values():
        assert logits.shape == (3, 7) and logits.dtype == np.float32
        assert ((logits == -1e9) == (inputs["padding_mask"] == 0)).all()


def test_it_keeps_the_contract_of_tasks(tmp_path):
    qa = tiny_qa(
        stride=np.int64(5),
        max_question_length=5,
        max_answer_length=np.int32(3),
        no_answer_threshold=np.float32(0.25),
        frozen="embeddings",
    )
    answers = {"answer": (QUESTIONS, CONTEXTS)}
    copies = check_task(qa, ready_inputs(3, 7), tmp_path, answers)
    expected = qa.n_best((QUESTIONS, CONTEXTS), 3)
    for copy in copies:
        assert (copy.stride, copy.max_answer_length, copy.no_answer_threshold) == (5, 3, 0.25)
        assert copy.n_best((QUESTIONS, CONTEXTS), 3) == expected
    assert qa.n_best([]) == qa.n_best(([], [])) == qa.answer([], "a") == []
    assert type(tiny_qa(no_answer_threshold=np.float32("inf")).no_answer_threshold) is float


# Training


def test_fit_learns_from_examples_with_and_without_answers(reloaded):
    contexts = ["a b c d", "b d c a", "d a c b", "c g b a", "a c h b", "e f a c"] * 4
    rows = [
        QuestionExample(
            str(number),
            "e f",
            context,
            (Answer("d", context.index("d")),) if "d" in context else (),
            is_impossible="d" not in context,
        )
        for number, context in enumerate(contexts)
    ]
    qa = tiny_qa(tiny_backbone(dropout=0.0, initializer_range=0.2))
    qa.compile(learning_rate=2e-2)
    with warnings.catch_warnings():
        # The pooler takes no part, no example is left out, and nothing may complain.
        warnings.simplefilter("error", UserWarning)
        options = {"validation_data": rows, "validation_freq": 24, "verbose": 0}
        history = qa.fit(rows, epochs=24, batch_size=8, **options).history
    assert history["val_loss"][-1] < 0.2
    assert history["val_start_logits_accuracy"][-1] == history["val_end_logits_accuracy"][-1] == 1
    assert qa.tune_no_answer_threshold(rows)["f1"] == 100
    again = reloaded(qa)
    answers = again.answer(["e f"] * 6, contexts[:6])
    assert [answer["answer"] for answer in answers] == ["d", "d", "d", "", "", ""]


def test_the_loss_is_the_mean_of_both_cross_entropies_over_windows(shared):
    batches = batches_of(shared, (QUESTIONS, CONTEXTS), ANSWERS, batch_size=100)
    inputs, labels = batches[0][:2]
    num_windows = len(shared.cut((QUESTIONS, CONTEXTS)))
    logits = shared.predict({name: x[:num_windows] for name, x in inputs.items()}, verbose=0)
    losses = []
    for name, values in logits.items():
        values = values.astype("float64")
        chosen = values[np.arange(num_windows), labels[name][:num_windows]]
        losses.append(np.log(np.exp(values).sum(1)) - chosen)
    # The batch is filled up with copies of rows that weigh 0.
    result = shared.evaluate(
        (QUESTIONS, CONTEXTS), ANSWERS, batch_size=9, verbose=0, return_dict=True
    )
    assert result["loss"] == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.each_backend
@pytest.mark.eager
def test_ready_inputs_take_labels_as_a_dict_or_a_tuple(shared):
    labels = {"start_logits": np.array([1, 0, 0]), "end_logits": np.array([2, 0, 0])}
    found = shared.encode_labels(tuple(labels.values()))
    np.testing.assert_equal(found, shared.encode_labels(labels))
    inputs = ready_inputs(3, 7, least=3)
    expected = shared.evaluate(inputs, labels, verbose=0)
    for measure in (shared.evaluate, shared.test_on_batch):
        np.testing.assert_allclose(measure(inputs, tuple(labels.values())), expected, rtol=1e-5)


def test_examples_of_the_reader_become_the_batches_that_columns_do(shared):
    columns = (["a b", "c", "e"], [CONTEXTS[0], "b a", "e f g"]), [("f g", 9), ("a", 2), None]
    batches = [batches_of(shared, *x, batch_size=3) for x in (as_columns(examples()), columns)]
    for index in range(len(batches[0])):
        assert_same_structure_close(batches[0][index], batches[1][index], 0)


def test_sample_weights_count_questions(shared):
    weights = [1, 2, 3, 0]
    for form in (weights, dict.fromkeys(("start_logits", "end_logits"), weights)):
        batches = batches_of(shared, (QUESTIONS, CONTEXTS), ANSWERS, sample_weight=form)
        for found in batches[0][2].values():
            # Windows a question: 3, 1, 2, 1; those that only fill the batch weigh 0.
            assert sorted(found[found > 0].tolist()) == [1, 1, 1, 2, 3, 3]


def test_answers_that_cannot_be_trained_on_are_left_out_and_counted():
    qa = tiny_qa()
    rows = [
        *examples(),
        QuestionExample("3", "a", "b", (Answer("c", -1),)),
        QuestionExample("4", " ", "b", (Answer("b", 0),)),
        QuestionExample("5", "a", "b   c", (Answer("  ", 2),)),
        QuestionExample("6", "a", "a b c d e f g h " * 3, (Answer("h a b c d e f g h a b c", 14),)),
        QuestionExample("7", "a", "b"),
        QuestionExample("8", "\u200b", "b", (Answer("b", 0),)),
        QuestionExample("9", "a", " \n", (), is_impossible=True),
    ]
    with pytest.warns(UserWarning, match="left out") as caught:
        batches = batches_of(qa, *as_columns(rows), batch_size=50)
    message = str(caught[0].message)
    assert "index 3: a text is blank" in message
    assert message.startswith("7 of 10 examples left out, the first at the index 3")
    # What is left are the windows of the first three.
    kept = qa.cut([rows[0], rows[1], rows[2]])
    assert (batches[0][0]["padding_mask"].sum(1) > 0).sum() >= len(kept)
    assert len(batches) == 1
    with pytest.raises(ValueError, match="1 of 1 examples left out"):
        batches_of(qa, (["a"], ["\u200b"]), [None])


# Answers


def test_answering_together_or_alone_in_any_batch_size_is_the_same(shared):
    together = shared.answer(QUESTIONS, CONTEXTS, top_k=3, batch_size=2)
    alone = [
        shared.answer(question, context, top_k=3)
        for question, context in zip(QUESTIONS, CONTEXTS, strict=True)
    ]
    for many, one in zip(together, alone, strict=True):
        for first, second in zip(many, one, strict=True):
            assert first.pop("probability") == pytest.approx(second.pop("probability"), rel=1e-4)
            assert first == second


def test_one_question_gives_a_dict_and_several_answers_a_list(shared):
    answer = shared.answer("a", "b c d")
    assert set(answer) == {"answer", "start", "end", "probability"}
    best = shared.answer("a", "b c d", top_k=2)[0]
    assert best.pop("probability") == pytest.approx(answer.pop("probability"), rel=1e-5)
    assert best == answer
    assert len(shared.answer(["a", "b"], "b c d")) == 2
    assert shared.answer("a", ["b c d"])["answer"] == answer["answer"]
    assert len(shared.answer("a", "b", top_k=5)) == 1


def test_no_answer_comes_first_where_its_score_is_above_the_threshold():
    qa = tiny_qa()
    score = qa.n_best((["a"], ["b c d"]))[0].no_answer_score
    qa.no_answer_threshold = score + 0.1
    assert qa.answer("a", "b c d")["answer"] != ""
    qa.no_answer_threshold = score - 0.1
    answers = qa.answer("a", "b c d", top_k=3)
    assert answers[0]["answer"] == "" and answers[0]["start"] is None
    assert len(answers) == 3 and answers[1]["answer"] != ""
    assert qa.answer("a", "b c d", no_answer=False)["answer"] != ""
    qa.no_answer_threshold = None
    assert qa.answer("a", "b c d", no_answer=True)["answer"] == ""
    answers = qa.answer("a", "b c d", top_k=9, max_answer_length=2)
    assert max(len(found["answer"].split()) for found in answers) == 2


@pytest.mark.parametrize(("scores", "f1"), [((-1.0, 2.0), 100), ((2.0, -1.0), 50)])
def test_the_tuned_threshold_is_the_best_of_all(scores, f1):
    qa, nothing = tiny_qa(), Span("", None, None, 0.5, 0.0, 0.0)
    found = [NBest([Span("a", 0, 1, 0.5, 0.0, 0.0)], nothing, score) for score in scores]
    result = qa.tune_no_answer_threshold((["q"] * 2, ["a b"] * 2), [("a", 0), None], found=found)
    assert (result["f1"], result["threshold"]) == (f1, qa.no_answer_threshold)
    # Where scores are high with an answer, never to answer is best.
    assert [score > result["threshold"] for score in scores] == [f1 == 50, True]


# Bad input


HALF = np.array([[1] * 7, [1] * 4 + [0] * 3])
TWO_ROWS = {"token_ids": np.full((2, 7), 5), "padding_mask": HALF}
PAIR = (["a"], ["b"])
UNANSWERED = [QuestionExample("0", "a", "b c", (Answer("b", 0),)), QuestionExample("1", "a", "b c")]
REFUSED = [
    (lambda qa: qa.answer(["a", " "], "a b"), "question needs text. Received at the index 1: ' '"),
    (lambda qa: qa.answer("a", "\n"), r"context needs text. Received at the index 0: '\\n'"),
    (lambda qa: qa.answer(["a", "a"], ["b", "\u200b"]), "Every context needs text.*index 1: "),
    (lambda qa: qa.answer(["a", "\u200b"], "b"), "Every question needs text.*index 1: "),
    (lambda qa: qa.answer([], ["a"]), "equally many"),
    (lambda qa: qa.answer("a", ["b", "c"]), "equally many. Received: 1 question, 2 context"),
    (lambda qa: qa.answer("a", "b", top_k=0), "int from 1"),
    (lambda qa: qa.predict(["a", "b"]), "needs a context"),
    (lambda qa: qa.fit(PAIR, [("b", 5)]), "must lie in its context"),
    (lambda qa: qa.fit(PAIR, [None, None]), "as many labels"),
    (lambda qa: qa.fit(PAIR, [("b", 0)], sample_weight={"start": [1.0]}), "names of outputs"),
    (lambda qa: qa.fit(PAIR, [("a", 0)], sample_weight={"start_logits": [1, 2]}), "1 example, 2"),
    (lambda qa: qa.fit(PAIR, [("a", 0)]), "1 of 1 examples"),
    (lambda qa: qa.fit(PAIR), "needs labels"),
    (lambda qa: qa.compile(label_smoothing=0.1), "not smoothed"),
    (lambda qa: qa.tune_no_answer_threshold(PAIR, [None]), "with and without"),
    (
        lambda qa: qa.tune_no_answer_threshold(UNANSWERED),
        "must have an answer or be impossible. Received 'a' at the index 1",
    ),
    (lambda qa: tiny_qa(qa.backbone, stride=0), "stride"),
    (lambda qa: tiny_qa(qa.backbone, max_answer_length=1.5), "max_answer_length"),
    (lambda qa: tiny_qa(qa.backbone, no_answer_threshold="x"), "no_answer_threshold"),
    (lambda qa: tiny_qa(qa.backbone, no_answer_threshold=float("nan")), "no_answer_threshold"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_does_not_fit_is_refused_before_any_compute(shared, call, message):
    with pytest.raises(ValueError, match=message):
        call(shared)
    assert shared.no_answer_threshold == tiny_qa(shared.backbone).no_answer_threshold


def test_unknown_options_are_refused_though_answers_were_found(shared):
    with pytest.raises(TypeError, match=r"has no argument 'batch'.*'batch_size'"):
        shared.tune_no_answer_threshold(PAIR, [None], found=[], batch=3)


@refused(
    (([0.0, 0.0], [0.0, 0.0]), "Starts must be ints"),
    (([0, 0], [[0], [0]]), r"Ends must be ints of the shape \(2,\)"),
    (([-1, 0], [0, 0]), r"must start at 0 or later.*\(-1, 0\) at the index 0"),
    (([2, 0], [1, 0]), r"end where it starts or later.*\(2, 1\) at the index 0"),
    (np.array([0, 0]), "must be a dict with the keys.*ndarray"),
    ({"start_logits": [0, 0]}, r"must be a dict with the keys.*\['start_logits'\]"),
)
def test_labels_that_are_no_positions_are_refused(shared, labels):
    shared.encode_labels(tuple(map(np.array, labels)) if isinstance(labels, tuple) else labels)


@pytest.mark.parametrize("labels", [([1, 2], [1, 5]), ([1, 4], [2, 4]), ([1, 1], [2, 7])])
def test_labels_of_ready_inputs_must_be_positions_of_tokens(shared, labels):
    labels = tuple(map(np.array, labels))
    for call in (
        lambda: shared.fit(TWO_ROWS, labels, verbose=0),
        lambda: shared.evaluate(TWO_ROWS, labels, verbose=0),
        lambda: shared.fit(TWO_ROWS, ([0, 0], [0, 0]), validation_data=(TWO_ROWS, labels)),
    ):
        with pytest.raises(ValueError, match=r"positions of tokens.*at the index 1"):
            call()
