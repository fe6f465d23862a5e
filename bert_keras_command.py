"""The command `bert-keras`: what has to happen before the package, and so Keras, is imported."""

import os
import sys


def run():
    """Runs `bert_keras.cli.main`; for an exported folder without Keras, as if it were missing."""
    # TensorFlow, which Keras imports where it is installed, fills a terminal when it starts.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    command, source, *_ = [word for word in sys.argv[1:] if not word.startswith("-")] + [""] * 2
    if command != "convert" and os.path.isfile(os.path.join(source, "model.onnx")):
        sys.modules["keras"] = None
    from bert_keras.cli.main import run

    run()
