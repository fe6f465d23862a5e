"""A weighted sum of an encoder's hidden states with learned weights."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="bert_keras")
class LayerMix(keras.layers.Layer):
    """Mixes the hidden states of several encoder layers into one, with one weight per layer.

    `output = scale * sum over k of softmax(weights)[k] * hidden_states[k]`. It starts as the plain
    mean. The BERT paper does not say how its weighted sums are formed; this is ELMo's way.

    Args:
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments:
        hidden_states: float, `(..., num_states, hidden_dim)`, such as `ops.stack` of a
            backbone's `hidden_states` on the axis -2.

    Returns:
        float, `(..., hidden_dim)`.

    Reference:
        [Peters et al., 2018](https://arxiv.org/abs/1802.05365), equation 1;
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), table 7.
    """

    def build(self, input_shape):
        self.weights_of_states = self.add_weight(
            shape=(input_shape[-2],), initializer="zeros", name="weights"
        )
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, hidden_states):
        shares = ops.softmax(self.weights_of_states)
        return self.scale * ops.sum(hidden_states * shares[:, None], axis=-2)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-2], input_shape[-1])
