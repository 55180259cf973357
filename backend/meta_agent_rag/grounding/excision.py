"""Takes stretches out of a text and closes the gaps."""

from collections.abc import Iterable

_BLANKS = " \t\r\u00a0\u202f"


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without the given stretches, and without the white space that they would leave behind.

    Stretches are (start, end), sorted and disjoint. The blanks before one go with it, at the beginning of a
    line those after it, and a line of which nothing else is left goes as a whole.

    >>> without("He left [9]. She stayed [8] there.", [(8, 11), (24, 27)])
    'He left. She stayed there.'
    """
    kept = ""
    position = 0
    for start, end in spans:
        kept += text[position:start]
        position = end
        rest = _blanks_end(text, end)
        at_line_start = not kept.rstrip(_BLANKS) or kept.rstrip(_BLANKS).endswith("\n")
        at_line_end = rest == len(text) or text[rest] == "\n"
        if at_line_start and at_line_end:
            kept, position = kept.rstrip(), rest
        elif at_line_start:
            position = rest
        else:
            kept, position = kept.rstrip(_BLANKS), rest if at_line_end else end
        if not kept:
            position += len(text[position:]) - len(text[position:].lstrip())
    return kept + text[position:]


def _blanks_end(text: str, start: int) -> int:
    while start < len(text) and text[start] in _BLANKS:
        start += 1
    return start
