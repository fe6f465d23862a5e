import keras
import numpy as np
from checks import assert_close, to_numpy

from bert_keras.heads.token import TokenHead


def test_logits_are_a_dense_layer_on_each_token():
    head = TokenHead(3, hidden_dim=4)
    head.build()
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    expected = x @ to_numpy(head.dense.kernel.value) + to_numpy(head.dense.bias.value)
    assert_close(head({"sequence_output": x}), expected, 1e-6)


def test_dropout_is_active_in_training_only():
    head = TokenHead(3, hidden_dim=4, dropout=0.5)
    head.build()
    outputs = {"sequence_output": np.ones((2, 5, 4), "float32")}
    assert_close(head(outputs), head(outputs, training=False), 0)
    dropped = to_numpy(head(outputs, training=True))
    assert np.abs(dropped - to_numpy(head(outputs))).max() > 1e-4


def test_weight_paths_are_the_file_format():
    head = TokenHead(3, hidden_dim=4, crf=True, name="head")
    head.build()
    assert [(weight.path, tuple(weight.shape)) for weight in head.weights] == [
        ("head/dense/kernel", (4, 3)),
        ("head/dense/bias", (3,)),
        ("head/crf/transitions", (3, 3)),
        ("head/crf/start", (3,)),
        ("head/crf/end", (3,)),
    ]


def test_config_survives_the_round_trip():
    head = TokenHead(3, hidden_dim=4, crf=True, dropout=0.2, name="head", dtype="mixed_bfloat16")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(head))
    assert again.get_config() == head.get_config()
    assert again.crf is not None
