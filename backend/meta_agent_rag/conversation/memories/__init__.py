"""Memories, one file each; a file that exports `MEMORY` is found by itself."""

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

from ...discovery import exported
from ...errors import DuplicateNameError, UnknownNameError
from .memory import Limits, Memory, Share

__all__ = ["Limits", "Memory", "Share", "by_name", "discover_memories", "memory_named"]


@cache
def discover_memories() -> Mapping[str, Memory]:
    """Every memory of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "MEMORY", Memory))


def by_name(memories: Iterable[Memory]) -> Mapping[str, Memory]:
    """An immutable mapping from names to memories; a name that comes twice raises `DuplicateNameError`."""
    found: dict[str, Memory] = {}
    for memory in memories:
        if memory.name in found:
            raise DuplicateNameError(f"Two memories are called {memory.name!r}; rename one of them.")
        found[memory.name] = memory
    return MappingProxyType(found)


def memory_named(name: str) -> Memory:
    """The memory of that name (MEMORY). Raises `UnknownNameError`."""
    known = discover_memories()
    if name not in known:
        raise UnknownNameError("memory", name, list(known))
    return known[name]
