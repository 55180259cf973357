"""What a chunker file exports."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ...retrieval.passage import Passage
from ..document import Document

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
