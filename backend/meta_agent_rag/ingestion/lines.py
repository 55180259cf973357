"""The lines of PDF pages: their type, running heads, headings, and the paragraphs and code that they form."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from .tables import row_text
from .text import flowed

_EDGE, _NEIGHBOURS = 2, 4
"""The lines at the top and bottom of a page that may be running heads, and the pages compared on either side."""
_LARGER, _LONGEST_HEADING, _MOST_HEADINGS = 1.15, 120, 0.3
"""A heading is larger than the body by this factor, and has at most so many characters; if more than this share of a
document is in such type, it is a poster."""
_NO_HEADING = re.compile(r"[.,;:]$|@|://|\.{3}|^[a-z]|^[\u2022\u2013*-]\s")
_BOLD = re.compile(r"bold|black|heavy|demi|cmbx", re.I)
_CODE = re.compile(r"courier|mono|consol|menlo|typewriter|cmtt|inconsolata", re.I)
_LEADER = re.compile(r"(?:\.\s?){3,}\s*[\divxlc]+\s*$", re.I)
_NUMBER = re.compile(r"\d+")
_ENDS = (".", "!", "?", ":", '"', "\u201d", ")", "\u3002", "\uff01", "\uff1f")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_GLYPH = re.compile(r"\(cid:\d+\)")
_DOUBLED = re.compile(r"(?:(\S)\1)+")
_SHORT_LINE, _LEAST_DOUBLED, _LEAST_ROWS = 0.75, 6, 3
_LETTER = 0.6
"""The width of a letter of a typewriter face, in heights of the type."""
_GAP = 2.0
"""The width of a gap between cells, in heights of the type."""


@dataclass(frozen=True, kw_only=True)
class Letters:
    """A piece of text in one font; `left` is where it begins, in points."""

    text: str
    size: float
    font: str
    left: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text with the size of its letters (0: unknown). `cells` are its parts between wide gaps."""

    text: str
    size: float = 0.0
    bold: bool = False
    code: bool = False
    left: float = 0.0
    cells: tuple[tuple[float, str], ...] = ()


def line_of(pieces: Sequence[Letters], text: str | None = None) -> Line:
    """The line that pieces form, without glyphs that stand for no character and without doubled letters."""
    sizes: Counter[float] = Counter()
    bold = code = 0
    for piece in pieces:
        count = len(piece.text.strip())
        sizes[round(piece.size, 1)] += count
        bold += count if _BOLD.search(piece.font) else 0
        code += count if _CODE.search(piece.font) else 0
    total = sizes.total()
    words = "".join(piece.text for piece in pieces) if text is None else text
    return Line(
        text=_undoubled(_GLYPH.sub("", words.translate(_LIGATURES))),
        size=sizes.most_common(1)[0][0] if total else 0.0,
        bold=total > 0 and bold >= 0.9 * total,
        code=total > 0 and code >= 0.9 * total,
        left=min((piece.left for piece in pieces if piece.text.strip()), default=0.0),
        cells=tuple(_cells(pieces)),
    )


def _undoubled(text: str) -> str:
    """`EENNDD OOFF` printed twice for weight, as `END OF`."""
    words = text.split(" ")
    doubled = [word for word in words if _DOUBLED.fullmatch(word)]
    if not any(len(word) >= _LEAST_DOUBLED and len(set(word)) > 1 for word in doubled):
        return text
    return " ".join(word[::2] if word in doubled else word for word in words)


def _cells(pieces: Sequence[Letters]) -> Iterator[tuple[float, str]]:
    """The parts of a line between wide gaps, each with its left edge."""
    begun: list[Letters] = []
    for piece in pieces:
        if not piece.text.strip():
            continue
        end = max((one.left + _LETTER * one.size * len(one.text.strip()) for one in begun), default=piece.left)
        if begun and piece.left - end > _GAP * piece.size:
            yield begun[0].left, " ".join(one.text.strip() for one in begun)
            begun = []
        begun.append(piece)
    if begun:
        yield begun[0].left, " ".join(one.text.strip() for one in begun)


def running_heads(pages: Sequence[Sequence[str]]) -> list[set[int]]:
    """The places of each page's lines that two of the four pages on either side repeat at either edge.

    A line repeats another if it is equal, or if its numbers grow with the pages, as in "Page 3 of 10", "Page 4 of 10";
    then one repeat is enough in a file of two pages. If a document would be left without lines, all are kept.
    """
    keys = [_edge_keys(page, number) for number, page in enumerate(pages)]
    found = []
    for number, own in enumerate(keys):
        near = [
            set().union(*page.values())
            for page in (*keys[max(0, number - _NEIGHBOURS) : number], *keys[number + 1 : number + _NEIGHBOURS + 1])
        ]
        found.append({place for place, names in own.items() if _repeats(names, near)})
    left = any(
        line.strip()
        for page, heads in zip(pages, found, strict=True)
        for at, line in enumerate(page)
        if at not in heads
    )
    return found if left else [set() for _ in pages]


def _repeats(names: set[str], near: Sequence[set[str]]) -> bool:
    repeats = sum(not names.isdisjoint(page) for page in near)
    return repeats >= 2 or (len(near) == 1 and any("\0" in name for name in names & near[0]))


def _edge_keys(page: Sequence[str], number: int) -> dict[int, set[str]]:
    """The lines at both edges: as they are, and with their first, last and all numbers as distances from the page's."""
    places = [place for place, line in enumerate(page) if line.strip()]
    keys: dict[int, set[str]] = {}
    for place in {*places[:_EDGE], *places[-_EDGE:]}:
        words = " ".join(page[place].casefold().split())
        numbers = list(_NUMBER.finditer(words))
        keys[place] = {words}
        for chosen in (numbers[:1], numbers[-1:], numbers) if numbers else ():
            told, position = "", 0
            for match in chosen:
                told += f"{words[position : match.start()]}\0{int(match[0][:9]) - number}\0"
                position = match.end()
            keys[place].add(told + words[position:])
    return keys


class Headings:
    """Recognises headings by the type of a document's body text."""

    def __init__(self, lines: Iterable[Line]) -> None:
        sizes: Counter[float] = Counter()
        bold = 0
        for line in lines:
            sizes[line.size] += len(line.text)
            bold += len(line.text) * line.bold
        self._body = sizes.most_common(1)[0][0] if sizes else 0.0
        larger = sum(count for size, count in sizes.items() if size >= _LARGER * self._body)
        self._by_size = larger < sizes.total() * _MOST_HEADINGS
        self._by_weight = 2 * bold < sizes.total() * _MOST_HEADINGS

    def split(self, lines: Sequence[Line]) -> Iterator[tuple[bool, list[Line]]]:
        """Runs of lines in order: (True, the lines of one heading) or (False, lines of text)."""
        text: list[Line] = []
        runs = [(kind, list(run)) for kind, run in groupby(lines, self._kind)]
        for place, (kind, run) in enumerate(runs):
            following = runs[place + 1][1][0].text if place + 1 < len(runs) else ""
            if kind is not None and self._is_heading(run, kind[0], text, following):
                if text:
                    yield False, text
                yield True, run
                text = []
            else:
                text += run
        if text:
            yield False, text

    def _kind(self, line: Line) -> tuple[float, bool] | None:
        """The type of a line that stands out, `None` for other lines."""
        larger = self._by_size and line.size >= _LARGER * self._body
        heavier = self._by_weight and line.bold and line.size >= self._body
        return (line.size, line.bold) if line.text.strip() and self._body and (larger or heavier) else None

    def _is_heading(self, run: Sequence[Line], size: float, before: Sequence[Line], following: str) -> bool:
        text = " ".join(line.text.strip() for line in run)
        short = len(run) <= 3 and len(text) <= _LONGEST_HEADING
        if not short or _NO_HEADING.search(text) or sum(map(str.isalpha, text)) < 3:
            return False
        begins = not before or before[-1].text.rstrip().endswith(_ENDS)
        is_body = len(following.strip()) >= 25 or following.rstrip().endswith(_ENDS)
        return size >= _LARGER * self._body or (begins and is_body and not following.strip()[:1].islower())


def texts_of(lines: Sequence[Line]) -> Iterator[str]:
    """Paragraphs, code and rows of cells, in order. Lines of a table of contents are left out."""
    kept = [line for line in lines if not _LEADER.search(line.text)]
    for is_code, run in groupby(kept, key=lambda line: line.code):
        if is_code:
            yield _code(list(run))
        else:
            yield from _paragraphs(list(run))


def _code(lines: Sequence[Line]) -> str:
    """Lines of a program, indented as they stand on the page."""
    left = min(line.left for line in lines)
    return "\n".join(
        " " * (0 if not line.size else round((line.left - left) / (_LETTER * line.size))) + line.text.strip()
        for line in lines
    )


def _paragraphs(lines: Sequence[Line]) -> Iterator[str]:
    """Splits at blank lines, after a sentence that leaves its last line short, and around rows of cells."""
    width = max((len(line.text.strip()) for line in lines), default=0)
    paragraph: list[str] = []
    place = 0
    while place < len(lines):
        rows = _rows(lines[place:])
        text = "" if rows else lines[place].text.strip()
        if text:
            paragraph.append(text)
        ends = not text or (text.endswith((".", "!", "?", ":")) and len(text) < _SHORT_LINE * width)
        if ends and paragraph:
            yield flowed(_HYPHENATED.sub("", "\n".join(paragraph)))
            paragraph = []
        if rows:
            yield "\n".join(rows)
        place += max(len(rows), 1)
    if paragraph:
        yield flowed(_HYPHENATED.sub("", "\n".join(paragraph)))


def _rows(lines: Sequence[Line]) -> list[str]:
    """The rows of a table without rules with which the lines begin: three or more whose cells share left edges.

    All but the first must have a figure, so that columns of running text are none.
    """
    columns = [left for left, _ in lines[0].cells]
    rows: list[list[str]] = []
    for line in lines if len(columns) > 1 else ():
        cells = {_nearest(columns, left): text for left, text in line.cells}
        near = all(abs(_nearest(columns, left) - left) <= 2 * line.size for left, _ in line.cells)
        figure = not rows or any(any(map(str.isdigit, text)) for _, text in line.cells[1:])
        if len(cells) < 2 or len(cells) != len(line.cells) or not near or not figure:
            break
        rows.append([cells.get(column, "") for column in columns])
    return [row_text(row) for row in rows] if len(rows) >= _LEAST_ROWS else []


def _nearest(columns: Sequence[float], left: float) -> float:
    """The column whose left edge is the nearest."""
    return min(columns, key=lambda column: abs(column - left))
