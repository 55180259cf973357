"""Finds the marks with which a writer cites, `[1]`, `[1, 3]`, `[1][3]`, `[2-4]`, and the claims that carry them.

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
from itertools import pairwise

from ..text.normalise import as_quoted
from ..text.sentences import sentences

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
_WORDS_BEFORE = re.compile(r"\S*\w$|\S+\s+\S+\s+\S+\s*(?<!\w)$")
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
        if not _cites(text, *match.span()):
            continue
        # a copied footnote may adjoin the writer's own mark
        own = (one.start() for one in _ONE.finditer(text, *match.span()) if not _is_copied(text, *one.span(), sources))
        if (start := next(own, None)) is not None:
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
        if match["bare"] and (re.fullmatch(_YEAR, listed) or _is_copied(text, *match.span(), sources)):
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
    if (before.isalnum() or before == "_") and not _UNSPACED.match(before):
        return _CLAUSE_END.match(text, end) is not None
    return not (after.islower() or after.isdigit() or after == "_") or before in {".", "!", "?"}


def _is_copied(text: str, start: int, end: int, sources: Sequence[str]) -> bool:
    """Whether the evidence has the bracket after the same three words, or within a word after the same letters."""
    words = _WORDS_BEFORE.search(text[max(0, start - _LOOK_BACK) : start]) if sources else None
    return words is not None and any(as_quoted(words[0] + text[start:end]) in source for source in sources)


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
        rest = len(text) - len(text[end:].lstrip(_BLANKS))
        at_line_start = kept.rstrip(_BLANKS)[-1:] in {"", "\n"}
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


_LIST_SIGN = re.compile(r"\s*(?:[-*\u2022+]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+")
_STATES = re.compile(r"\w")
_FIGURE_OR_NAME = re.compile(r"\d|\s[A-Z\u00c0-\u00de]")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of an answer that states something.

    `text` excludes its marks and list sign; `marks` are the numbers of the passages that it cites, without
    duplicates; `span` is its (start, end) in the answer, marks and list sign included.
    """

    text: str
    marks: tuple[int, ...]
    span: tuple[int, int]


def claims(answer: str, evidence: Sequence[str] = ()) -> tuple[Claim, ...]:
    """The claims of an answer in order; `evidence` are the texts that the writer saw (see `marks`).

    A mark belongs to the sentence that it follows, even after the full stop. Headings (`#`), questions, and
    sentences that introduce a list (`:`) without a mark, a number or a name are not claims.

    >>> [(claim.text, claim.marks) for claim in claims("Ada wrote it [2]. Then she left. [1, 3]")]
    [('Ada wrote it.', (2,)), ('Then she left.', (1, 3))]
    """
    found = marks(answer, evidence)
    starts = _starts(answer, found)
    stated = []
    for before, after in pairwise([*starts, len(answer)]):
        start = after - len(answer[before:after].lstrip())
        end = start + len(answer[start:after].rstrip())
        own = [mark for mark in found if start <= mark.start < end]
        bare = without(answer[start:end], [(mark.start - start, mark.end - start) for mark in own])
        sign = _LIST_SIGN.match(bare)
        text = bare[sign.end() if sign else 0 :].strip()
        cited = tuple(dict.fromkeys(number for mark in own for number in mark.numbers))
        introduces = text.endswith(":") and not (cited or _FIGURE_OR_NAME.search(text))
        if _STATES.search(text) and not (introduces or text.startswith("#") or text.endswith("?")):
            stated.append(Claim(text=text, marks=cited, span=(start, end)))
    return tuple(stated)


def _starts(answer: str, found: Sequence[Mark]) -> list[int]:
    """Where the sentences of an answer begin, each behind the marks that belong to the one before."""
    starts = [0]
    position = 0
    following = list(reversed(found))
    for sentence in sentences(answer):
        start = position + len(sentence) - len(sentence.lstrip())
        new_line = "\n" in answer[len(answer[:position].rstrip()) : start]
        while following and following[-1].end <= start:
            following.pop()
        if following and following[-1].start <= start and not new_line:
            start = following[-1].end
        if not _LIST_SIGN.fullmatch(f"{answer[starts[-1] : start]} ") or new_line:
            starts.append(max(start, starts[-1]))
        position += len(sentence)
    return starts
