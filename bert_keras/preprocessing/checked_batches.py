"""Batches of somebody else's dataset, looked at before a model sees them."""

import keras


class CheckedBatches(keras.utils.PyDataset):
    """A `PyDataset` whose inputs are checked batch by batch, on the host.

    An id outside its table is an error on some backends and NaN on JAX, where it spreads to every
    weight. All else is the dataset's own: order, length, workers, and what it does between epochs.

    Args:
        batches: a `keras.utils.PyDataset` that yields inputs, or tuples that begin with them.
        check: function of a dict of inputs that raises when they do not fit.
    """

    def __init__(self, batches, check):
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self.batches = batches
        self.check = check

    @property
    def num_batches(self):
        """Number of batches of an epoch, or `None` for a dataset without end."""
        return self.batches.num_batches

    def __getitem__(self, index):
        batch = self.batches[index]
        inputs = batch[0] if isinstance(batch, (tuple, list)) else batch
        if isinstance(inputs, dict):
            self.check(inputs)
        return batch

    def on_epoch_begin(self):
        """Passes the event on."""
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        """Passes the event on."""
        self.batches.on_epoch_end()
