"""BERT's pre-training: masked tokens and next sentences together."""

import types

import keras

from bert_keras.answers.classes import NextSentenceAnswerer, check_are_pairs
from bert_keras.answers.tokens import MaskAnswerer, MaskIdsAnswerer
from bert_keras.checks import check_has_labels
from bert_keras.heads.pretraining_heads import PretrainingHead
from bert_keras.heads.sequence import SequenceHead
from bert_keras.tasks import next_sentence_prediction as next_sentence
from bert_keras.tasks.encoded_labels import check_outputs
from bert_keras.tasks.masked_lm import MaskedLM
from bert_keras.tasks.validation import head_for

OUTPUTS = ("masked_lm", "next_sentence")


@keras.saving.register_keras_serializable(package="bert_keras")
class Pretraining(MaskedLM):
    """Both objectives of the paper on one encoder, section 3.1 and appendix A.2.

    `loss = mean over masked positions of -log p(token) + mean over pairs of -log p(is next)`, or of
    `-log p(is random)` for a random pair.

    It is a `MaskedLM`, with `fill_mask` and `score`, that also tells next sentences from random
    ones. Pre-training on a large corpus reads prepared files through `PretrainingBatches`; pairs of
    texts are masked anew in each epoch, as by `MaskedLM`. In ALBERT's pairs,
    `objective="sentence_order"`, 1 means that the texts were swapped, and `is_next` answers whether
    they are in order.

    | what | form |
    |---|---|
    | raw x, y | `(first texts, second texts)`, int `(num_examples,)`: 0 is next, 1 is random |
    | ready x | dict, see `bert_keras.inputs`; `mask_positions` int `(batch, num_predictions)` |
    | ready y | dict: `masked_lm` int `(batch, num_predictions)`, `next_sentence` int `(batch,)` |
    | ready sample_weight | dict of float of the same shapes |
    | output | dict: `masked_lm` float32 `(batch, num_predictions, vocabulary_size)`, |
    | | `next_sentence` float32 `(batch, 2)`, logits |

    Args:
        backbone: a `Backbone` with a pooler.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        masking: see `MaskedLM`.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        head_options: see `MaskedLM`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Example:
    ```python
    model = bert_keras.Pretraining(backbone, preprocessor=preprocessor)
    model.fit((first_texts, second_texts), labels, epochs=2)
    model.save_to_preset("pretrained")
    bert_keras.TextClassifier.from_preset("pretrained", num_classes=2)
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3.1.
    """

    answerers = (MaskAnswerer, MaskIdsAnswerer, NextSentenceAnswerer)
    has_next_sentence = True
    losses_share_weights = False
    label_kind = types.MappingProxyType(
        {
            "masked_lm": MaskedLM.label_kind,
            "next_sentence": next_sentence.NextSentencePrediction.label_kind,
        }
    )
    reads_pooled_output = True
    compatible_heads = types.MappingProxyType(
        {
            "MaskedLM": {"head/masked_lm/": "head/"},
            "NextSentencePrediction": {"head/next_sentence/": "head/"},
        }
    )

    def make_head(self):
        """Returns a new head, not built yet."""
        return PretrainingHead(
            self.make_masked_lm_head("masked_lm"),
            head_for(self, SequenceHead, num_outputs=2, dropout=0.0, name="next_sentence"),
            dtype=self.dtype_policy,
            name="head",
        )

    def default_metrics(self):
        """Returns accuracy and perplexity of masked tokens, and accuracy of next sentences."""
        return {
            "masked_lm": super().default_metrics(),
            "next_sentence": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        }

    def encode_labels(self, labels):
        """Returns the labels of ready inputs as a dict of int32, checked.

        Args:
            labels: dict of `masked_lm` and `next_sentence`, see the class.

        Raises:
            ValueError: one of them is missing, or a label is not an id or a class.
        """
        check_outputs(labels, OUTPUTS, "Without next sentences use MaskedLM.")
        return {
            "masked_lm": super().encode_labels(labels["masked_lm"]),
            "next_sentence": next_sentence.encode_next_labels(labels["next_sentence"]),
        }

    def row_labels(self, x, y):
        """Returns the label of each pair, checked; see `MaskedLM`."""
        check_are_pairs(x)
        check_has_labels(y, "Pretraining", "Pass a label for each pair: 0 is next, 1 is random.")
        return next_sentence.encode_next_labels(y)

    is_next = next_sentence.NextSentencePrediction.is_next
