from collections.abc import Mapping

HUGE_PAGES: str
KERNEL_GIVES: str
TRIM_THRESHOLD: int
MMAP_MAX: int
ARENA_MAX: int
FEW_CORES: int
SET_BY_USER: tuple[str, ...]

def keep_freed_memory() -> bool: ...
def would_gain_by_huge_pages(environment: Mapping[str, str]) -> bool: ...
def has_glibc() -> bool: ...
def is_set_by_user(environment: Mapping[str, str]) -> bool: ...
