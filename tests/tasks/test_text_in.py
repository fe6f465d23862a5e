"""Programs that take texts answer as the task does; a task without such a program says so."""

import json

import keras
import numpy as np
import pytest
from hard_texts import HARD_TEXTS
from small_tokenizers import byte_pair_tokenizer
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.export import text_program as from_text

# JAX asks TensorFlow for the program, as PyTorch does.
pytestmark = pytest.mark.also_on("tensorflow")

TEXTS = [*HARD_TEXTS, "abc a cab", "Ábc [MASK] [SEP]d", "a b c d e f g h " * 3]
PAIRS = TEXTS[::-1]
NAMES = ["bad", "good", "中文"]
# Objects that TensorFlow restores by itself, whatever else is imported.
OF_TENSORFLOW = {"", "_generic_user_object", "signature_map", "trackable_list_wrapper"}


def of_seen_weights(task):
    """Returns a task with weights of a size at which it is seen where a token is another."""
    for weight in task.trainable_variables:
        weight.assign(keras.random.normal(weight.shape, stddev=0.5))
    return task


def plain(answer):
    """Returns a program's answer as a client in another language reads it."""
    return {
        name: json.loads(json.dumps(value.numpy().tolist(), default=bytes.decode))
        for name, value in answer.items()
    }


def check_client(task, folder):
    """Asks the program, which needs no class of this package or of Keras."""
    import tensorflow as tf
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    task.export(folder, text=True, verbose=False)
    [graph] = SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs
    nodes = graph.object_graph_def.nodes
    assert {node.registered_name for node in nodes} == {"", "tf.TrackableConstant"}
    assert {node.user_object.identifier for node in nodes} <= OF_TENSORFLOW
    program = tf.saved_model.load(folder)
    # As in a client's process, which rewrites graphs, see conftest.py.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    texts, pairs, none = (tf.constant(column, tf.string) for column in (TEXTS, PAIRS, []))
    answers = {"texts": program.serve(texts), "pairs": program.serve_pairs(texts, pairs)}
    answers["none"] = program.signatures["serving_default"](texts=none)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    answers = {name: plain(answer) for name, answer in answers.items()}
    assert sorted(program.signatures) == ["serve", "serve_pairs", "serving_default"]
    assert answers.pop("none") == {"logits": [], "probabilities": [], "labels": []}
    for name, found in answers.items():
        columns = (TEXTS, PAIRS) if name == "pairs" else TEXTS
        wanted, classified = task.predict(columns, verbose=0), task.classify(columns)
        assert wanted.std(axis=0).min() > 0.01
        np.testing.assert_allclose(found["logits"], wanted, atol=1e-5)
        probabilities = [list(answer["probabilities"].values()) for answer in classified]
        np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
        assert found["labels"] == [answer["label"] for answer in classified]
        assert len(set(found["labels"])) > 1


@pytest.mark.eager
def test_a_client_reads_the_task_s_answers(tmp_path, request):
    """PyTorch asks a process on TensorFlow, as for the other formats that it cannot write."""
    task = of_seen_weights(tiny_classifier(num_classes=3, label_names=NAMES))
    if keras.backend.backend() != "tensorflow":
        jobs = request.getfixturevalue("asked_of_other_backends")
        with pytest.raises(InterruptedError):
            task.export(tmp_path / "served", text=True)
        assert jobs == [("texts", task, "tensorflow")]
        return
    # So that each class is some text's.
    bias = task.head.dense.bias
    bias.assign(bias - task.predict(TEXTS, verbose=0).mean(axis=0))
    check_client(task, tmp_path / "served")


@pytest.mark.eager
def test_each_task_s_program_answers_as_the_task():
    cut = tiny_preprocessor(max_length=9)
    options = {"num_classes": 3, "label_names": NAMES, "preprocessor": cut}
    several = tiny_classifier(**options, problem_type="multi_label", temperature=3.0)
    scores = tiny_classifier(**options, problem_type="regression")
    follows = bert_keras.NextSentencePrediction(tiny_backbone(), tiny_preprocessor())
    embedder = bert_keras.TextEmbedder(tiny_backbone(), tiny_preprocessor())
    prompt = {"prompts": {"query": "a b "}, "default_prompt": "query"}
    reranker = bert_keras.Reranker(tiny_backbone(), tiny_preprocessor(), **prompt)
    tasks = {"logits": several, "scores": scores, "vectors": embedder}
    assert [task.serving_signature.output for task in tasks.values()] == list(tasks)
    assert [task.serving_signature.num_texts for task in tasks.values()] == [(1, 2), (1, 2), (1,)]
    assert follows.serving_signature == ("logits", ("next", "random"), (2,))
    if keras.backend.backend() != "tensorflow":
        return
    for name, task in tasks.items():
        found = from_text.program_of(of_seen_weights(task))(TEXTS)
        np.testing.assert_allclose(found[name], task.predict(TEXTS, verbose=0), atol=1e-5)
        assert len(found) == (3 if task is several else 1)
        if task is several:
            labels = [[name.decode() for name in row if name] for row in found["labels"].numpy()]
            classified = task.classify(TEXTS)
            assert labels == [answer["labels"] for answer in classified]
            probabilities = [list(answer["probabilities"].values()) for answer in classified]
            np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    found = from_text.program_of(of_seen_weights(reranker))(TEXTS, PAIRS)
    np.testing.assert_allclose(found["scores"][:, 0], reranker.score(TEXTS, PAIRS), atol=1e-5)
    found = from_text.program_of(of_seen_weights(follows))(TEXTS, PAIRS)
    np.testing.assert_allclose(found["logits"], follows.predict((TEXTS, PAIRS)), atol=1e-5)
    is_next = [answer["is_next"] for answer in follows.is_next(TEXTS, PAIRS)]
    assert [label == b"next" for label in found["labels"].numpy()] == is_next


class OfUpperCase(bert_keras.TextClassifier):
    def encode_texts(self, x, *args, **kwargs):
        return super().encode_texts([text.upper() for text in x], *args, **kwargs)


class Lowering(bert_keras.TextPreprocessor):
    def tokenize(self, texts, pairs=None):
        return super().tokenize([text.lower() for text in texts], pairs)


def test_tasks_that_cannot_be_such_a_program_are_refused_with_advice(tmp_path):
    backbone, preprocessor = tiny_backbone(), tiny_preprocessor()
    with_bytes = bert_keras.TextPreprocessor(byte_pair_tokenizer(["a b"]), max_length=16)
    no_classifier = tiny_classifier(preprocessor=None)
    bytes_backbone = tiny_backbone(vocabulary_size=with_bytes.tokenizer.vocabulary_size)
    refused = {
        "one answer.*QuestionAnswering": bert_keras.QuestionAnswering(backbone, preprocessor),
        "one answer.*LongTextClassifier": bert_keras.LongTextClassifier(backbone, 2, preprocessor),
        "one answer.*OfUpperCase": OfUpperCase(backbone, 2, preprocessor),
        "one answer.*BertBackbone": backbone,
        "`TextPreprocessor`.*NoneType": no_classifier,
        "`TextPreprocessor`.*Lowering": tiny_classifier(
            preprocessor=Lowering(preprocessor.tokenizer, max_length=16)
        ),
        "no exact form.*'BPE'.*ONNX": tiny_classifier(bytes_backbone, preprocessor=with_bytes),
        "`truncation` .*'tail'": bert_keras.NextSentencePrediction(
            backbone, tiny_preprocessor(truncation="tail")
        ),
    }
    for message, model in refused.items():
        with pytest.raises(ValueError, match=message):
            model.export(tmp_path / "served", text=True)
    with pytest.raises(ValueError, match=r"`format` with `text=True`.*'onnx'.*take token ids"):
        tiny_classifier().export(tmp_path / "served", text=True, format="onnx")
    assert not list(tmp_path.iterdir())
