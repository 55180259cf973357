"""A citation, and the styles in which it can be written."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores that found a passage (see `retrieval.passage.Found`)."""

    score: float
    dense: float | None = None
    lexical: float | None = None


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A place in a document that an answer refers to.

    `page` is where the quoted stretch begins and `last_page` where it ends: of the whole passage if its page breaks are
    unknown, `None` if there are no pages. `span` is the (start, end), in characters of the document's text, of the
    quoted stretch, or of the whole passage if nothing was quoted; `None` if unknown. `snippet` occurs verbatim in
    the passage's text: 30 to 50 words around the quote, or around the sentences that share most words with
    the claim.
    """

    doc_id: str
    passage_id: str
    title: str
    page: int | None
    section: str | None
    span: tuple[int, int] | None
    snippet: str
    scores: Scores
    last_page: int | None = None

    @property
    def pages(self) -> str | None:
        """The page in the usual notation: `3`, or `3-4`."""
        if self.page is None or self.last_page in {None, self.page}:
            return None if self.page is None else str(self.page)
        return f"{self.page}-{self.last_page}"

    @property
    def name(self) -> str:
        """The document's title in one line, or its id if it has no title."""
        return " ".join(self.title.split()) or self.doc_id


@dataclass(frozen=True, kw_only=True)
class Style:
    """A way to write a citation into an answer.

    `written` returns the text that replaces the mark; identical citations are written once.
    """

    name: str
    description: str
    written: Callable[[Citation], str]
