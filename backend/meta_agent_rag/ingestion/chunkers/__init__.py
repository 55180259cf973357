"""Chunkers, one file each; a file that exports `CHUNKER` is discovered automatically.

Passages respect sections: one ends where the next section begins. A section that is too short to
stand alone, such as a heading with nothing under it, is joined with the following one (the last
one with the previous one). A passage is assigned the section that most of it belongs to, plus any section of which it
contains enough to stand alone: a citation must not name one section for a sentence of another.
"""

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeAlias

from ...discovery import by_name, exported, named
from ...retrieval.passage import Passage
from ..document import BETWEEN_BLOCKS, Document

__all__ = ["Chunker", "Chunking", "ChunkingOptions", "Layout", "discover_chunkers", "prepared", "runs"]

_WORTH_NAMING = 20
"""The number of characters of a section from which a passage names it beside others."""
_BETWEEN_SECTIONS = "; "

Cut: TypeAlias = Callable[[Document, str], Iterator[Passage]]
"""Maps (document, document id) to its passages in order; the text of each is `document.text[span]`."""


@dataclass(frozen=True, kw_only=True)
class ChunkingOptions:
    """The options of all chunkers, in a form that can be passed to another process.

    `encoder_folder` contains the encoder's tokenizer (`None`: words are counted), `token_limit` is the most tokens of
    a passage.
    """

    chunker: str = "characters"
    characters: int = 512
    overlap: int = 64
    encoder_folder: str | None = None
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


class Layout:
    """A document's text with its blocks' places, and the passages of the document `doc_id`."""

    def __init__(self, document: Document, doc_id: str) -> None:
        self.document = document
        self.text = document.text
        self._doc_id = doc_id
        self._starts: list[int] = []
        self._seen: Counter[str] = Counter()
        position = 0
        for block in document.blocks:
            self._starts.append(position)
            position += len(block.text) + len(BETWEEN_BLOCKS)

    def block_span(self, index: int) -> tuple[int, int]:
        """(start, end) of a block in the text."""
        start = self._starts[index]
        return start, start + len(self.document.blocks[index].text)

    def passage(self, start: int, end: int, sentences: tuple[int | None, int | None] = (None, None)) -> Passage:
        """The passage `text[start:end]`. Its id depends on the document and the text, not on the place."""
        text = self.text[start:end]
        blocks = range(bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1))
        return Passage(
            id=self._id(text),
            doc_id=self._doc_id,
            title=self.document.title,
            text=text,
            section=self._section(blocks, start, end),
            start_page=self.document.blocks[blocks[0]].page,
            end_page=self.document.blocks[blocks[-1]].page,
            start_sentence=sentences[0],
            end_sentence=sentences[1],
            span=(start, end),
            page_breaks=tuple(self._page_breaks(blocks, start)),
        )

    def _page_breaks(self, blocks: range, start: int) -> Iterator[tuple[int, int]]:
        """Where another page begins, from the start of the passage, and its number."""
        for before, index in pairwise(blocks):
            page = self.document.blocks[index].page
            if page is not None and page != self.document.blocks[before].page:
                yield self._starts[index] - start, page

    def _id(self, text: str) -> str:
        """The id of a text; repeated texts are distinguished by a count, so that an edit elsewhere changes no id."""
        occurrence = self._seen[text]
        self._seen[text] += 1
        content = f"{self.document.title}\0{text}\0{occurrence}".encode("utf-8", "replace")
        return f"{self._doc_id}-{hashlib.sha256(content).hexdigest()[:16]}"

    def _section(self, blocks: range, start: int, end: int) -> str | None:
        shares: Counter[str | None] = Counter()
        for index in blocks:
            first, last = self.block_span(index)
            shares[self.document.blocks[index].section] += min(last, end) - max(first, start)
        named = [section for section, held in shares.items() if section is not None and held >= _WORTH_NAMING]
        return _BETWEEN_SECTIONS.join(named) if len(named) > 1 else shares.most_common(1)[0][0]


def runs(sections: Sequence[str | None], sizes: Sequence[int], shortest: int) -> Iterator[range]:
    """Stretches of items that passages respect: whole sections, joined if one is below `shortest`."""
    found: list[range] = []
    first, size = 0, 0
    for index, section in enumerate(sections):
        if index and section != sections[index - 1] and size >= shortest:
            found.append(range(first, index))
            first, size = index, 0
        size += sizes[index]
    if found and size < shortest:
        first = found.pop().start
    if sections:
        found.append(range(first, len(sections)))
    yield from found
