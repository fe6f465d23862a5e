"""KerasHub's preprocessor within `tf.data`, which is where its own `predict` and `fit` have it."""

import tensorflow as tf

from sides import jobs, keras_hub


def arrays(job):
    preprocessor = keras_hub.make_classifier(job).preprocessor
    batches = tf.data.Dataset.from_tensor_slices(jobs.as_given(job)).batch(job["batch"])
    batches = batches.map(preprocessor, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def run():
        for batch in batches.as_numpy_iterator():
            del batch

    return run
