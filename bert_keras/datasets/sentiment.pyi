from bert_keras._types import Path
from bert_keras.datasets.examples import Examples

SENTIMENT_SENTENCES_FILES: tuple[str, ...]

def load_sentiment_sentences(
    folder: Path, test_size: int = 600, seed: int = 0
) -> tuple[Examples, Examples]: ...
