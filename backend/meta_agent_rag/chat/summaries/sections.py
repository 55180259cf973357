"""Divides a document into sections that each fit into one prompt."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ...agent.prompting import Packed, pack
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.passage import Found, Passage
from ...retrieval.screening import screen

_NO_LIMIT = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Section:
    """Neighbouring passages of a document. `heading` names their place, and is empty if unknown."""

    heading: str
    passages: tuple[Found, ...]

    @property
    def packed(self) -> Packed:
        """The passages as shown in a prompt, with each sentence marked as data."""
        return pack(self.passages, _NO_LIMIT, marked=True)


@dataclass(frozen=True, kw_only=True)
class Divided:
    """A document in sections; `left_out` counts passages that address a language model and are therefore omitted."""

    document: DocumentRecord
    sections: tuple[Section, ...]
    left_out: int


def divided(document: DocumentRecord, passages: Iterable[Passage], budget: int, *, most: int | None = None) -> Divided:
    """The sections of a document, in order, each of at most `budget` tokens (estimated) or of a single passage.

    A section ends where a heading of the document begins, once it is half full. The rest of a document with more than
    `most` sections is not read.
    """
    left_out: list[Passage] = []
    groups = islice(_groups(_kept(passages, left_out), budget), most)
    sections = tuple(Section(heading=_heading(group), passages=group) for group in groups)
    return Divided(document=document, sections=sections, left_out=len(left_out))


def _kept(passages: Iterable[Passage], left_out: list[Passage]) -> Iterator[Found]:
    """The passages that pass the screening, one by one; the others are added to `left_out`."""
    for passage in passages:
        screened = screen([Found(passage=passage, score=0.0)], drop=True, shortest=1)
        yield from screened.kept
        if not screened.kept:
            left_out.append(passage)


def _groups(passages: Iterable[Found], budget: int) -> Iterator[tuple[Found, ...]]:
    group: list[Found] = []
    used = 0
    for found in passages:
        size = pack([found], _NO_LIMIT, marked=True).packing.tokens
        new_heading = bool(group) and found.passage.section != group[-1].passage.section
        if group and (used + size > budget or (new_heading and used > budget / 2)):
            yield tuple(group)
            group, used = [], 0
        group.append(found)
        used += size
    if group:
        yield tuple(group)


def _heading(group: Sequence[Found]) -> str:
    passages = [found.passage for found in group]
    named = list(dict.fromkeys(one.section for one in passages if one.section and one.section != one.title))
    pages = [page for one in passages for page in (one.start_page, one.end_page) if page is not None]
    parts = [named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}"] if named else []
    if pages:
        first, last = min(pages), max(pages)
        parts.append(f"p. {first}" if first == last else f"pp. {first}-{last}")
    return ", ".join(parts)
