"""Batches of texts with tokens masked, drawn anew each time."""

import keras
import numpy as np

from bert_keras.inputs import MASK_POSITIONS, PADDING_MASK, TOKEN_IDS


class MaskedBatches(keras.utils.PyDataset):
    """Masks the batches of a `BucketedBatches`, for `fit` and `evaluate` of a masked model.

    Masks depend on the batches' seed, the number of the epoch and of the batch alone. Shuffled
    batches are masked anew in each epoch; those that are not shuffled always alike, from a seed of
    their own, so that two evaluations of the same texts measure the same.

    Labels of the batches are those of the next sentence, as for `Pretraining`.

    Args:
        batches: a `BucketedBatches` with one label a row.
        masking: a `Masking`.
        kinds: the vocabulary's `TokenKinds`.
        has_next_sentence: bool. `True` yields labels and weights as dicts with the keys `masked_lm`
            and `next_sentence`; `False` those of the masked tokens alone.
    """

    def __init__(self, batches, masking, kinds, has_next_sentence=False):
        super().__init__()
        self.batches = batches
        self.masking = masking
        self.kinds = kinds
        self.has_next_sentence = has_next_sentence

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        """Returns `(inputs, labels, sample_weight)`."""
        inputs, labels, *weights = self.batches[index]
        row_weights = weights[0] if weights else np.ones(len(labels), np.float32)
        seed = [self.batches.seed, self.batches.epoch] if self.batches.shuffle else [0, 0]
        generator = np.random.default_rng([*seed, index])
        masked = self.masking(inputs[TOKEN_IDS], self.kinds, generator, inputs[PADDING_MASK])
        inputs = {
            **inputs,
            TOKEN_IDS: masked.token_ids,
            MASK_POSITIONS: masked.mask_positions,
        }
        mask_weights = masked.weights * np.asarray(row_weights, np.float32)[:, None]
        if not self.has_next_sentence:
            return inputs, masked.labels, mask_weights
        return (
            inputs,
            {"masked_lm": masked.labels, "next_sentence": labels},
            {"masked_lm": mask_weights, "next_sentence": row_weights},
        )

    def on_epoch_begin(self):
        """Begins to note which batches are read, see `BucketedBatches`."""
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        """Orders and masks the rows anew if all batches have been read."""
        self.batches.on_epoch_end()
