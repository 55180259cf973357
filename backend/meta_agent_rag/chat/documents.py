"""Recognises requests for the documents themselves, by patterns over whole messages, and lists the documents."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import yaml

from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import mentions, without_mentions
from ..text.names import words
from ..wording import counted, printable
from .words import without_courtesy

Request: TypeAlias = Literal["list", "overview"]

LISTED = 40
"""The most documents in a list."""

_LONGEST = 25
_EVERY, _THIS = "every", "this"
"""The names of groups, with a number each."""
_ENTRY = re.compile(r"[A-Z]{3,}")
_PART = re.compile(r"[A-Z]{3,}|[()|?*]|[^()|?*A-Z]+")


@dataclass(frozen=True, kw_only=True)
class DocumentRequest:
    """A request for a list of documents, or for what whole ones say: those named with @, or `every` one.

    `reply` introduces a list in the language of the request.
    """

    kind: Request
    reply: str
    every: bool = False


@dataclass(frozen=True, kw_only=True)
class _Language:
    """The patterns of one language, over a message without blanks."""

    reply: str
    list: tuple[re.Pattern[str], ...]
    overview: tuple[re.Pattern[str], ...]


def read_document_request(message: str) -> DocumentRequest | None:
    """What a message wants of the documents themselves; `None` if it asks about their content, or anything else.

    >>> read_document_request("Which documents do you have?").kind, read_document_request("Summarise @tides").kind
    ('list', 'overview')
    >>> read_document_request("Which documents did the court request?")
    """
    said, named = words(without_mentions(message)), bool(mentions(message))
    if not said or len(said) > _LONGEST:
        return None
    for part in dict.fromkeys((tuple(said), tuple(said[without_courtesy(said)]))):
        text = "".join(part)
        for language in _languages():
            if any(pattern.fullmatch(text) for pattern in language.list):
                return DocumentRequest(kind="list", reply=language.reply)
            for found in filter(None, (pattern.fullmatch(text) for pattern in language.overview)):
                which = {name for name, part in found.groupdict().items() if part}
                if which or named or not found.groupdict():
                    every = any(name.startswith(_EVERY) for name in which)
                    return DocumentRequest(kind="overview", reply=language.reply, every=every)
    return None


def document_lines(documents: Sequence[DocumentRecord]) -> list[str]:
    """One line for each document, with title, file, type and size; at most `LISTED`, and how many more there are."""
    lines = [f"- {printable(' '.join(one.title.split()))} ({_facts(one)})" for one in documents[:LISTED]]
    more = len(documents) - LISTED
    return [*lines, f"and {more} more"] if more > 0 else lines


def _facts(document: DocumentRecord) -> str:
    pages = f", {counted(document.pages, 'page')}" if document.pages else ""
    file = printable(PurePath(document.source).name)
    return f"{file}; {document.kind}{pages}, {counted(document.passages, 'passage')}"


@cache
def _languages() -> Sequence[_Language]:
    rows = yaml.safe_load(files(__package__).joinpath("document_requests.yaml").read_text(encoding="utf-8"))
    return [_language(row) for row in rows.values()]


def _language(row: Mapping[str, Any]) -> _Language:
    return _Language(
        reply=row["reply"],
        list=tuple(_pattern(text, row) for text in row["list"]),
        overview=tuple(_pattern(text, row) for text in row["overview"]),
    )


def _pattern(text: str, row: Mapping[str, Any]) -> re.Pattern[str]:
    """A pattern of the file, over words in the form of `text.names.words` without blanks."""
    numbers = itertools.count()
    return re.compile(_built(text, row, numbers))


def _built(text: str, row: Mapping[str, Any], numbers: Iterator[int]) -> str:
    built = ""
    for part in _PART.findall(text):
        if part == "WHICH":
            this, every = (_built(row[name], row, numbers) for name in ("this", "all"))
            built += f"(?:(?P<{_THIS}{next(numbers)}>{this})|(?P<{_EVERY}{next(numbers)}>{every}))"
        elif _ENTRY.fullmatch(part):
            built += f"(?:{_built(row[part.lower()], row, numbers)})"
        elif part in "()|?*":
            built += "(?:" if part == "(" else part
        else:
            built += "".join(words(part))
    return built
