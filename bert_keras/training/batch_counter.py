"""A callback that counts batches without waiting for them."""

import threading

import keras


class BatchCounter(keras.callbacks.Callback):
    """Counts the batches of an epoch, in `batches_done`.

    It reads no logs, so it is `async_safe`: Keras then need not read the metrics of every step from
    the device. In return, Keras may call `on_train_batch_end` from several threads, in any order.
    """

    async_safe = True

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.batches_done = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.batches_done = 0

    def on_train_batch_end(self, batch, logs=None):
        with self._lock:
            self.batches_done = max(self.batches_done, batch + 1)
