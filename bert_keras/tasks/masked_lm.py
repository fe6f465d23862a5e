"""Predicting masked tokens: BERT's language model."""

import types
from collections.abc import Sequence
from typing import Any, Unpack

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.answers.classes import log_softmax
from bert_keras.answers.tokens import MaskAnswerer, MaskIdsAnswerer, MaskRows
from bert_keras.checks import (
    as_array,
    check_choice,
    check_shape,
    check_type,
    raise_at_first,
    refuse_options,
)
from bert_keras.heads.masked_tokens import HEAD_OPTIONS, OF_VOCABULARY, MaskedLMHead
from bert_keras.inputs import MASK_POSITIONS, PADDING_MASK, TOKEN_IDS
from bert_keras.layers.pooler import POOLINGS
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.metrics.streaming import MaskedPerplexity
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.batching import length_buckets
from bert_keras.preprocessing.collate import TextRows
from bert_keras.preprocessing.masking import Masking, TokenKinds
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets import families
from bert_keras.tasks.task import Task
from bert_keras.tasks.user_columns import as_columns, is_empty, num_examples
from bert_keras.tasks.validation import check_head_options, head_for
from bert_keras.training.losses import SparseCrossentropy
from bert_keras.types import (
    Inputs,
    Labels,
    Outputs,
    Pooling,
    PredictOptions,
    TaskOptions,
    Tensor,
    Texts,
)

# The most logits on the host at once: 128 MiB of float32.
_LOGITS_AT_ONCE = 2**25


@keras.saving.register_keras_serializable(package="bert_keras")
class MaskedLM(Task):
    """Predicts masked tokens from both sides, section 3.1, task 1 of the paper.

    A dense layer with the backbone's activation, a norm, and the token table itself as decoder with
    a bias of its own. The loss is the mean cross-entropy over masked positions, all with the same
    weight, whatever row they are in.

    `fit` and `evaluate` take texts without labels and mask them: `fit` anew in each epoch,
    `evaluate` (and `fit(shuffle=False)`) always in the same places, whatever the batch size.
    `predict` returns the logits at the `[MASK]` tokens of texts.

    | what | form |
    |---|---|
    | raw x | a column of str, or a tuple of two columns for pairs |
    | ready x | dict, see `bert_keras.inputs`; `mask_positions` int `(batch, num_predictions)` |
    | ready y | int `(batch, num_predictions)`, the original ids |
    | ready sample_weight | float `(batch, num_predictions)`, 0 if a row has fewer masked tokens |
    | output | float32 `(batch, num_predictions, vocabulary_size)`, logits |

    Without `mask_positions` in ready inputs, there are logits at every position, `(batch, seq_len,
    vocabulary_size)`, which takes much memory.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        masking: a `Masking`, the dict of its arguments, or `None` for the paper's: 15 % of the
            tokens are chosen, of which 80 % are hidden, 10 % replaced, and 10 % kept.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        head_options: dict with `activation`, `layer_norm_epsilon` and `use_bias` of `MaskedLMHead`,
            if they differ from those of the backbone or its family: KerasHub's head on BERT has the
            exact GELU on an encoder with the approximate one.
        pooling: `"pooler"`, `"cls"`, `"mean"`, `"max"` or `None`: how the encoder was trained to
            make a vector of a text. It is not used here: `from_preset` takes it from a sentence
            encoder, and new heads take it from the preset of this task.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Example:
    ```python
    model = bert_keras.MaskedLM.from_preset("bert_base_en_uncased")
    model.fill_mask("She opened the [MASK] and went in.")  # [[("door", 0.83), ...]]
    model.score(["Put your name into the form.", "Put your name into the from."])
    model.fit(texts, epochs=3)  # adapts the model to one's own texts
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 3.1.
    """

    compatible_heads = types.MappingProxyType(
        {saved: {"head/": "head/masked_lm/"} for saved in ("Pretraining", "SpanBoundary")}
    )
    required_special_tokens = ("mask_token",)
    needs_labels = False
    is_fine_tuned = False
    has_classes = reads_pooled_output = False
    answerers = (MaskAnswerer, MaskIdsAnswerer)
    label_kind = LabelKind("places", per_token=True)
    # The arguments of `Masking` without `masking`.
    default_masking = types.MappingProxyType({})
    # Whether examples are pairs of texts with a label.
    has_next_sentence = False

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        masking: Masking | dict[str, Any] | None = None,
        head_options: dict[str, Any] | None = None,
        pooling: Pooling | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        rule = "a `Masking`, the dict of its arguments, or None"
        check_type("masking", masking, (Masking, dict, type(None)), rule)
        masking = self.default_masking if masking is None else masking
        self.masking = masking if isinstance(masking, Masking) else Masking(**masking)
        self.head_options = check_head_options(head_options, HEAD_OPTIONS)
        self.pooling = check_choice("pooling", pooling, (None, *POOLINGS))
        self.head = self.make_head()

    def make_head(self) -> keras.layers.Layer:
        """Returns a new head, not built yet."""
        return self.make_masked_lm_head("head")

    def make_masked_lm_head(self, name: str) -> keras.layers.Layer:
        """Returns a new head for masked tokens, not built yet."""
        options = families.head_options(self.backbone, "MaskedLM")
        options |= {"name": name, **(self.head_options or {})}
        return head_for(self, MaskedLMHead, *OF_VOCABULARY, **options)

    def call(self, inputs, training=None):
        inputs = dict(inputs)
        positions = inputs.pop(MASK_POSITIONS, None)
        outputs = self.backbone_outputs(inputs, training=training)
        return self.head_outputs(outputs, {MASK_POSITIONS: positions})

    def head_outputs(
        self, outputs: Outputs, inputs: Inputs, training: bool | None = None
    ) -> Tensor:
        """Returns the logits for a backbone's outputs, at `mask_positions` if there are any."""
        return self.head(
            outputs,
            token_embedding=self.backbone.token_embedding,
            mask_positions=inputs.get(MASK_POSITIONS),
        )

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs that this task takes: the backbone's and `mask_positions`."""
        return (*self.backbone.input_names, MASK_POSITIONS)

    def check_arrays(self, inputs):
        """Raises when NumPy inputs do not fit the backbone or each other."""
        self.backbone.check_arrays(inputs)
        rows, positions = inputs[TOKEN_IDS].shape[0], inputs.get(MASK_POSITIONS)
        if positions is not None:
            advice = "It has a row for each row of 'token_ids'."
            shape = (rows, "num_predictions")
            check_shape("The input 'mask_positions'", positions, shape, advice=advice)

    def default_loss(self, label_smoothing):
        """Returns the mean cross-entropy over positions, by weight, for each output."""
        loss = SparseCrossentropy(label_smoothing=label_smoothing)
        is_one = isinstance(self.label_kind, LabelKind)
        return loss if is_one else dict.fromkeys(self.label_kind, loss)

    def default_metrics(self):
        """Returns accuracy and perplexity at the masked positions."""
        return [keras.metrics.SparseCategoricalAccuracy("accuracy"), MaskedPerplexity()]

    def encode_labels(self, labels):
        """Returns the original ids at the masked positions.

        Args:
            labels: int `(batch, num_predictions)`.

        Returns:
            int32 `(batch, num_predictions)`.

        Raises:
            ValueError: a label is not an id of the vocabulary.
        """
        name, last_id = "Labels of masked tokens", self.backbone.vocabulary_size - 1
        fill = "Give positions to ignore any id and weight 0."
        labels = as_array(name, labels, fill)
        advice = "They are the ids that stood there. Texts need no labels: `fit` masks them."
        check_shape(name, labels, ("batch", "num_predictions"), "iu", advice)
        wrong = (labels < 0) | (labels > last_id)
        raise_at_first(wrong, labels, f"Labels must be ids from 0 to {last_id}", fill)
        return labels.astype("int32")

    # Texts to masked batches

    def row_labels(self, x: Texts, y: Labels | None) -> NDArray[np.int32]:
        """Returns a label for each text: no labels are needed here, so 0."""
        rule = f"Texts of a {type(self).__name__} have no labels: `fit(texts)` masks them"
        refuse_options(rule, {"y": y})
        return np.zeros(num_examples(x), "int32")

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns texts as rows of token ids, see `Task`.

        In training they are masked as `masking` says. For prediction, each row comes with the
        positions of its `[MASK]` tokens.

        Raises:
            TypeError, ValueError: texts do not fit, or there is no `[MASK]`.
        """
        if training:
            labels, rows = self.row_labels(x, y), TextsToMask(self, x)
            # Which tokens are masked depends on the padded length, the same on each backend.
            rows.buckets = length_buckets(self.preprocessor.max_length)
            return rows.labelled(labels, sample_weight)
        return super().encode_texts(x)

    # Answers

    def fill_mask(
        self,
        text: str | Texts,
        top_k: int = 5,
        *,
        targets: Sequence[str] | None = None,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns the likeliest tokens for each `[MASK]`.

        Args:
            text: a str with at least one `[MASK]`, or a column of such.
            top_k: int, how many tokens for each.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.
            targets: the only tokens to return, or `None`. Their probabilities are those among all
                tokens.

        Returns:
            For a str a list with an entry for each `[MASK]`: a list of `top_k` pairs (token,
            probability), the likeliest first. For a column, a list of these.

        Raises:
            TypeError, ValueError: a text has no `[MASK]`, `top_k` is out of range, or a target is
                not a token.

        Example:
        ```python
        model.fill_mask("The [MASK] barks.", top_k=2)  # [[("dog", 0.61), ("wolf", 0.05)]]
        ```
        """
        return self.ask("fill_mask", text, top_k=top_k, targets=targets, **options)

    def score(self, texts: str | Texts, **options: Unpack[PredictOptions]) -> Any:
        """Returns how likely texts are: their pseudo-log-likelihood.

        `score = sum over i of log p(token i | all other tokens)`: each token is masked in turn,
        which costs one row of a batch per token. Higher is likelier. It is a sum, so it suits texts
        of about the same length, such as two spellings of one sentence.

        Args:
            texts: a str, a column of str, or a tuple of two such columns for pairs, all of whose
                tokens count.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str a float, for a column a list of floats. A text without any token has 0.0.

        Raises:
            TypeError, ValueError: something is not text, or longer than `max_length`.

        Example:
        ```python
        right, wrong = model.score(["Fill in the form.", "Fill in the from."])
        right > wrong
        ```

        Reference:
            [Salazar et al., 2020](https://arxiv.org/abs/1910.14659), section 2.
        """
        self.check_options(options, self.score)
        if isinstance(texts, str):
            return self.score([texts], **options)[0]
        self.check_has_preprocessor()
        if is_empty(texts):
            return []
        tokenizer = self.preprocessor.tokenizer
        ids, pair_ids = self.preprocessor.tokenize(as_columns(texts))
        self.preprocessor.check_all_fit(ids, pair_ids)
        longest = int(self.preprocessor.packed_lengths(ids, pair_ids).max(initial=1))
        packed = self.preprocessor.pack(ids, pair_ids, length=longest)
        layout, mask_id = tokenizer.layout, TokenKinds.from_tokenizer(tokenizer).mask_id
        special_ids = {*layout.before, *layout.between, *layout.after}
        not_scored = [*special_ids, tokenizer.pad_token_id, mask_id]
        rows, columns = np.nonzero(~np.isin(packed[TOKEN_IDS], not_scored))
        scores = np.zeros(len(ids))
        at_once = max(1, _LOGITS_AT_ONCE // self.backbone.vocabulary_size)
        for start in range(0, len(rows), at_once):
            texts, places = rows[start : start + at_once], columns[start : start + at_once]
            # One row for each token, which is hidden from the model.
            inputs = {name: array[texts] for name, array in packed.items()}
            inputs[TOKEN_IDS][np.arange(len(texts)), places] = mask_id
            positions = Ragged.from_flat(places.astype("int32"), np.ones(len(texts), int))
            masked = MaskRows(self.preprocessor, inputs, positions)
            for indices, outputs in self.predict_rows(masked, **options):
                labels = packed[TOKEN_IDS][texts[indices], places[indices]]
                logits = outputs["masked_lm"] if isinstance(outputs, dict) else outputs
                by_token = log_softmax(logits[:, 0])
                np.add.at(scores, texts[indices], by_token[np.arange(len(indices)), labels])
        return scores.tolist()

    def get_config(self):
        return {**super().get_config(), "masking": self.masking.get_config()}


class TextsToMask(TextRows):
    """Texts whose tokens are masked when a batch is read.

    Shuffled batches are masked anew in each epoch. Batches that are not shuffled are always masked
    the same way, each row by its own number, so that evaluations of the same texts give the same
    result whatever the size and the padding of the batches.

    Args:
        task: a `MaskedLM`.
        texts: texts or pairs.
    """

    def __init__(self, task, texts):
        packer = task.preprocessor
        super().__init__(packer, *packer.tokenize(texts))
        self.masking, self.has_next_sentence = task.masking, task.has_next_sentence
        self.kinds = TokenKinds.from_tokenizer(packer.tokenizer)
        needs_starts = self.kinds.continues_word is None and self.masking.strategy != "pieces"
        self.word_starts = packer.tokenize(texts, word_starts=True) if needs_starts else None

    def draw(self, batch, rows, generator):
        """Returns `(inputs, labels, sample_weight)` of a batch, see `BucketedBatches`."""
        inputs, labels, *weights = batch
        row_weights = weights[0] if weights else np.ones(len(labels), np.float32)
        token_ids, arguments = inputs[TOKEN_IDS], [inputs[PADDING_MASK]]
        if self.word_starts is not None:
            starts = [None if part is None else part.take(rows) for part in self.word_starts]
            packed = self.packer.pack(*starts, length=token_ids.shape[1], fill=1)
            arguments.append(packed.astype(bool))
        if generator is None:
            masked = self.masking.rows_alike(token_ids, self.kinds, rows, *arguments)
        else:
            masked = self.masking(token_ids, self.kinds, generator, *arguments)
        inputs = {**inputs, TOKEN_IDS: masked.token_ids, MASK_POSITIONS: masked.mask_positions}
        mask_weights = masked.weights * np.asarray(row_weights, np.float32)[:, None]
        if not self.has_next_sentence:
            return inputs, masked.labels, mask_weights
        return (
            inputs,
            {"masked_lm": masked.labels, "next_sentence": labels},
            {"masked_lm": mask_weights, "next_sentence": row_weights},
        )
