"""Chunkers, one file each; a file that exports `CHUNKER` is found by itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from ... import discovery
from ...discovery import exported
from ...errors import UnknownNameError
from ...retrieval.passage import Passage
from ..document import Document

__all__ = ["Chunker", "Chunking", "ChunkingOptions", "by_name", "discover_chunkers", "prepared"]

Cut: TypeAlias = Callable[[Document, str], Iterator[Passage]]
"""(document, document id) to its passages, in their order; the text of each is `document.text[span]`."""


@dataclass(frozen=True, kw_only=True)
class ChunkingOptions:
    """What a chunker may want to know, as it is handed to another process.

    `encoder_folder` holds the encoder's tokenizer (`None`: words are counted), `passage_prefix` is what
    the encoder puts before a passage, `token_limit` what it reads at most.
    """

    chunker: str = "characters"
    characters: int = 512
    overlap: int = 64
    encoder_folder: str | None = None
    passage_prefix: str = ""
    token_limit: int = 512


@dataclass(frozen=True, kw_only=True)
class Chunking:
    """A chunker with its parameters, which are part of its name: `characters-512-64`."""

    name: str
    cut: Cut


@dataclass(frozen=True, kw_only=True)
class Chunker:
    """A way to cut documents. `prepare` raises `SettingsError` for parameters that cannot be."""

    name: str
    prepare: Callable[[ChunkingOptions], Chunking]


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
