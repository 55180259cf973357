"""A citation, and what a style to write it is."""

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

    `page` is where the passage begins and `last_page` where it ends, both `None` if there are no pages: within
    a passage nobody knows which line is on which. `span` is the (start, end) in characters, within the document's
    text, of the stretch that was quoted; of the whole passage where nothing was; `None` where it is unknown.
    `snippet` stands in the passage's text to the letter: 30 to 50 words around the quote, or around the sentences
    that say most of what the claim says.
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
        """The page as a reader writes it: `3`, or `3-4`."""
        if self.page is None or self.last_page in {None, self.page}:
            return None if self.page is None else str(self.page)
        return f"{self.page}-{self.last_page}"

    @property
    def name(self) -> str:
        """The document's title in one line, or its id where it has none."""
        return " ".join(self.title.split()) or self.doc_id


@dataclass(frozen=True, kw_only=True)
class Style:
    """A way to write a citation into an answer.

    `written` makes the text that takes the mark's place; citations that it writes alike are written once.
    """

    name: str
    description: str
    written: Callable[[Citation], str]
