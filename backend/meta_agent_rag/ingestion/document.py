"""The result of parsing a file, or the reason why it was not read."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..retrieval.passage import Passage

BETWEEN_BLOCKS = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A paragraph, heading, list item or table. `section` is the heading above it, `page` counts from 1."""

    text: str
    section: str | None = None
    page: int | None = None


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file's text as blocks.

    `aliases` are further names of the document's subject. `notes` report unreadable parts of a
    document that is otherwise fine.
    """

    title: str
    kind: str
    blocks: tuple[Block, ...] = ()
    pages: int | None = None
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All blocks, separated by blank lines: the text that spans of passages refer to."""
        return BETWEEN_BLOCKS.join(block.text for block in self.blocks)


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file that was read: its document's data and its passages. `content_hash` is the hash of the bytes read."""

    title: str
    kind: str
    content_hash: str
    passages: Collection[Passage]
    pages: int | None = None
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


RefusalKind: TypeAlias = Literal["empty", "unreadable", "encrypted", "no_text", "limit", "type"]


class Refused(Exception):  # noqa: N818 # an outcome, which is caught and reported
    """A file is rejected. `kind` classifies the reason; `reason` is a clause for the user, without a full stop."""

    def __init__(self, kind: RefusalKind, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind: RefusalKind = kind
        self.reason = reason
