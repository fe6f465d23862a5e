from typing import Literal

from bert_keras._types import Path
from bert_keras.datasets.examples import Examples

def load_imdb(path: Path, split: Literal["train", "test"]) -> Examples: ...
