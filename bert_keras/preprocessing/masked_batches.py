"""Batches of texts with masked tokens, drawn anew in each epoch."""

import numpy as np

from bert_keras.inputs import MASK_POSITIONS, PADDING_MASK, TOKEN_IDS
from bert_keras.preprocessing.batching import PreparedBatches
from bert_keras.preprocessing.masking import mask_rows_alike, mask_tokens

WORD_STARTS = "word_starts"


class MaskedBatches(PreparedBatches):
    """Masks the batches of a `BucketedBatches`, to `fit` and `evaluate` masked language models.

    Shuffled batches are masked anew in each epoch; the masks depend only on the batches' seed and
    the numbers of the epoch and of the batch. Batches that are not shuffled are always masked the
    same way, each row by its own index, so that evaluations of the same texts give the same result
    whatever the size and the padding of the batches.

    The labels of the batches are those of the next sentence, as for `Pretraining`.

    If the inputs of a batch have `word_starts`, bool `(batch, seq_len)`, these say where words
    begin, and are removed; otherwise the vocabulary decides it.

    Args:
        batches: a `BucketedBatches` with one label per row.
        masking: a `Masking`.
        kinds: the vocabulary's `TokenKinds`.
        has_next_sentence: bool. `True` yields labels and weights as dicts with the keys `masked_lm`
            and `next_sentence`; `False` only those of the masked tokens.
    """

    def __init__(self, batches, masking, kinds, has_next_sentence=False):
        super().__init__(batches, self._prepared)
        self.masking, self.kinds = masking, kinds
        self.has_next_sentence = has_next_sentence

    def _prepared(self, batch, index):
        """Returns `(inputs, labels, sample_weight)`."""
        inputs, labels, *weights = batch
        inputs = dict(inputs)
        row_weights = weights[0] if weights else np.ones(len(labels), np.float32)
        batch = inputs[TOKEN_IDS], inputs[PADDING_MASK], inputs.pop(WORD_STARTS, None)
        masked = self._masked(index, *batch)
        inputs |= {TOKEN_IDS: masked.token_ids, MASK_POSITIONS: masked.mask_positions}
        mask_weights = masked.weights * np.asarray(row_weights, np.float32)[:, None]
        if not self.has_next_sentence:
            return inputs, masked.labels, mask_weights
        return (
            inputs,
            {"masked_lm": masked.labels, "next_sentence": labels},
            {"masked_lm": mask_weights, "next_sentence": row_weights},
        )

    def _masked(self, index, token_ids, padding_mask, word_starts):
        arguments = self.masking, padding_mask, word_starts
        if self.batches.shuffle:
            generator = np.random.default_rng([self.batches.seed, self.batches.epoch, index])
            return mask_tokens(token_ids, self.kinds, generator, *arguments)
        rows, _ = self.batches.batches[index]
        return mask_rows_alike(token_ids, self.kinds, rows, *arguments)
