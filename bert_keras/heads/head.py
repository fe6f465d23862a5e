"""The base class of heads."""

from typing import Unpack

from bert_keras.checks import refuse_options
from bert_keras.layers.bert_layer import BertLayer
from bert_keras.layers.initializer import RandomNormal
from bert_keras.signatures import parameters_of
from bert_keras.types import LayerOptions, Tensor


class Head(BertLayer):
    """Dense layers on the outputs of a backbone.

    The last layer is `dense`. A head may have a hidden layer, `hidden`, and a norm after it,
    `hidden_norm`. The arguments of a subclass's constructor are attributes, see `KeepsArguments`.
    They include `hidden_dim`, int, width of the backbone, and, for `make_dense`,
    `initializer_range`, float, standard deviation of the initial kernels.

    Args:
        **kwargs: `name`, `dtype`, `trainable`, see `keras.layers.Layer`.
    """

    initializer_class = RandomNormal
    # Whether there is dropout before the hidden layer too.
    dropout_first = False

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.hidden = self.hidden_norm = None

    def add_hidden(self) -> None:
        """Adds a hidden layer as `hidden_activation`, `norm` and `layer_norm_epsilon` say.

        Without a `hidden_activation` there is none. With a norm, neither of them has a bias.

        Raises:
            ValueError: an option of the hidden layer is set, but there is none.
        """
        activation, norm = self.hidden_activation, self.norm
        if activation is not None:
            options = {"activation": activation, "use_bias": not norm}
            self.hidden = self.make_dense(self.hidden_dim, self.hidden_dim, "hidden", **options)
        else:
            options = {"dropout_first": self.dropout_first or None, "norm": norm or None}
            rule = "`dropout_first` and `norm` are for a head with a hidden layer"
            advice = "Name its `hidden_activation`, such as 'gelu', or leave them out."
            refuse_options(rule, options, advice)
        if norm:
            epsilon, options = self.layer_norm_epsilon, {"name": "hidden_norm", "center": False}
            self.hidden_norm = self.make_norm(self.hidden_dim, epsilon, **options)

    def through_hidden(self, vectors: Tensor) -> Tensor:
        """Returns float vectors `(..., hidden_dim)` after the hidden layer, if there is one."""
        for layer in (self.hidden, self.hidden_norm):
            vectors = vectors if layer is None else layer(vectors)
        return vectors

    def get_config(self):
        names, _ = parameters_of(type(self))
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
