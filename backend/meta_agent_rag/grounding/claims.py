"""Splits an answer into its claims."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..text.sentences import sentences
from .marks import Mark, marks, without

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
    return tuple(claim for start, end in _spans(answer, found) if (claim := _claim(answer, start, end, found)))


def _claim(answer: str, start: int, end: int, found: Sequence[Mark]) -> Claim | None:
    own = [mark for mark in found if start <= mark.start < end]
    bare = without(answer[start:end], [(mark.start - start, mark.end - start) for mark in own])
    text = _LIST_SIGN.sub("", bare, count=1).strip() if _LIST_SIGN.match(bare) else bare.strip()
    cited = tuple(dict.fromkeys(number for mark in own for number in mark.numbers))
    if not _STATES.search(text):
        return None
    states = cited or _FIGURE_OR_NAME.search(text)
    if text.startswith("#") or text.endswith("?") or (text.endswith(":") and not states):
        return None
    return Claim(text=text, marks=cited, span=(start, end))


def _spans(answer: str, found: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    """Spans of sentences, including the marks that follow them; white space around them is excluded."""
    starts = _starts(answer, found)
    for start, end in zip(starts, [*starts[1:], len(answer)], strict=True):
        sentence = answer[start:end]
        if sentence.strip():
            yield start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())


def _starts(answer: str, found: Sequence[Mark]) -> list[int]:
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
        if not _is_list_sign(answer[starts[-1] : start]) or new_line:
            starts.append(max(start, starts[-1]))
        position += len(sentence)
    return starts


def _is_list_sign(text: str) -> bool:
    return _LIST_SIGN.fullmatch(f"{text} ") is not None
