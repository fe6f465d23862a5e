"""Both heads of BERT's pre-training, side by side."""

import keras


@keras.saving.register_keras_serializable(package="bert_keras")
class PretrainingHead(keras.layers.Layer):
    """The head of masked tokens and the head of next sentences on the same encoder.

    Args:
        masked_lm: a `MaskedLMHead`.
        next_sentence: a `NextSentenceHead`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.

    Call arguments: those of `MaskedLMHead`.

    Returns:
        A dict: `masked_lm`, float32 `(batch, num_predictions, vocabulary_size)`, and
        `next_sentence`, float32 `(batch, 2)`.
    """

    def __init__(self, masked_lm, next_sentence, **kwargs):
        super().__init__(**kwargs)
        self.masked_lm = masked_lm
        self.next_sentence = next_sentence

    def build(self, input_shape=None):
        for head in (self.masked_lm, self.next_sentence):
            if not head.built:
                head.build()

    def call(self, outputs, token_embedding, mask_positions=None):
        return {
            "masked_lm": self.masked_lm(
                outputs, token_embedding=token_embedding, mask_positions=mask_positions
            ),
            "next_sentence": self.next_sentence(outputs),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "masked_lm": keras.saving.serialize_keras_object(self.masked_lm),
            "next_sentence": keras.saving.serialize_keras_object(self.next_sentence),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("masked_lm", "next_sentence"):
            config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)
