"""Memories, one file each; a file that exports `MEMORY` is found by itself."""

from collections.abc import Iterable, Mapping
from functools import cache

from ... import discovery
from ...discovery import exported
from ...errors import UnknownNameError
from .memory import Limits, Memory, Share

__all__ = ["Limits", "Memory", "Share", "by_name", "discover_memories", "memory_named"]


@cache
def discover_memories() -> Mapping[str, Memory]:
    """Every memory of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "MEMORY", Memory))


def by_name(memories: Iterable[Memory]) -> Mapping[str, Memory]:
    """An immutable mapping from names to memories; a name that comes twice raises `DuplicateNameError`."""
    return discovery.by_name(memories, "memories")


def memory_named(name: str) -> Memory:
    """The memory of that name (MEMORY). Raises `UnknownNameError`."""
    known = discover_memories()
    if name not in known:
        raise UnknownNameError("memory", name, list(known))
    return known[name]
