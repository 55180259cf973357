"""The unit of evidence: a passage, and a passage found by a search."""

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..datasets import Paragraph


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a document, small enough to read and to cite.

    Pages count from 1 and sentences from 0; `span` is the (start, end) in characters of the
    document's text. They are `None` if the source does not have them. `page_breaks` are the places in `text` at
    which another page begins, with its number: none if the text is on one page, or if they are unknown.
    """

    id: str
    doc_id: str
    title: str
    text: str
    section: str | None = None
    start_page: int | None = None
    end_page: int | None = None
    start_sentence: int | None = None
    end_sentence: int | None = None
    span: tuple[int, int] | None = None
    page_breaks: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, title: str, text: str) -> "Passage":
        """The passage of a paragraph; equal title and text always give the same passage."""
        identity = passage_id(title, text)
        return cls(id=identity, doc_id=identity, title=title, text=text)

    def searchable(self) -> str:
        """Title and text as they are indexed: the title often contains the words that the text lacks."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    def pages(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and last page of `text[start:end]`; those of the whole passage if its page breaks are unknown.

        >>> over = Passage(id="1", doc_id="1", title="", text="One. Two.", start_page=2, page_breaks=((5, 3),))
        >>> over.pages(0, 4), over.pages(5, 9), over.pages(0, 9)
        ((2, 2), (3, 3), (2, 3))
        """
        if self.start_page is None:
            return None
        if not self.page_breaks:
            return self.start_page, self.end_page or self.start_page
        numbers = (self.start_page, *(page for _, page in self.page_breaks))
        places = [place for place, _ in self.page_breaks]
        return numbers[bisect_right(places, start)], numbers[bisect_right(places, max(start, end - 1))]


def to_record(passage: Passage) -> str:
    """The passage as one line of ASCII JSON, in which even a NUL or a lone surrogate is harmless."""
    return json.dumps(asdict(passage), separators=(",", ":"))


@lru_cache(maxsize=4096)
def from_record(record: str) -> Passage:
    """The passage that `to_record` wrote; cached, because many searches return the same ones."""
    fields = json.loads(record)
    if fields["span"] is not None:
        fields["span"] = tuple(fields["span"])
    return Passage(**{**fields, "page_breaks": tuple(map(tuple, fields["page_breaks"]))})


@dataclass(frozen=True, kw_only=True)
class Found:
    """A passage with the scores that found it.

    `score` orders a result (the store's own, or the fused one); `dense` is the cosine in -1..1 and
    `lexical` the BM25 score, `None` if that side did not return the passage. `via` is the id of the
    passage that led to this one, if a link across hops did. `suspect` holds the names of the
    injection patterns found in its text, if it was marked rather than dropped.
    """

    passage: Passage
    score: float
    dense: float | None = None
    lexical: float | None = None
    via: str | None = None
    suspect: tuple[str, ...] = ()


def passages_of(paragraphs: "Iterable[Paragraph]") -> tuple[Passage, ...]:
    """The passages of a data set's paragraphs, without duplicates, in order of first appearance."""
    passages = (Passage.of(paragraph.title, paragraph.text) for paragraph in paragraphs)
    return tuple({passage.id: passage for passage in passages}.values())


def passage_id(title: str, text: str) -> str:
    """A readable id that depends on content alone, so that identical paragraphs are one passage."""
    slug = "-".join(re.findall(r"[^\W_]+", title.lower()))[:48] or "untitled"
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
    return f"{slug}-{digest[:12]}"
