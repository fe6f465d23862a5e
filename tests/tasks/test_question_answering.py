import warnings

import keras
import numpy as np
import pytest
from checks import (
    assert_same_structure_close,
    check_config_round_trip,
    check_everything_is_built,
    check_saved_and_reloaded,
)
from tiny import batches_of

import bert_keras
from bert_keras.answers.span_search import NBest, Span
from bert_keras.datasets import QuestionExample
from bert_keras.datasets.squad import Answer
from bert_keras.tasks.question_examples import as_columns

LETTERS = "abcdefgh"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS), *"東京塔在哪里?ıi."]

QUESTIONS = ["a b", "c", "東京在哪里?", "e f g h a b c d"]
CONTEXTS = ["abc d  e f g h a b c d e f g h a", "b", "東京塔在東京. 里里", "e  f\tg é h"]
ANSWERS = [("f g", 9), ("b", 0), ("東京塔", 0), None]


def tiny_backbone(**overrides):
    return bert_keras.BertBackbone(
        **{
            "vocabulary_size": len(VOCABULARY),
            "num_layers": 1,
            "num_heads": 2,
            "hidden_dim": 8,
            "intermediate_dim": 16,
            "max_sequence_length": 16,
            "initializer_range": 0.5,
            **overrides,
        }
    )


def tiny_qa(backbone=None, max_length=16, **overrides):
    preprocessor = bert_keras.TextPreprocessor(
        bert_keras.WordPieceTokenizer(VOCABULARY), max_length=max_length
    )
    arguments = {"preprocessor": preprocessor, "stride": 4, **overrides}
    return bert_keras.QuestionAnswering(backbone or tiny_backbone(), **arguments)


def ready_inputs(batch=3, seq_len=7):
    rng = np.random.default_rng(0)
    mask = np.arange(seq_len) < rng.integers(4, seq_len + 1, batch)[:, None]
    return {
        "token_ids": np.where(mask, rng.integers(5, len(VOCABULARY), (batch, seq_len)), 0),
        "padding_mask": mask.astype(int),
    }


def examples():
    return [
        QuestionExample("0", "a b", CONTEXTS[0], (Answer("f g", 9),)),
        QuestionExample("1", "c", "b a", (Answer("x", 0), Answer("a", 2))),
        QuestionExample("2", "e", "e f g", (), is_impossible=True),
    ]


# The contract every task keeps


def test_outputs_have_the_contract_s_names_shapes_and_masked_padding():
    qa, inputs = tiny_qa(), ready_inputs()
    outputs = qa.predict(inputs, verbose=0)
    assert set(outputs) == {"start_logits", "end_logits"}
    for logits in outputs.values():
        assert logits.shape == (3, 7) and logits.dtype == np.float32
        assert ((logits == -1e9) == (inputs["padding_mask"] == 0)).all()


def test_everything_is_built_and_the_config_survives_the_round_trip():
    qa = tiny_qa(
        max_question_length=5,
        max_answer_length=3,
        normalization="per_window",
        no_answer_threshold=-1.5,
        frozen="embeddings",
    )
    check_everything_is_built(qa)
    check_config_round_trip(qa)


@pytest.mark.once
def test_a_keras_file_gives_the_same_answers_to_raw_text(tmp_path):
    qa = tiny_qa(no_answer_threshold=0.25)
    expected = qa.n_best((QUESTIONS, CONTEXTS), 3)
    reloaded = check_saved_and_reloaded(qa, ready_inputs(), tmp_path / "qa.keras")
    assert reloaded.n_best((QUESTIONS, CONTEXTS), 3) == expected
    assert reloaded.no_answer_threshold == 0.25


def test_a_preset_folder_gives_the_same_answers(tmp_path):
    qa = tiny_qa(max_answer_length=2)
    qa.save_to_preset(tmp_path)
    again = bert_keras.QuestionAnswering.from_preset(tmp_path)
    assert again.max_answer_length == 2 and again.stride == 4
    assert again.n_best((QUESTIONS, CONTEXTS), 2) == qa.n_best((QUESTIONS, CONTEXTS), 2)


# Training


@pytest.mark.once
def test_fit_learns_from_examples_with_and_without_answers(tmp_path):
    # The answer is the word d, where there is one.
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
        # The pooler takes no part, and no backend may complain about that.
        warnings.filterwarnings("error", message="Gradients do not exist")
        history = qa.fit(rows, epochs=24, batch_size=8, validation_data=rows, verbose=0).history
    assert history["val_loss"][-1] < 0.2
    assert history["val_start_logits_accuracy"][-1] == history["val_end_logits_accuracy"][-1] == 1
    assert qa.tune_no_answer_threshold(rows)["f1"] == 100
    qa.save(tmp_path / "qa.keras")
    reloaded = keras.models.load_model(tmp_path / "qa.keras")
    answers = reloaded.answer(["e f"] * 6, contexts[:6])
    assert [answer["answer"] for answer in answers] == ["d", "d", "d", "", "", ""]


@pytest.mark.once
def test_the_loss_is_the_mean_of_both_cross_entropies_over_windows():
    qa = tiny_qa()
    batches = batches_of(qa, (QUESTIONS, CONTEXTS), ANSWERS, batch_size=100)
    inputs, labels = batches[0][:2]
    num_windows = len(qa.cut((QUESTIONS, CONTEXTS)))
    logits = qa.predict({name: x[:num_windows] for name, x in inputs.items()}, verbose=0)
    losses = []
    for name, values in logits.items():
        values = values.astype("float64")
        chosen = values[np.arange(num_windows), labels[name][:num_windows]]
        losses.append(np.log(np.exp(values).sum(1)) - chosen)
    # The batch is filled up with copies of rows that weigh 0.
    result = qa.evaluate((QUESTIONS, CONTEXTS), ANSWERS, batch_size=9, verbose=0, return_dict=True)
    assert result["loss"] == pytest.approx(np.mean(losses), rel=1e-4)


def test_labels_of_windows_are_the_answer_where_it_is_whole_and_cls_elsewhere():
    qa = tiny_qa()
    batches = batches_of(qa, (QUESTIONS, CONTEXTS), ANSWERS, batch_size=100)
    inputs, labels = batches[0][:2]
    answers = []
    for ids, start, end in zip(inputs["token_ids"], *labels.values(), strict=True):
        pieces = [VOCABULARY[i] for i in ids]
        assert (start > 0) == (end > 0)
        answers.append(" ".join(pieces[start : end + 1]))
    assert {"f g", "b", "東 京 塔", "[CLS]"} == set(answers)


def test_ready_inputs_take_labels_as_a_dict_or_a_tuple():
    qa = tiny_qa()
    start, end = np.array([1, 0, 2]), np.array([2, 0, 3])
    as_dict = qa.encode_labels({"start_logits": start, "end_logits": end})
    for name, column in qa.encode_labels((start, end)).items():
        np.testing.assert_array_equal(column, as_dict[name])
    assert np.isfinite(qa.evaluate(ready_inputs(), (start, end), verbose=0)[0])


def test_examples_of_the_reader_become_the_batches_that_columns_do():
    qa = tiny_qa()
    columns = (["a b", "c", "e"], [CONTEXTS[0], "b a", "e f g"]), [("f g", 9), ("a", 2), None]
    batches = [batches_of(qa, *x, batch_size=3) for x in (as_columns(examples()), columns)]
    for index in range(len(batches[0])):
        assert_same_structure_close(batches[0][index], batches[1][index], 0)


def test_sample_weights_count_questions():
    qa = tiny_qa()
    batches = batches_of(qa, (QUESTIONS, CONTEXTS), ANSWERS, sample_weight=[1, 2, 3, 0])
    weights = batches[0][2]["start_logits"]
    # Windows a question: 3, 1, 2, 1; those that only fill the batch weigh 0.
    assert sorted(weights[weights > 0].tolist()) == [1, 1, 1, 2, 3, 3]


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
        QuestionExample("9", "a", "\u200b", (), is_impossible=True),
    ]
    with pytest.warns(UserWarning, match="left out") as caught:
        batches = batches_of(qa, *as_columns(rows), batch_size=50)
    message = str(caught[0].message)
    assert message.startswith("7 of 10 examples are left out")
    for reason in (
        "1 because the answer does not stand",
        "1 because the question is blank",
        "1 because the answer covers no token",
        "1 because the answer is longer than",
        "1 because it has no answer and is not impossible",
        "2 because the tokenizer leaves nothing",
    ):
        assert reason in message
    # What is left are the windows of the first three.
    kept = qa.cut([rows[0], rows[1], rows[2]])
    assert (batches[0][0]["padding_mask"].sum(1) > 0).sum() >= len(kept)
    assert len(batches) == 1
    with pytest.raises(ValueError, match="1 of 1 examples are left out"):
        batches_of(qa, (["a"], ["\u200b"]), [None])


# Answers


def test_answers_are_slices_of_the_original_text():
    found = tiny_qa().n_best((QUESTIONS, CONTEXTS), size=8)
    for best, context in zip(found, CONTEXTS, strict=True):
        assert all(context[span.start : span.end] == span.text for span in best.spans)
        probabilities = [span.probability for span in best.spans]
        assert probabilities == sorted(probabilities, reverse=True)
        assert best.no_answer_score == pytest.approx(
            np.log(best.no_answer.probability / probabilities[0]), abs=1e-4
        )


def test_answering_together_or_alone_in_any_batch_size_is_the_same():
    qa = tiny_qa()
    together = qa.answer(QUESTIONS, CONTEXTS, top_k=3, batch_size=2)
    alone = [
        qa.answer(question, context, top_k=3)
        for question, context in zip(QUESTIONS, CONTEXTS, strict=True)
    ]
    for many, one in zip(together, alone, strict=True):
        for first, second in zip(many, one, strict=True):
            assert first.pop("probability") == pytest.approx(second.pop("probability"), rel=1e-4)
            assert first == second


def test_one_question_gives_a_dict_and_several_answers_a_list():
    qa = tiny_qa()
    answer = qa.answer("a", "b c d")
    assert set(answer) == {"answer", "start", "end", "probability"}
    assert qa.answer("a", "b c d", top_k=2)[0] == pytest.approx(answer)
    assert len(qa.answer(["a", "b"], "b c d")) == 2
    assert len(qa.answer("a", "b", top_k=5)) == 1


def test_no_answer_comes_first_where_its_score_is_above_the_threshold():
    qa = tiny_qa()
    score = qa.n_best((["a"], ["b c d"]))[0].no_answer_score
    qa.no_answer_threshold = score + 0.1
    assert qa.answer("a", "b c d")["answer"] != ""
    qa.no_answer_threshold = score - 0.1
    answers = qa.answer("a", "b c d", top_k=3)
    assert answers[0]["answer"] == "" and answers[0]["start"] is None
    assert len(answers) == 3 and answers[1]["answer"] != ""


@pytest.mark.parametrize("separation", [1.0, -9.0])
def test_the_tuned_threshold_is_the_best_of_all(separation):
    # With -9, scores are high where there is an answer: never to answer is best.
    qa = tiny_qa()
    rng = np.random.default_rng(0)
    contexts = ["a b c"] * 40
    answers = [("a", 0) if rng.random() < 0.5 else None for _ in contexts]
    centers = [separation if answer is None else -separation for answer in answers]
    scores = [float(rng.normal(center, 1.5)) for center in centers]
    texts = [str(rng.choice(["a", "b"], p=[0.7, 0.3])) for _ in contexts]
    nothing = Span("", None, None, 0.5, 0.0, 0.0)
    found = [
        NBest([Span(text, 0, 1, 0.5, 0.0, 0.0)], nothing, score)
        for text, score in zip(texts, scores, strict=True)
    ]

    def share_right(threshold):
        right = [
            (answer is None) if score > threshold else (answer is not None and text == answer[0])
            for answer, score, text in zip(answers, scores, texts, strict=True)
        ]
        return 100 * np.mean(right)

    x = (["q"] * 40, contexts)
    result = qa.tune_no_answer_threshold(x, answers, metric="exact", found=found)
    assert qa.no_answer_threshold == result["threshold"]
    best = max(share_right(threshold) for threshold in [-99.0, *scores])
    assert result["exact"] == pytest.approx(best)
    assert share_right(result["threshold"]) == pytest.approx(best)


def test_a_threshold_needs_both_kinds_of_questions():
    with pytest.raises(ValueError, match="with and without"):
        tiny_qa().tune_no_answer_threshold((["a"], ["b"]), [None])


def test_a_threshold_is_not_tuned_on_questions_nobody_answered():
    rows = [
        QuestionExample("0", "a", "b c", (Answer("b", 0),)),
        QuestionExample("1", "a", "b c"),
    ]
    qa = tiny_qa()
    with pytest.raises(ValueError, match="at the index 1 the question 'a' without either"):
        qa.tune_no_answer_threshold(rows)
    assert qa.no_answer_threshold == tiny_qa().no_answer_threshold


# Bad input


def test_bad_text_is_refused_before_any_compute():
    qa = tiny_qa()
    with pytest.raises(ValueError, match="question needs text"):
        qa.answer(" ", "a b")
    with pytest.raises(ValueError, match="context needs text"):
        qa.answer("a", "")
    with pytest.raises(ValueError, match=r"Every context needs a token.*index 1: "):
        qa.answer(["a", "a"], ["b", "\u200b"])
    with pytest.raises(ValueError, match="needs a context"):
        qa.predict(["a", "b"])
    with pytest.raises(ValueError, match="must lie in its context"):
        qa.fit((["a"], ["b"]), [("b", 5)])
    with pytest.raises(ValueError, match="as many labels"):
        qa.fit((["a"], ["b"]), [None, None])
    with pytest.raises(ValueError, match="1 of 1 examples"):
        qa.fit((["a"], ["b"]), [("a", 0)])
    with pytest.raises(ValueError, match="needs labels"):
        qa.fit((["a"], ["b"]))
    with pytest.raises(ValueError, match="int from 1"):
        qa.answer("a", "b", top_k=0)
    with pytest.raises(ValueError, match="no preprocessor"):
        bert_keras.QuestionAnswering(tiny_backbone()).answer("a", "b")


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros(3, int),
        (np.zeros(3), np.zeros(3)),
        (np.zeros(3, int), np.zeros((3, 1), int)),
        (np.array([-1, 0, 0]), np.zeros(3, int)),
        (np.array([2, 0, 0]), np.array([1, 0, 0])),
        {"start_logits": np.zeros(3, int)},
    ],
)
def test_bad_labels_of_ready_inputs_are_refused(labels):
    with pytest.raises(ValueError):
        tiny_qa().encode_labels(labels)


@pytest.mark.parametrize(
    "argument", [{"stride": 0}, {"max_answer_length": 1.5}, {"normalization": "none"}]
)
def test_bad_arguments_are_refused(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        tiny_qa(**argument)


def test_label_smoothing_is_refused():
    with pytest.raises(ValueError, match="not smoothed"):
        tiny_qa().compile(label_smoothing=0.1)


def test_no_questions_have_no_answers():
    qa = tiny_qa()
    assert qa.answer([], []) == qa.answer([], "a") == []
    assert qa.n_best([]) == qa.n_best(([], [])) == []
    with pytest.raises(ValueError, match="equally many"):
        qa.answer([], ["a"])


@pytest.mark.parametrize("threshold", [np.float32(1), np.int64(1), 1])
def test_a_threshold_of_numpy_is_a_number(threshold):
    stored = tiny_qa(no_answer_threshold=threshold).get_config()["no_answer_threshold"]
    assert type(stored) is float and stored == 1.0


# Hugging Face


def their_model():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    return transformers.BertForQuestionAnswering(config).eval()


def logits_of(model, inputs):
    import torch

    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(inputs["token_ids"]),
            attention_mask=torch.tensor(inputs["padding_mask"]),
        )
    return {name: outputs[name].numpy() for name in ("start_logits", "end_logits")}


def assert_same_on_tokens(ours, theirs, mask):
    for name, logits in theirs.items():
        np.testing.assert_allclose(ours[name][mask], logits[mask], atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*no values for these weights.*pooler")
def test_a_hugging_face_checkpoint_gives_the_same_logits_here(tmp_path):
    theirs = their_model()
    theirs.save_pretrained(tmp_path)
    bert_keras.WordPieceTokenizer(VOCABULARY).save(tmp_path)
    qa = bert_keras.QuestionAnswering.from_preset(tmp_path)
    inputs = ready_inputs()
    mask = inputs["padding_mask"] == 1
    assert_same_on_tokens(qa.predict(inputs, verbose=0), logits_of(theirs, inputs), mask)


def test_hugging_face_loads_what_is_exported_with_the_same_logits(tmp_path):
    transformers = pytest.importorskip("transformers")
    qa, inputs = tiny_qa(), ready_inputs()
    qa.export_to_huggingface(tmp_path)
    theirs = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path).eval()
    mask = inputs["padding_mask"] == 1
    assert_same_on_tokens(qa.predict(inputs, verbose=0), logits_of(theirs, inputs), mask)
    again = bert_keras.QuestionAnswering.from_preset(tmp_path)
    assert_same_structure_close(again.predict(inputs, verbose=0), qa.predict(inputs, verbose=0), 0)


@pytest.mark.parametrize("labels", [([1, 2], [1, 5]), ([1, 4], [2, 4]), ([1, 1], [2, 7])])
def test_labels_of_ready_inputs_must_be_tokens(labels):
    qa = tiny_qa()
    inputs = {
        "token_ids": np.full((2, 7), 5),
        "padding_mask": np.array([[1] * 7, [1] * 4 + [0] * 3]),
    }
    labels = tuple(map(np.array, labels))
    for method in (qa.fit, qa.evaluate):
        with pytest.raises(ValueError, match=r"positions of tokens.*at the index 1"):
            method(inputs, labels, verbose=0)
    with pytest.raises(ValueError, match="positions of tokens"):
        qa.fit(inputs, ([0, 0], [0, 0]), validation_data=(inputs, labels), verbose=0)


@pytest.mark.parametrize("threshold", ["x", True, float("nan"), [0.5]])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(ValueError, match="no_answer_threshold"):
        tiny_qa(no_answer_threshold=threshold)


def test_sizes_of_numpy_can_be_saved(tmp_path):
    qa = tiny_qa(stride=np.int64(5), max_answer_length=np.int32(7))
    qa.save_to_preset(tmp_path)
    again = bert_keras.QuestionAnswering.from_preset(tmp_path)
    assert (again.stride, again.max_answer_length) == (5, 7)
