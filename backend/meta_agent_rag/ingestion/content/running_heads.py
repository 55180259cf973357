"""Running heads and feet: lines at the edge of a page that its neighbours repeat, allowing for page numbers."""

import re
from collections.abc import Iterator, Sequence

_EDGE = 2
"""The number of lines at the top and at the bottom of a page that may be running heads."""
_NEIGHBOURS = 4
"""The number of pages compared on either side; heads change by chapter, and differ on left and right pages."""
_LEAST_REPEATED = 2
_NUMBER = re.compile(r"\d+")


def running_heads(pages: Sequence[Sequence[str]]) -> list[frozenset[int]]:
    """The indexes of each page's lines that two of the four pages on either side repeat.

    A line repeats another at the same edge if it is equal, or if its numbers grow with the pages: "Page 3 of 10" on
    the third page, "Page 4 of 10" on the fourth. If a document would be left without lines, all are kept.
    """
    edges = [[_edge(page, number, top=top) for top in (True, False)] for number, page in enumerate(pages)]
    found = [
        frozenset(place for side in (0, 1) for place in _repeated(edges, number, side)) for number in range(len(pages))
    ]
    rest = (line for page, heads in zip(pages, found, strict=True) for at, line in enumerate(page) if at not in heads)
    return found if any(line.strip() for line in rest) else [frozenset()] * len(pages)


def _edge(page: Sequence[str], number: int, *, top: bool) -> dict[int, frozenset[str]]:
    places = [place for place, line in enumerate(page) if line.strip()]
    chosen = places[:_EDGE] if top else places[-_EDGE:]
    return {place: frozenset(_keys(page[place], number)) for place in chosen}


def _repeated(edges: Sequence[Sequence[dict[int, frozenset[str]]]], number: int, side: int) -> Iterator[int]:
    near = [*edges[max(0, number - _NEIGHBOURS) : number], *edges[number + 1 : number + _NEIGHBOURS + 1]]
    for place, keys in edges[number][side].items():
        repeats = sum(any(keys & other for other in page[side].values()) for page in near)
        if repeats >= _LEAST_REPEATED:
            yield place


def _keys(line: str, page: int) -> Iterator[str]:
    """The line, and the line with its first, its last and all numbers as distances from the page number."""
    words = " ".join(line.casefold().split())
    yield words
    numbers = list(_NUMBER.finditer(words))
    for chosen in (numbers[:1], numbers[-1:], numbers) if numbers else ():
        parts, position = [], 0
        for number in chosen:
            parts += [words[position : number.start()], f"\0{int(number[0][:9]) - page}\0"]
            position = number.end()
        yield "".join([*parts, words[position:]])
