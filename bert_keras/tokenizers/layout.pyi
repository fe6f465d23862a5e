from typing import Any, NamedTuple

class Layout(NamedTuple):
    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    second_segment: int
    def num_special(self, is_pair: bool = False) -> int: ...
    def of_ones(self) -> Layout: ...

def read_layout(saved: dict[str, Any] | None) -> Layout | None: ...
