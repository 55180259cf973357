"""Headings of a PDF: short lines that are larger than the body text, or bold among lines that are not."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

_LARGER = 1.15
_MOST_LINES = 3
_LONGEST = 120
_MOST_WORDS = 15
_LEAST_LETTERS = 3
_MOST_HEADINGS = 0.3
"""The share of a document's text in larger type from which this is no sign of a heading, as on a poster."""
_UNIFORM = 0.9
_LEAST_BODY_LINE = 25
_WIDEST_LETTER = 0.65
"""The width of letters on average, in heights of the type; no common typeface has wider ones."""
_GAP = 1.0
_BOLD = re.compile(r"bold|black|heavy|demi|-medi|cmbx", re.I)
_NO_HEADING = re.compile(r"[.,;:]$|@|://|\.{3}|^[a-z]|^[\u2022\u2013*-]\s")
_ENDS = (".", "!", "?", ":", '"', "\u201d", ")")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text with the size of its letters in points (0: unknown), and whether they are bold.

    `spaced`: it has a gap that is wider than one between words, as between cells.
    """

    text: str
    size: float = 0.0
    bold: bool = False
    spaced: bool = False


@dataclass(frozen=True, kw_only=True)
class Letters:
    """A piece of text in one font; `left` is where it begins, if known."""

    text: str
    size: float
    font: str
    left: float | None = None


def lines_of(pieces: Iterable[Letters]) -> Iterator[Line]:
    """The lines of consecutive pieces of text; they end at line breaks."""
    line: list[Letters] = []
    for piece in pieces:
        first, *others = piece.text.split("\n")
        line.append(replace(piece, text=first))
        for text in others:
            yield line_in("".join(part.text for part in line), line)
            line = [replace(piece, text=text, left=None)]
    yield line_in("".join(part.text for part in line), line)


def line_in(text: str, pieces: Iterable[Letters]) -> Line:
    """A line in the type of its pieces: the smallest if there are several sizes."""
    pieces = list(pieces)
    sizes: Counter[float] = Counter()
    bold = 0
    for piece in pieces:
        count = sum(map(str.isalnum, piece.text))
        sizes[round(piece.size, 1)] += count
        bold += count if _BOLD.search(piece.font) else 0
    total = sizes.total()
    size, held = sizes.most_common(1)[0] if total else (0.0, 0)
    return Line(
        text=text,
        size=size if held >= _UNIFORM * total else min(+sizes),
        bold=total > 0 and bold >= _UNIFORM * total,
        spaced=_is_spaced(pieces),
    )


def _is_spaced(pieces: Iterable[Letters]) -> bool:
    """Does a piece begin farther to the right than the one before can reach?"""
    placed = [(piece.left, piece) for piece in pieces if piece.left is not None and piece.text.strip()]
    return any(
        second - first > (_GAP + _WIDEST_LETTER * len(piece.text.strip())) * piece.size
        for (first, piece), (second, _) in pairwise(placed)
    )


class Headings:
    """Recognises headings by the type of a document's body text."""

    def __init__(self, lines: Iterable[Line]) -> None:
        sizes: Counter[float] = Counter()
        bold: Counter[float] = Counter()
        for line in lines:
            sizes[line.size] += len(line.text)
            bold[line.size] += len(line.text) * line.bold
        self._body = sizes.most_common(1)[0][0] if sizes else 0.0
        self._by_weight = 2 * bold.total() < sizes.total() * _MOST_HEADINGS
        larger = sum(count for size, count in sizes.items() if size >= _LARGER * self._body)
        self._by_size = larger < sizes.total() * _MOST_HEADINGS

    def split(self, lines: Sequence[Line]) -> Iterator[tuple[bool, list[str]]]:
        """Runs of lines in order: (True, the lines of one heading) or (False, lines of text)."""
        runs = [(kind, list(run)) for kind, run in groupby(lines, self._kind)]
        text: list[str] = []
        for place, (kind, run) in enumerate(runs):
            if kind and self._is_heading(runs, place):
                if text:
                    yield False, text
                yield True, [line.text for line in run]
                text = []
            else:
                text += [line.text for line in run]
        if text:
            yield False, text

    def _kind(self, line: Line) -> tuple[float, bool] | None:
        """The type of a line that stands out, `None` for other lines."""
        if not line.text.strip() or not self._body:
            return None
        larger = self._by_size and line.size >= _LARGER * self._body
        heavier = self._by_weight and line.bold and line.size >= self._body
        return (line.size, line.bold) if larger or heavier else None

    def _is_heading(self, runs: Sequence[tuple[tuple[float, bool] | None, list[Line]]], place: int) -> bool:
        kind, run = runs[place]
        text = " ".join(line.text.strip() for line in run)
        short = len(run) <= _MOST_LINES and len(text) <= _LONGEST and len(text.split()) <= _MOST_WORDS
        if not short or _NO_HEADING.search(text) or sum(map(str.isalpha, text)) < _LEAST_LETTERS:
            return False
        if kind is not None and kind[0] >= _LARGER * self._body:
            return True
        before = runs[place - 1] if place else None
        after = runs[place + 1] if place + 1 < len(runs) else None
        begins = before is None or before[0] is not None or before[1][-1].text.rstrip().endswith(_ENDS)
        return begins and after is not None and (after[0] is not None or _is_body(after[1]))


def _is_body(lines: Sequence[Line]) -> bool:
    """Do these lines begin like a paragraph, rather than like the values of a table?"""
    first = next((line.text.strip() for line in lines if line.text.strip()), "")
    return not first[:1].islower() and (len(first) >= _LEAST_BODY_LINE or first.endswith(_ENDS))
