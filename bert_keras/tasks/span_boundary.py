"""SpanBERT's pre-training: masked spans, predicted from inside and from their borders."""

import types

import keras

from bert_keras.heads.masked_tokens import OF_VOCABULARY
from bert_keras.heads.pretraining_heads import PretrainingHead
from bert_keras.heads.span_border import SpanBoundaryHead
from bert_keras.inputs import MASK_POSITIONS
from bert_keras.tasks.masked_lm import MaskedLM
from bert_keras.tasks.validation import head_for

OUTPUTS = ("masked_lm", "span_boundary")


@keras.saving.register_keras_serializable(package="bert_keras")
class SpanBoundary(MaskedLM):
    """Predicts each token of a masked span from its own vector and from the span's borders.

    `loss = mean over masked positions of -log p(token) + mean of -log q(token)`, where `p` is the
    masked language model's, and `q`, the span boundary objective, sees the vectors just outside the
    span and the token's position in it. The borders must then hold the content of the span, which
    is where tasks such as question answering look for it. (SpanBERT's code divides the two sums by
    the numbers of all tokens, and of masked tokens plus one.)

    It is a `MaskedLM` with the same inputs, labels, `fill_mask` and `score`; but texts are masked
    by spans, and `mask_positions` are required. As in the paper, each row is one segment if data is
    made by `create_pretraining_data(objective="full_sentences")`:
    `PretrainingBatches(folder, batch_size, masking=Masking(strategy="spans"))`.

    | what | form |
    |---|---|
    | x, y, sample_weight | those of `MaskedLM`; both outputs have the same labels |
    | output | dict: `masked_lm`, `span_boundary` float32 `(batch, num_predictions,` |
    | | `vocabulary_size)`, logits |

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        masking: see `MaskedLM`; `None` masks spans, 15 % of the tokens.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        head_options: see `MaskedLM`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Example:
    ```python
    model = bert_keras.SpanBoundary(backbone, preprocessor=preprocessor)
    model.fit(texts, epochs=3)
    model.save_to_preset("pretrained")
    bert_keras.QuestionAnswering.from_preset("pretrained")
    ```

    Reference:
        [Joshi et al., 2020](https://arxiv.org/abs/1907.10529), section 3.
    """

    further_inputs = (MASK_POSITIONS,)
    default_masking = types.MappingProxyType({"strategy": "spans"})
    label_kind = types.MappingProxyType(dict.fromkeys(OUTPUTS, MaskedLM.label_kind))
    compatible_heads = types.MappingProxyType(
        {
            "MaskedLM": {"head/masked_lm/": "head/"},
            "Pretraining": {"head/masked_lm/": "head/masked_lm/"},
        }
    )

    def make_head(self):
        """Returns a new head, not built yet."""
        masked_lm = self.make_masked_lm_head("masked_lm")
        span_boundary = head_for(
            self,
            SpanBoundaryHead,
            *OF_VOCABULARY,
            name="span_boundary",
            activation=masked_lm.activation,
        )
        return PretrainingHead(
            masked_lm, span_boundary=span_boundary, dtype=self.dtype_policy, name="head"
        )

    def default_metrics(self):
        """Returns accuracy and perplexity of each output."""
        return {name: MaskedLM.default_metrics(self) for name in OUTPUTS}

    def loss_arguments(self, x, y, y_pred, sample_weight):
        """Returns labels, outputs and weights: both outputs have the same labels."""
        return _for_both(y), y_pred, _for_both(sample_weight)


def _for_both(values):
    """Returns labels or weights as a dict of both outputs; `None` stays."""
    return None if values is None else dict.fromkeys(OUTPUTS, values)
