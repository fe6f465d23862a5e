"""The names by which files of sentence-transformers refer to PyTorch's activations."""

from bert_keras.checks import check_choice

# Our name -> the class in PyTorch.
TORCH_NAMES = {
    "linear": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "silu": "torch.nn.modules.activation.SiLU",
}


def read_activation(name, path):
    """Returns our name for the activation that a file names by its class in PyTorch.

    Args:
        name: the value in the file.
        path: str or path of the file, for the message.

    Raises:
        ValueError: the value is not the class of a supported activation.
    """
    # Compare class names alone: PyTorch has moved its modules.
    known = {theirs.rpartition(".")[2]: ours for ours, theirs in TORCH_NAMES.items()}
    package, _, kind = str(name).rpartition(".")
    kind = kind if package.partition(".")[0] == "torch" else name
    advice = "These classes of PyTorch are supported."
    return known[check_choice(f"activation` in `{path}", kind, known, advice)]
