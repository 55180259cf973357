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

_OVERLAP, _SHORTEST = 0.2, 0.5
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
    title = f"{document.title}\n" if document.title else ""
    measure = _Measure(
        text=layout.text, title=title, count=count, limit=limit, room=max(limit - count(title), limit // 4, 1)
    )
    units: list[_Unit] = []
    sections: list[str | None] = []
    sentence = 0
    for index, block in enumerate(document.blocks):
        span = layout.block_span(index)
        whole = is_table(block.text) and measure.size(*span) <= measure.room  # its rows need their header
        for start, end in [span] if whole else _sentences(layout.text, *span):
            parts = [_Unit(*part, sentence, measure.size(*part)) for part in measure.parts(start, end)]
            units += parts
            sections += [block.section] * len(parts)
            sentence += 1
    shortest = int(limit * _SHORTEST)
    for run in runs(sections, [unit.size for unit in units], shortest):
        for group in _groups(units[run.start : run.stop], measure, shortest):
            yield layout.passage(group[0].start, group[-1].end, (group[0].sentence, group[-1].sentence))


@dataclass(frozen=True, kw_only=True)
class _Measure:
    """Counts the tokens of stretches of text; `room` is what the title leaves of the limit."""

    text: str
    title: str
    count: Count
    limit: int
    room: int

    def size(self, start: int, end: int) -> int:
        """Tokens of a stretch alone."""
        alone = self.count(self.text[start:end]) - self.count("")
        return max(alone, (end - start) // _CHARACTERS_PER_TOKEN, 1)

    def fits(self, start: int, end: int) -> bool:
        """Whether the encoder reads all of a passage with this text."""
        return self.size(start, end) <= self.room and self.count(self.title + self.text[start:end]) <= self.limit

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A sentence, in parts between words if it is longer than a passage."""
        size = self.size(start, end)
        most = end - start if size <= self.room else max((end - start) * self.room // size, 1)
        while start < end:
            stop = cut_point(self.text, start, end, most)
            while stop - start > 1 and self.size(start, stop) > self.room:
                stop = cut_point(self.text, start, end, max((stop - start) * 4 // 5, 1))
            yield start, start + len(self.text[start:stop].rstrip())
            start = stop + len(self.text[stop:end]) - len(self.text[stop:end].lstrip())


def _groups(units: Sequence[_Unit], measure: _Measure, shortest: int) -> Iterator[Sequence[_Unit]]:
    """Consecutive units, as many as fit; each group begins among the last units of the one before."""

    def fits(first: int, last: int) -> bool:
        return measure.fits(units[first].start, units[last].end)

    def size(first: int, last: int) -> int:
        return sum(unit.size for unit in units[first : last + 1])

    first = earliest = 0
    while True:
        last, held = first, units[first].size
        while last + 1 < len(units) and held + units[last + 1].size <= measure.room:
            last += 1
            held += units[last].size
        while last > first and not fits(first, last):
            last -= 1  # tokens of parts do not always add up to those of the whole
        at_end = last == len(units) - 1
        while at_end and first > earliest and size(first, last) < shortest and fits(first - 1, last):
            first -= 1  # so that the last passage is not too short
        yield units[first : last + 1]
        if at_end:
            return
        earliest, start = first + 1, last + 1
        while start - 1 > first and size(start - 1, last) <= _OVERLAP * measure.room and fits(start - 1, last + 1):
            start -= 1
        first = start


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
