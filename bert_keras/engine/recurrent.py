"""The recurrence of an LSTM, in the fastest form that each backend has.

Why: Keras computes an LSTM on PyTorch step by step in Python, which takes several times as long on
the CPU and cannot be exported for any number of steps.

Remove when `test_keras_exports_no_lstm_of_any_length_from_pytorch` fails.
"""

import contextlib

import keras
from keras import ops

_BACKEND = keras.backend.backend()
if _BACKEND == "torch":
    import torch


def lstm(x, kernel, recurrent_kernel, bias):
    """Returns the outputs of an LSTM at all steps, from an initial state of zeros.

    Args:
        x: float `(batch, steps, width)`.
        kernel: float `(width, 4 * units)`; the columns belong to the gates i, f, g and o.
        recurrent_kernel: float `(units, 4 * units)`.
        bias: float `(4 * units,)`.

    Returns:
        float `(batch, steps, units)`.
    """
    if _BACKEND == "torch":
        return _lstm_on_torch(x, kernel, recurrent_kernel, bias)
    gates = ops.transpose(ops.matmul(x, kernel) + bias, (1, 0, 2))
    state = ops.zeros_like(ops.matmul(gates[0], ops.transpose(recurrent_kernel)))

    def step(carry, gates):
        output, cell = carry
        i, f, g, o = ops.split(gates + ops.matmul(output, recurrent_kernel), 4, axis=-1)
        cell = ops.sigmoid(f) * cell + ops.sigmoid(i) * ops.tanh(g)
        carry = ops.sigmoid(o) * ops.tanh(cell), cell
        return carry, carry  # On TensorFlow, Keras's outputs must have the form of the state.

    outputs, _ = ops.scan(step, (state, state), gates)[1]
    return ops.transpose(outputs, (1, 0, 2))


def _lstm_on_torch(x, kernel, recurrent_kernel, bias):
    weights = ops.transpose(kernel), ops.transpose(recurrent_kernel), bias
    units = recurrent_kernel.shape[0]
    if torch.onnx.is_in_onnx_export():
        # ONNX orders the gates i, o, f, g, has an axis of directions, and two biases.
        order = torch.arange(4 * units).view(1, 4, units)[:, [0, 3, 1, 2]].flatten(1)
        onnx = [w[order] for w in weights]
        onnx[2] = torch.nn.functional.pad(onnx[2], (0, 4 * units))
        steps_first = x.transpose(0, 1)
        outputs = torch.onnx.ops.symbolic(
            "LSTM",
            (steps_first, *onnx),
            {"hidden_size": units},
            dtype=x.dtype,
            shape=(x.shape[1], 1, x.shape[0], units),
        )
        return outputs.squeeze(1).transpose(0, 1)
    weights = [w.contiguous() for w in (*weights, torch.zeros_like(bias))]
    state = x.new_zeros(1, x.shape[0], units)
    with _any_length() if torch.compiler.is_exporting() else contextlib.nullcontext():
        return torch.lstm(x, (state, state), weights, True, 1, 0.0, False, False, True)[0]


def _any_length():
    """Returns a context in which `torch.export` does not fix the number of steps."""
    from torch.export._patches import register_lstm_while_loop_decomposition

    return register_lstm_while_loop_decomposition()


if _BACKEND == "jax":
    import jax

    # Otherwise every call outside a compiled function would compile its loop.
    lstm = jax.jit(lstm)
