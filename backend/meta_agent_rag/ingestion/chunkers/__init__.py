"""Chunkers, one file each; a file that exports `CHUNKER` is discovered automatically."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from ...discovery import by_name, exported, named
from ...retrieval.passage import Passage
from ..document import Document

__all__ = ["Chunker", "Chunking", "ChunkingOptions", "discover_chunkers", "prepared"]

Cut: TypeAlias = Callable[[Document, str], Iterator[Passage]]
"""Maps (document, document id) to its passages in order; the text of each is `document.text[span]`."""


@dataclass(frozen=True, kw_only=True)
class ChunkingOptions:
    """The options of all chunkers, in a form that can be passed to another process.

    `encoder_folder` contains the encoder's tokenizer (`None`: words are counted), `passage_prefix` is the
    encoder's prefix for passages, `token_limit` the most tokens that it reads.
    """

    chunker: str = "characters"
    characters: int = 512
    overlap: int = 64
    encoder_folder: str | None = None
    passage_prefix: str = ""
    token_limit: int = 512


@dataclass(frozen=True, kw_only=True)
class Chunking:
    """A chunker with its parameters, which are included in its name: `characters-512-64`."""

    name: str
    cut: Cut


@dataclass(frozen=True, kw_only=True)
class Chunker:
    """A way to split documents. `prepare` raises `SettingsError` for invalid parameters; `about` is for readers."""

    name: str
    prepare: Callable[[ChunkingOptions], Chunking]
    about: str = ""


@cache
def discover_chunkers() -> Mapping[str, Chunker]:
    """Every chunker of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "CHUNKER", Chunker), "chunkers")


def prepared(options: ChunkingOptions) -> Chunking:
    """The chunker named in `options`, with its parameters. Raises `UnknownNameError`, `SettingsError`."""
    return named("chunker", options.chunker, discover_chunkers()).prepare(options)
