"""Models for other runtimes: programs, folders that answer without Keras, and KerasHub."""
