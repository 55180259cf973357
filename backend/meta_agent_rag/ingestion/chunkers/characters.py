"""Passages of at most N characters, split at the end of a paragraph, a sentence or a word.

A word is split only if it alone exceeds the limit. A passage begins with the
last `overlap` characters of the previous one, from the first sentence or word that begins among them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial

from ...errors import SettingsError
from ...retrieval.passage import Passage
from ..document import Document
from ..tables import is_table
from . import Chunker, Chunking, ChunkingOptions, Layout, runs

_SHORTEST_SECTION = 20
"""The minimum number of characters: retrieval drops shorter passages as no evidence."""
_PARAGRAPH_END = re.compile(r"(?=\n\n)")
_STOP = "[.!?\u2026][\"'\u201d\u2019)\\]]*"
_IDEOGRAPHIC_STOP = "[\u3002\uff01\uff1f]"
_SENTENCE_END = re.compile(rf"{_STOP}(?=\s)|{_IDEOGRAPHIC_STOP}|(?=\n)")
_SENTENCE_START = re.compile(rf"(?:{_STOP}\s+|{_IDEOGRAPHIC_STOP}\s*|\n\s*)(?=\S)")
_WORD_START = re.compile(r"\s(?=\S)")


def cut(document: Document, doc_id: str, *, characters: int, overlap: int) -> Iterator[Passage]:
    """Split a document; takes time in proportion to its length."""
    layout = Layout(document, doc_id)
    blocks = document.blocks
    sizes = [0 if block.text == block.section else len(block.text) for block in blocks]  # a lone heading has no size
    for run in runs([block.section for block in blocks], sizes, _SHORTEST_SECTION):
        start, end = layout.block_span(run[0])[0], layout.block_span(run[-1])[1]
        tables = [layout.block_span(index) for index in run if is_table(blocks[index].text)]
        for span in spans(layout.text, start, end, characters, overlap, tables=tables):
            yield layout.passage(*span)


def spans(
    text: str, start: int, end: int, most: int, overlap: int = 0, *, tables: Sequence[tuple[int, int]] = ()
) -> Iterator[tuple[int, int]]:
    """Stretches of `text[start:end]`, each at most `most` long, that together cover everything but white space.

    None begins within one of the `tables`, whose rows need their header, unless the table is too long itself.
    """
    end = start + len(text[start:end].rstrip())
    start = _skip_blanks(text, start, end)
    while start < end:
        stop = _before_table(start, cut_point(text, start, end, most), tables)
        yield start, start + len(text[start:stop].rstrip())
        if stop >= end:
            return
        following = _next_start(text, start, stop, overlap)
        start = stop if _within(following, stop, tables) else following
        start = _skip_blanks(text, start, end)


def _before_table(start: int, stop: int, tables: Sequence[tuple[int, int]]) -> int:
    """The place to stop, moved before a table that it would divide, if enough is left before it."""
    place = bisect_left(tables, (stop, 0)) - 1
    divided = place >= 0 and tables[place][0] < stop < tables[place][1]
    return tables[place][0] if divided and tables[place][0] - start >= _SHORTEST_SECTION else stop


def _within(start: int, stop: int, tables: Sequence[tuple[int, int]]) -> bool:
    """Does a table begin before `start` and end after it?"""
    place = bisect_left(tables, (stop, 0)) - 1
    return place >= 0 and tables[place][0] < start < tables[place][1]


def cut_point(text: str, start: int, end: int, most: int) -> int:
    """The end of a passage that begins at `start`, at most `most` characters later."""
    if end - start <= most:
        return end
    window = text[start : start + most + 1]
    for boundary in (_PARAGRAPH_END, _SENTENCE_END):
        ends = [match.end() for match in boundary.finditer(window, most // 2) if match.end() <= most]
        if ends and ends[-1] > 0:
            return start + ends[-1]
    blank = next((place for place in range(most, 0, -1) if window[place].isspace()), most)
    return start + blank


def _next_start(text: str, start: int, stop: int, overlap: int) -> int:
    first = max(stop - overlap, start + 1)
    window = text[first - 1 : stop]  # the previous character decides whether a word begins at `first`
    for boundary in (_SENTENCE_START, _WORD_START):
        match = boundary.search(window)
        if match is not None and match.end() < len(window):
            return first - 1 + match.end()
    within_word = not text[stop - 1].isspace() and not text[stop].isspace()
    return first if within_word and overlap else stop


def _skip_blanks(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _prepare(options: ChunkingOptions) -> Chunking:
    if options.overlap >= options.characters:
        raise SettingsError(
            f"CHUNK_OVERLAP is {options.overlap!r}, which is not less than CHUNK_CHARACTERS ({options.characters!r}); "
            "lower it."
        )
    return Chunking(
        name=f"characters-{options.characters}-{options.overlap}",
        cut=partial(cut, characters=options.characters, overlap=options.overlap),
    )


CHUNKER = Chunker(name="characters", prepare=_prepare, about="by length")
