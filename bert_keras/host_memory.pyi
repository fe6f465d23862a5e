from collections.abc import Mapping

TRIM_THRESHOLD: int
MMAP_MAX: int
ARENA_MAX: int
FEW_CORES: int
SET_BY_USER: tuple[str, ...]

def keep_freed_memory() -> bool: ...
def has_glibc() -> bool: ...
def is_set_by_user(environment: Mapping[str, str]) -> bool: ...
