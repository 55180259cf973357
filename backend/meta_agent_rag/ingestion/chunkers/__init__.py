"""Chunkers, one file each; a file that exports `CHUNKER` is found by itself."""

from collections.abc import Iterable, Mapping
from functools import cache

from ... import discovery
from ...discovery import exported
from ...errors import UnknownNameError
from .chunker import Chunker, Chunking, ChunkingOptions

__all__ = ["Chunker", "Chunking", "ChunkingOptions", "by_name", "discover_chunkers", "prepared"]


@cache
def discover_chunkers() -> Mapping[str, Chunker]:
    """Every chunker of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "CHUNKER", Chunker))


def by_name(chunkers: Iterable[Chunker]) -> Mapping[str, Chunker]:
    """An immutable mapping from names to chunkers; a name that comes twice raises `DuplicateNameError`."""
    return discovery.by_name(chunkers, "chunkers")


def prepared(options: ChunkingOptions) -> Chunking:
    """The chunker that `options` name, with its parameters. Raises `UnknownNameError`, `SettingsError`."""
    known = discover_chunkers()
    if options.chunker not in known:
        raise UnknownNameError("chunker", options.chunker, list(known))
    return known[options.chunker].prepare(options)
