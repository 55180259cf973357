"""Resolves names given by a user to documents of a corpus."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from ...errors import InputError
from .catalogue import DocumentRecord

_MENTION = re.compile(r"(?<!\S)@(?:\"([^\"\n]+)\"|([\w][\w.-]*))")
_PARTS = re.compile(r"[^\w]+|_")
_MOST_LISTED = 8


def documents_named(documents: Sequence[DocumentRecord], names: Iterable[str]) -> frozenset[str]:
    """The ids of the documents with these titles or file names, ignoring case, in full or as an unambiguous prefix.

    Raises `InputError` for a name that matches no document, or several, and for a text instead of a list.
    """
    require_list(names)
    return frozenset(_one(documents, name).id for name in names)


def require_list(names: Iterable[str]) -> None:
    """Raise `InputError` for a single text, whose letters would be taken for names."""
    if isinstance(names, str):
        raise InputError(f"Give a list of documents, [{names!r}], not a text.")


def addressed(message: str, documents: Sequence[DocumentRecord]) -> tuple[str, frozenset[str]]:
    """A message without its `@name`s and `@"longer names"`, and the ids of the documents that they name.

    Addresses such as `a@b.example` are left unchanged. Raises the errors of `documents_named`.
    """
    names = mentions(message)
    if not names:
        if message.strip() == "@":
            raise InputError("Write a document's name after @, as in @handbook, and then the question.")
        return message, frozenset()
    return " ".join(without_mentions(message).split()), documents_named(documents, names)


def without_mentions(message: str) -> str:
    """A message without its `@name`s, whether or not documents have these names."""
    return _MENTION.sub(" ", message)


def mentions(message: str) -> list[str]:
    """The names after @ in a message, in order, without quotation marks."""
    return [quoted or plain.rstrip(".") for quoted, plain in _MENTION.findall(message)]


def _one(documents: Sequence[DocumentRecord], name: str) -> DocumentRecord:
    wanted = _plain(name)
    known = [(document, set(_names(document))) for document in documents]
    whole = [document for document, names in known if wanted in names]
    begun = [document for document, names in known if wanted and any(own.startswith(wanted) for own in names)]
    found = whole or begun
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"Several documents are named {name!r}: {_listed(found)}; give more of the name.")
    raise InputError(f"No document is named {name!r}; choose from: {_listed(documents)}.")


def _names(document: DocumentRecord) -> Iterator[str]:
    file = PurePath(document.source)
    yield from (_plain(name) for name in (document.title, file.name, file.name.partition(".")[0]))


def _plain(name: str) -> str:
    return " ".join(_PARTS.sub(" ", name.casefold()).split())


def _listed(documents: Sequence[DocumentRecord]) -> str:
    shown = [PurePath(document.source).name or document.title for document in documents[:_MOST_LISTED]]
    more = len(documents) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
