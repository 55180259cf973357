"""Passages of whole sentences, up to the length that the encoder reads, title included.

A passage contains at most `limit` tokens and, if the text allows it, at least half as many; a fifth of
it, in whole sentences, is repeated at the beginning of the next. A sentence is split only if it
is longer than a passage. Sentences count from 0 throughout the document; a table, or a part of one with its header,
counts as one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...retrieval.passage import Passage
from ...text.segmenter import segmenter
from ..document import Document
from ..tables import is_table
from ..token_counting import Count, token_counter
from . import Chunker, Chunking, ChunkingOptions
from .characters import cut_point, spans
from .layout import Layout, runs

_OVERLAP = 0.2
_SHORTEST = 0.5
_CHARACTERS_PER_TOKEN = 8
"""The most characters per token in any script; a tokenizer counts an endless "word" as one meaningless token."""
_PARAGRAPH_AT_ONCE = 5_000
"""The most characters passed to pysbd, whose time grows faster than linearly; longer than any passage."""
_DIVISION = re.compile("[.!?\u2026\u3002\uff01\uff1f\n]")
"""Without any of these pysbd finds no boundary, but takes its time."""


class _Unit(NamedTuple):
    """A sentence, or a part of one that is too long."""

    start: int
    end: int
    sentence: int
    size: int


def cut(document: Document, doc_id: str, *, count: Count, limit: int) -> Iterator[Passage]:
    """Split a document; `count` returns the number of tokens as the encoder would read them, `limit` is the maximum."""
    layout = Layout(document, doc_id)
    sizes = _Sizes(count, document.title, limit)
    units: list[_Unit] = []
    sections: list[str | None] = []
    sentence = 0
    for index, block in enumerate(document.blocks):
        span = layout.block_span(index)
        whole = is_table(block.text) and sizes.of(block.text) <= sizes.room  # its rows need their header
        for start, end in [span] if whole else _sentences(layout.text, *span):
            parts = list(sizes.parts(layout.text, start, end, sentence))
            units.extend(parts)
            sections.extend([block.section] * len(parts))
            sentence += 1
    shortest = int(limit * _SHORTEST)
    for run in runs(sections, [unit.size for unit in units], shortest):
        packing = _Packing(text=layout.text, units=units[run.start : run.stop], sizes=sizes, shortest=shortest)
        for group in packing.groups():
            yield layout.passage(group[0].start, group[-1].end, (group[0].sentence, group[-1].sentence))


class _Sizes:
    """The token counts of stretches of text, and the limit that the title leaves for them."""

    def __init__(self, count: Count, title: str, limit: int) -> None:
        self._count = count
        self._title = title
        self._around = count("")
        self.limit = limit
        self.room = max(limit - self._whole(""), limit // 4, 1)

    def of(self, text: str) -> int:
        """Tokens of `text` alone."""
        return max(self._count(text) - self._around, len(text) // _CHARACTERS_PER_TOKEN, 1)

    def fits(self, text: str) -> bool:
        """Does the encoder read all of a passage with this text?"""
        return self._whole(text) <= self.limit and self.of(text) <= self.room

    def parts(self, text: str, start: int, end: int, sentence: int) -> Iterator[_Unit]:
        """The sentence `text[start:end]`, in parts if it is longer than a passage."""
        size = self.of(text[start:end])
        if size <= self.room:
            yield _Unit(start, end, sentence, size)
            return
        usual = min(max((end - start) * self.room // size, 1), self.room * _CHARACTERS_PER_TOKEN)
        while start < end:
            stop = self._longest(text, start, end, usual)
            kept = start + len(text[start:stop].rstrip())
            yield _Unit(start, kept, sentence, self.of(text[start:kept]))
            start = stop + len(text[stop:end]) - len(text[stop:end].lstrip()) if stop < end else end

    def _longest(self, text: str, start: int, end: int, most: int) -> int:
        """The end of the part that begins at `start`: shortened until it fits, between words if there are any."""
        while most > 1:
            stop = cut_point(text, start, end, most)
            size = self.of(text[start:stop])
            if size <= self.room:
                return stop
            most = min((stop - start) * self.room * 19 // (size * 20), stop - start - 1)
        return start + 1

    def _whole(self, text: str) -> int:
        return self._count(f"{self._title}\n{text}" if self._title else text)


@dataclass(frozen=True, kw_only=True)
class _Packing:
    """Groups the units of one run; each group is as large as possible."""

    text: str
    units: Sequence[_Unit]
    sizes: _Sizes
    shortest: int

    def groups(self) -> Iterator[Sequence[_Unit]]:
        """Groups of consecutive units, each beginning among the last units of the previous one."""
        first, earliest = 0, 0
        while True:
            last = self._last(first)
            at_end = last == len(self.units) - 1
            if at_end:
                first = self._filled_up(first, last, earliest)
            yield self.units[first : last + 1]
            if at_end:
                return
            earliest, first = first + 1, self._overlapping(first, last)

    def _fits(self, first: int, last: int) -> bool:
        return self.sizes.fits(self.text[self.units[first].start : self.units[last].end])

    def _last(self, first: int) -> int:
        """The last unit that fits into a group that begins with `first`."""
        last, size = first, self.units[first].size
        while last + 1 < len(self.units) and size + self.units[last + 1].size <= self.sizes.room:
            last += 1
            size += self.units[last].size
        while last > first and not self._fits(first, last):
            last -= 1  # tokens of parts do not always add up to those of the whole
        return last

    def _overlapping(self, first: int, last: int) -> int:
        """The start of the next group: as many whole sentences back as still leave room for one more after them."""
        start, size = last + 1, 0
        while start - 1 > first:
            size += self.units[start - 1].size
            if size > _OVERLAP * self.sizes.room or not self._fits(start - 1, last + 1):
                break
            start -= 1
        return start

    def _filled_up(self, first: int, last: int, earliest: int) -> int:
        """The start of the last group, moved back so that it is not too short, but after the previous group's start."""
        size = sum(unit.size for unit in self.units[first : last + 1])
        while size < self.shortest and first > earliest and self._fits(first - 1, last):
            first -= 1
            size += self.units[first].size
        return first


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a paragraph, excluding only white space."""
    for first, last in spans(text, start, end, _PARAGRAPH_AT_ONCE):
        starts, position = [first], first
        divisible = _DIVISION.search(text, first, last) is not None
        for sentence in segmenter(char_span=False).segment(text[first:last]) if divisible else ():
            words = sentence.strip()
            found = text.find(words, position, last) if words else -1
            if found >= 0:  # if not found, pysbd altered it: it is kept with the previous sentence
                position = found + len(words)
                starts.extend([found] if found > first else [])
        for here, following in zip(starts, [*starts[1:], last], strict=True):
            yield here, here + len(text[here:following].rstrip())


def _prepare(options: ChunkingOptions) -> Chunking:
    folder = Path(options.encoder_folder) if options.encoder_folder else None
    count = token_counter(folder, options.passage_prefix)
    return Chunking(name=f"sentence-{options.token_limit}", cut=partial(cut, count=count, limit=options.token_limit))


CHUNKER = Chunker(name="sentence", prepare=_prepare, about="whole sentences, by the encoder's tokens")
