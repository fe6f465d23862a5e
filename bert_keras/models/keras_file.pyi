from collections.abc import Mapping

import keras

from bert_keras._types import Path

def load_model(
    path: Path, custom_objects: Mapping[str, object] | None = None, compile: bool = True
) -> keras.Model: ...
