"""Documents into passages, by length or in whole sentences.

Passages respect sections: one ends where the next section begins. A section that is too short to
stand alone, such as a heading with nothing under it, is joined with the following one (the last
one with the previous one). A passage is assigned the section that most of it belongs to, plus any section of which it
contains enough to stand alone: a citation must not name one section for a sentence of another.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from ..retrieval.passage import Passage
from ..text.sentences import sentences
from .document import BETWEEN_BLOCKS, Block, Document
from .tables import is_table

_SHORTEST = 20
"""The least characters of a section that stands alone or is named: retrieval drops shorter passages as no evidence."""
_BETWEEN_SECTIONS = "; "
_SHARED = 0.2
"""The share of a passage of whole sentences that the next one repeats."""
_PARAGRAPH_END = re.compile(r"(?=\n\n)")
_STOP = "[.!?\u2026][\"'\u201d\u2019)\\]]*"
_IDEOGRAPHIC_STOP = "[\u3002\uff01\uff1f]"
_SENTENCE_END = re.compile(rf"{_STOP}(?=\s)|{_IDEOGRAPHIC_STOP}|(?=\n)")
_SENTENCE_START = re.compile(rf"(?:{_STOP}\s+|{_IDEOGRAPHIC_STOP}\s*|\n\s*)(?=\S)")
_WORD_START = re.compile(r"\s(?=\S)")


@dataclass(frozen=True, kw_only=True)
class Chunking:
    """How documents are split: `characters` or `sentence`; at most `characters` in a passage, `overlap` of them shared.

    With `sentence`, passages share whole sentences instead.
    """

    chunker: str = "characters"
    characters: int = 512
    overlap: int = 64

    @property
    def name(self) -> str:
        """What a corpus records: one that was split differently is not continued."""
        lengths = (self.characters, self.overlap) if self.chunker == "characters" else (self.characters,)
        return "-".join([self.chunker, *map(str, lengths)])


def cut(document: Document, doc_id: str, chunking: Chunking) -> Iterator[Passage]:
    """The passages of a document, in order; the text of each is `document.text[span]`.

    The id of a passage depends on the document and the text, not on the place, so that an edit elsewhere changes no
    id; repeated texts are distinguished by a count.
    """
    text, blocks = document.text, document.blocks
    starts = list(accumulate((len(block.text) + len(BETWEEN_BLOCKS) for block in blocks), initial=0))[:-1]
    places = [(start, start + len(block.text)) for start, block in zip(starts, blocks, strict=True)]
    seen: Counter[str] = Counter()
    for run in _runs(blocks):
        tables = [places[index] for index in run if is_table(blocks[index].text)]
        start, end = places[run[0]][0], places[run[-1]][1]
        if chunking.chunker == "characters":
            found = spans(text, start, end, chunking.characters, chunking.overlap, tables=tables)
        else:
            divided = (
                [place] if place in tables else _sentences(text, *place) for place in places[run[0] : run[-1] + 1]
            )
            found = _grouped(text, list(chain.from_iterable(divided)), chunking.characters)
        for start, end in found:
            shown = text[start:end]
            content = f"{document.title}\0{shown}\0{seen[shown]}".encode("utf-8", "replace")
            seen[shown] += 1
            within = range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1))
            breaks = ((starts[index] - start, blocks[index].page, blocks[index - 1].page) for index in within[1:])
            yield Passage(
                id=f"{doc_id}-{hashlib.sha256(content).hexdigest()[:16]}",
                doc_id=doc_id,
                title=document.title,
                text=shown,
                section=_section((blocks[n].section, min(places[n][1], end) - max(starts[n], start)) for n in within),
                start_page=blocks[within[0]].page,
                end_page=blocks[within[-1]].page,
                span=(start, end),
                page_breaks=tuple((place, page) for place, page, last in breaks if page is not None and page != last),
            )


def _runs(blocks: Sequence[Block]) -> Iterator[range]:
    """Stretches of blocks that passages respect: whole sections, joined if one is too short."""
    found: list[range] = []
    first, size = 0, 0
    for index, block in enumerate(blocks):
        if index and block.section != blocks[index - 1].section and size >= _SHORTEST:
            found.append(range(first, index))
            first, size = index, 0
        size += 0 if block.text == block.section else len(block.text)  # a lone heading has no size
    if found and size < _SHORTEST:
        first = found.pop().start
    return iter([*found, range(first, len(blocks))] if blocks else [])


def _section(parts: Iterable[tuple[str | None, int]]) -> str | None:
    """The section of a passage, from the sections that it has and how many characters of each."""
    shares: Counter[str | None] = Counter()
    for section, held in parts:
        shares[section] += held
    named = [section for section, held in shares.items() if section is not None and held >= _SHORTEST]
    return _BETWEEN_SECTIONS.join(named) if len(named) > 1 else shares.most_common(1)[0][0]


# -- by length


def spans(
    text: str, start: int, end: int, most: int, overlap: int = 0, *, tables: Sequence[tuple[int, int]] = ()
) -> Iterator[tuple[int, int]]:
    """Stretches of `text[start:end]`, each at most `most` long, that together cover everything but white space.

    They end with a paragraph, a sentence or a word; a word is split only if it alone exceeds the limit. Each begins
    with the last `overlap` characters of the previous one, from the first sentence or word that begins among them.
    None begins within one of the `tables`, whose rows need their header, unless the table is too long itself.
    """
    end = start + len(text[start:end].rstrip())
    start = _skip_blanks(text, start, end)
    while start < end:
        stop = _cut_point(text, start, end, most)
        table = _table_around(stop, stop, tables)
        if table is not None and table - start >= _SHORTEST:
            stop = table
        yield start, start + len(text[start:stop].rstrip())
        if stop >= end:
            return
        following = _next_start(text, start, stop, overlap)
        start = _skip_blanks(text, stop if _table_around(following, stop, tables) is not None else following, end)


def _table_around(place: int, stop: int, tables: Sequence[tuple[int, int]]) -> int | None:
    """The start of the table before `stop` that begins before `place` and ends after it."""
    index = bisect_left(tables, (stop, 0)) - 1
    return tables[index][0] if index >= 0 and tables[index][0] < place < tables[index][1] else None


def _cut_point(text: str, start: int, end: int, most: int) -> int:
    """The end of a passage that begins at `start`, at most `most` characters later."""
    if end - start <= most:
        return end
    window = text[start : start + most + 1]
    for boundary in (_PARAGRAPH_END, _SENTENCE_END):
        ends = [match.end() for match in boundary.finditer(window, most // 2) if match.end() <= most]
        if ends and ends[-1] > 0:
            return start + ends[-1]
    return start + next((place for place in range(most, 0, -1) if window[place].isspace()), most)


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


# -- in whole sentences


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a block, excluding only white space."""
    for sentence in sentences(text[start:end]):
        if words := sentence.strip():
            first = start + sentence.index(words)
            yield first, first + len(words)
        start += len(sentence)


def _grouped(text: str, units: Sequence[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """As many consecutive sentences as fit; those in the last fifth are repeated in the next. A long one is split."""
    short = [part for start, end in units for part in spans(text, start, end, most)]
    first = 0
    while first < len(short):
        begin, last = short[first][0], first
        while last + 1 < len(short) and short[last + 1][1] - begin <= most:
            last += 1
        yield begin, short[last][1]
        following = last + 1
        if following == len(short):
            return
        while following - 1 > first and short[last][1] - short[following - 1][0] <= _SHARED * most:
            following -= 1
        if short[last + 1][1] - short[following][0] > most:
            following = last + 1
        first = following
