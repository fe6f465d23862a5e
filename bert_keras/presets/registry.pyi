from typing import Any, NamedTuple

class RegisteredPreset(NamedTuple):
    description: str
    parameters: int
    places: tuple[str, ...]
    extra: str | None = None
    languages: str = "English"
    license: str = "Apache-2.0"

PRESETS: dict[str, RegisteredPreset]

class PresetTable(list[dict[str, Any]]): ...

def presets() -> PresetTable: ...
