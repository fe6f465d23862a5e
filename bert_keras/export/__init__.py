"""A room: models for other runtimes, folders that answer without Keras, and KerasHub presets."""
