"""Running heads and feet: lines at the edge of a page that its neighbours repeat, allowing for page numbers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_EDGE = 2
"""The number of lines at the top and at the bottom of a page that may be running heads."""
_NEIGHBOURS = 4
"""The number of pages compared on either side; heads change by chapter, and differ on left and right pages."""
_LEAST_REPEATED = 2
_LEAST_LINES = 5
"""Of two pages, both must have as many lines for a line without a number to be a running head."""
_LONGEST_HEAD = 120
_SENTENCE_END = (".", "!", "?", ":", ";", ",")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class _Edges:
    """The keys of the lines at both edges of a page, by place, and all with which lines of other pages are compared."""

    lines: dict[int, frozenset[str]]
    all: frozenset[str]
    outer: tuple[tuple[int, str], ...]
    """The first and the last line: their places and their words."""
    counted: int


def running_heads(pages: Sequence[Sequence[str]]) -> list[frozenset[int]]:
    """The indexes of each page's lines that two of the four pages on either side repeat at either edge.

    A line repeats another if it is equal, or if its numbers grow with the pages: "Page 3 of 10" on the third page,
    "Page 4 of 10" on the fourth. The edge does not matter, because some pages are read in the order in which they were
    drawn; nor does it matter whether two lines of one page are one line of another. Of two pages, one repeat is
    enough if its numbers grow. Without such numbers it may be a refrain or a fact: only the outermost line of the
    second page goes, since the first page keeps it. If a document would be left without lines, all are kept.
    """
    edges = [_edges(page, number) for number, page in enumerate(pages)]
    found = [frozenset(_repeated(pages, edges, number)) for number in range(len(pages))]
    rest = (line for page, heads in zip(pages, found, strict=True) for at, line in enumerate(page) if at not in heads)
    return found if any(line.strip() for line in rest) else [frozenset()] * len(pages)


def _edges(page: Sequence[str], number: int) -> _Edges:
    places = [place for place, line in enumerate(page) if line.strip()]
    sides = (places[:_EDGE], places[-_EDGE:])
    lines = {place: frozenset(_keys(page[place], number)) for side in sides for place in side}
    pairs = [pair for side in sides for first, second in pairwise(side) for pair in ((first, second), (second, first))]
    joined = [_keys(f"{page[first]} {page[second]}", number) for first, second in pairs]
    return _Edges(
        lines=lines,
        all=frozenset().union(*lines.values(), *(frozenset(keys) for keys in joined)),
        outer=tuple((place, _words(page[place])) for place in (*places[:1], *places[-1:])),
        counted=len(places),
    )


def _repeated(pages: Sequence[Sequence[str]], edges: Sequence[_Edges], number: int) -> Iterator[int]:
    near = [*edges[max(0, number - _NEIGHBOURS) : number], *edges[number + 1 : number + _NEIGHBOURS + 1]]
    for place, keys in edges[number].lines.items():
        repeats = sum(not keys.isdisjoint(other.all) for other in near)
        if repeats >= _LEAST_REPEATED or (repeats and len(pages) == 2 and _is_head(number, place, pages, edges)):
            yield place


def _is_head(number: int, place: int, pages: Sequence[Sequence[str]], edges: Sequence[_Edges]) -> bool:
    """Is a line that is at the edges of both pages of a document a running head that can be left out?"""
    words = _words(pages[number][place])
    if len(words) > _LONGEST_HEAD:
        return False
    if any(all(key in page.all for page in edges) for key in edges[number].lines[place] if key != words):
        return True
    above, here = edges
    again = any(
        first[1] == words and second == (place, words) for first, second in zip(above.outer, here.outer, strict=True)
    )
    long_enough = min(page.counted for page in edges) >= _LEAST_LINES
    return number == 1 and again and long_enough and not words.endswith(_SENTENCE_END)


def _words(line: str) -> str:
    return " ".join(line.casefold().split())


def _keys(line: str, page: int) -> Iterator[str]:
    """The line, and the line with its first, its last and all numbers as distances from the page number."""
    words = _words(line)
    yield words
    numbers = list(_NUMBER.finditer(words))
    for chosen in (numbers[:1], numbers[-1:], numbers) if numbers else ():
        parts, position = [], 0
        for number in chosen:
            parts += [words[position : number.start()], f"\0{int(number[0][:9]) - page}\0"]
            position = number.end()
        yield "".join([*parts, words[position:]])
