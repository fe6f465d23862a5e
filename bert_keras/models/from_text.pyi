from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bert_keras.models.model import BuiltModel

class TextAnswer(NamedTuple):
    output: str
    labels: Sequence[str | int] | None
    num_texts: tuple[int, ...]

def check(
    model: BuiltModel, format: str, input_signature: Any, options: dict[str, Any]
) -> None: ...
def write(model: BuiltModel, path: str, verbose: bool | None = None) -> None: ...
def program_of(model: BuiltModel) -> Callable[..., dict[str, Any]]: ...
