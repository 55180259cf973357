"""Finds the marks with which a writer cites: `[1]`, `[1, 3]`, `[1][3]`, `[2-4]`; other forms are first made so.

A bracket of numbers is a mark if it follows a blank, a punctuation mark or nothing. Directly after a
word (`Oslo[1].`) it is a mark only at the end of a clause, so `array[3]` within a sentence is not, unless the script
puts no spaces between words. A bracket is not a mark either

- if all its numbers read as years (1000 to 2199), as in "in [1912]";
- if it continues as a link, `[1](...)`, or as a lower-case word, `[2]fold`;
- if the evidence has it after the same words, as with the footnote of a copied sentence.

Doubtful brackets are kept: a reader can disregard a bracket, but
cannot know that a word was removed.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..text.normalise import as_quoted

_NUMBER = "[0-9]{1,9}"
_YEAR = "(?:1[0-9]{3}|2[01][0-9]{2})"


def _bracket(number: str) -> str:
    return rf"[\[\u3010][ ]?{number}(?:[ ]?(?:[,;]|[-\u2013])[ ]?{number})*[ ]?[\]\u3011]"


_BRACKET = rf"(?!{_bracket(_YEAR)}){_bracket(_NUMBER)}"
_ONE = re.compile(_BRACKET)
_RUN = re.compile(rf"{_BRACKET}(?:[^\S\n]{{0,3}}{_BRACKET})*")
_PART = re.compile(rf"({_NUMBER})(?:[ ]?[-\u2013][ ]?({_NUMBER}))?")
_CLAUSE_END = re.compile(
    r"[^\S\n]*(?:$|\n)|[.,;:!?)\"'\u2019\u201d\u2026\u3001\u3002\u300d\u300f\uff01\uff09\uff0c\uff1a\uff1b\uff1f]"
)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts without spaces between words, or with particles joined to them."""
_WORDS_BEFORE = re.compile(r"\S+\s+\S+\s+\S+\s*$")
_LOOK_BACK = 120
_WIDEST_RANGE = 50
_LINK = re.compile(r"\((?!\[)")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Adjacent brackets, `text[start:end]`, with the passage numbers in them, without duplicates, in order."""

    numbers: tuple[int, ...]
    start: int
    end: int


def marks(text: str, evidence: Sequence[str] = ()) -> tuple[Mark, ...]:
    """The marks of a text in order; `evidence` are the texts that its writer saw.

    >>> [mark.numbers for mark in marks("Born in Oslo [1, 3], he wrote it [sic] in [1912] [2][4].")]
    [(1, 3), (2, 4)]
    """
    sources = [as_quoted(source) for source in evidence]
    found = []
    for match in _RUN.finditer(text):
        if _cites(text, *match.span()):
            start = _behind_copied(text, *match.span(), sources)
            if start < match.end():
                found.append(Mark(numbers=_numbers(text[start : match.end()]), start=start, end=match.end()))
    return tuple(found)


_KINDS = r"(?:passages?|sources?|documents?|docs?|refs?|references?)"
_LIST = rf"{_NUMBER}(?:\s?(?:,|;|and|&|[-\u2013])\s?{_NUMBER})*"
_OTHER_FORMS = re.compile(
    rf"[\[\u3010](?:\^|{_KINDS}\s*[#:]?\s*(?:n=)?\"?)(?P<named>{_LIST})\"?[\]\u3011]"
    rf"|[\[\u3010](?P<dagger>{_NUMBER})[\u2020:|][^\[\]\u3010\u3011]{{0,80}}[\]\u3011]"
    rf"|\((?:(?:see|cf\.?)\s+)?{_KINDS}\s*[#:]?\s*(?P<round>{_LIST})\)"
    rf"|(?<=\s)\((?P<bare>{_LIST})\)(?=\s*(?:[.,;:!?\u3002]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_ACCORDING = re.compile(
    rf"(?P<start>^|(?<=[.!?]\s)|\n)(?:according to|as stated in|in|from|per)\s+(?:[\[(]?{_KINDS}\s*[#:]?\s*[\[(]?|\[)"
    rf"(?P<numbers>{_LIST})[\])]?,\s*(?P<first>\w)(?P<rest>[^\n]*?)(?P<end>[.!?](?=\s|$)|$)",
    re.IGNORECASE | re.MULTILINE,
)


def with_plain_marks(text: str, passages: int, evidence: Sequence[str] = ()) -> str:
    """The text with every form of citation written as `[1]`, if its numbers are those of passages.

    >>> with_plain_marks("It delivers 40 litres (passage 1). According to passage 2, it leaks.", 2)
    'It delivers 40 litres [1]. It leaks [2].'
    """
    sources = [as_quoted(source) for source in evidence]

    def plain(match: re.Match[str]) -> str:
        listed = next(found for found in match.groups() if found)
        is_bare = match["bare"] is not None
        if is_bare and (_read_as_year(listed) or _is_copied(text, *match.span(), sources)):
            return match[0]
        return _as_mark(listed, passages) or match[0]

    def moved(match: re.Match[str]) -> str:
        mark = _as_mark(match["numbers"], passages)
        said = f"{match['first'].upper()}{match['rest'].rstrip()}"
        return f"{match['start']}{said} {mark}{match['end']}" if mark else match[0]

    return _OTHER_FORMS.sub(plain, _ACCORDING.sub(moved, text))


def _as_mark(listed: str, passages: int) -> str:
    """The mark for a list of numbers; empty if one of them is that of no passage."""
    numbers = _numbers(re.sub(r"\s?(?:and|&)\s?", ",", listed))
    return f"[{', '.join(map(str, numbers))}]" if all(1 <= number <= passages for number in numbers) else ""


def _read_as_year(listed: str) -> bool:
    return re.fullmatch(_YEAR, listed) is not None


def _behind_copied(text: str, start: int, end: int, sources: Sequence[str]) -> int:
    """The start of the first bracket that was not copied: a footnote may adjoin the writer's own mark."""
    for bracket in _ONE.finditer(text, start, end):
        if not _is_copied(text, *bracket.span(), sources):
            return bracket.start()
    return end


def _numbers(brackets: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last in _PART.findall(brackets):
        low, high = int(first), int(last or first)
        numbers.extend(range(low, min(high, low + _WIDEST_RANGE) + 1) if low <= high else (low, high))
    return tuple(dict.fromkeys(numbers))


def _cites(text: str, start: int, end: int) -> bool:
    if _LINK.match(text, end):
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    if _in_word(before) and not _UNSPACED.match(before):
        return _CLAUSE_END.match(text, end) is not None
    return not (after.islower() or after.isdigit() or after == "_") or before in {".", "!", "?"}


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_copied(text: str, start: int, end: int, sources: Sequence[str]) -> bool:
    """Does the evidence have the bracket after the same three words, or within a word after the same letters?"""
    before = text[max(0, start - _LOOK_BACK) : start] if sources else ""
    if _in_word(before[-1:]):
        words = before.split()[-1]
    else:
        three = _WORDS_BEFORE.search(before)
        words = three.group() if three else ""
    wanted = as_quoted(words + text[start:end])
    return bool(words) and any(wanted in source for source in sources)


_BLANKS = " \t\r\u00a0\u202f"


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without the given stretches and the white space that they would leave behind.

    Stretches are (start, end), sorted and disjoint. The blanks before a stretch are removed with it, or those after it
    at the beginning of a line; a line that becomes empty is removed.

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
