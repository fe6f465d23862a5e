"""A layer made of layers that its constructor is handed."""

import keras


class Composite(keras.layers.Layer):
    """A layer that is handed its parts: its config holds theirs.

    Attributes:
        arguments: names of the constructor's arguments that are attributes too.
    """

    arguments = ()

    def get_config(self):
        own = {name: getattr(self, name) for name in self.arguments}
        return {**super().get_config(), **keras.saving.serialize_keras_object(own)}

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
