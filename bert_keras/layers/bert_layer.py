"""The base class of layers: their arguments are attributes, and they build what they made."""

import functools
from typing import Any, TypeVar

import keras

from bert_keras.engine.fast_layer_call import DirectCall
from bert_keras.layers.activations import get_activation
from bert_keras.layers.adaptable_dense import AdaptableDense
from bert_keras.layers.dropout import Dropout
from bert_keras.layers.initializer import TruncatedNormal, build_parts
from bert_keras.layers.layer_norm import LayerNorm
from bert_keras.signatures import KeepsArguments
from bert_keras.types import Activation

_Layer = TypeVar("_Layer", bound=keras.layers.Layer)


class BertLayer(KeepsArguments, DirectCall, keras.layers.Layer):
    """A layer with BERT's initial values, which builds what it made by the methods below.

    The arguments of a subclass's constructor are attributes, see `KeepsArguments`. For kernels and
    tables they include `initializer_range`, float, standard deviation of the initial values.

    Args:
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.
    """

    # How the kernels of dense layers begin.
    initializer_class: type[keras.initializers.Initializer] = TruncatedNormal
    # Functions that build. Keras would find layers here, and name them accordingly in files.
    _builds = ()

    def make(
        self, layer_class: type[_Layer], *args: Any, width: int | None = None, **options: Any
    ) -> _Layer:
        """Returns a layer of this layer's dtype, which is built together with this layer.

        Args:
            layer_class: a class of layers.
            *args: arguments of the class.
            width: int, the last axis of its input; `None` if it does not matter.
            **options: further arguments of the class, such as `name`.
        """
        layer = layer_class(*args, **{"dtype": self.dtype_policy, **options})
        self._builds += (functools.partial(build_parts, [layer], (None, width)),)
        return layer

    def make_dense(
        self,
        width: int,
        units: int,
        name: str = "dense",
        activation: Activation | None = None,
        **options: Any,
    ) -> keras.layers.Dense:
        """Returns a dense layer for vectors of a width, see `keras.layers.Dense`."""
        if "kernel_initializer" not in options:
            options["kernel_initializer"] = self.initializer_class(stddev=self.initializer_range)
        function = get_activation(activation)
        options |= {"width": width, "name": name, "activation": function}
        return self.make(AdaptableDense, units, **options)

    def make_table(
        self,
        num_rows: int,
        width: int,
        name: str,
        layer_class: type[keras.layers.Embedding] = keras.layers.Embedding,
    ) -> keras.layers.Embedding:
        """Returns an embedding table, whose values begin as those of the encoder do."""
        initializer = TruncatedNormal(stddev=self.initializer_range)
        return self.make(
            layer_class, num_rows, width, embeddings_initializer=initializer, name=name
        )

    def make_norm(
        self, width: int, epsilon: float, name: str = "layer_norm", **options: Any
    ) -> LayerNorm:
        """Returns a norm, see `LayerNorm`."""
        return self.make(LayerNorm, epsilon=epsilon, width=width, name=name, **options)

    def make_dropout(self, rate: float, name: str = "dropout") -> Dropout:
        """Returns a dropout layer."""
        return self.make(Dropout, rate, name=name)

    def build(self, input_shape=None):
        for build in self._builds:
            build()
