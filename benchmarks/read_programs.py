"""Exported programs, read again by the runtime that they were written for."""


def read_program(path, format):
    """Returns a function from a dict of int32 arrays to a dict of arrays.

    Args:
        path: str or path, written by `export`.
        format: str, the `format` it was written in.

    Raises:
        ImportError: the format's runtime is not installed.
    """
    return _READERS[format](str(path))


def _saved_model(path):
    import tensorflow as tf

    loaded = tf.saved_model.load(path)  # Kept, since its functions do not keep its variables.

    def run(inputs):
        outputs = loaded.serve({name: tf.constant(x) for name, x in inputs.items()})
        return {name: x.numpy() for name, x in outputs.items()}

    return run


def _litert(path):
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(path).get_signature_runner()
    return lambda inputs: runner(**inputs)


def _onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def _openvino(path):
    import openvino

    # The default is a lower precision on some processors.
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    program = openvino.Core().read_model(path)
    # The compiled program may give an output a second name, so names are taken before.
    names = [output.any_name for output in program.outputs]
    compiled = openvino.compile_model(program, "CPU", precision)
    return lambda inputs: dict(zip(names, compiled(inputs).values(), strict=True))


_READERS = {
    "tf_saved_model": _saved_model,
    "litert": _litert,
    "onnx": _onnx,
    "openvino": _openvino,
}
