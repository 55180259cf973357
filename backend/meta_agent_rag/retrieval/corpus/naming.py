"""Resolves names given by a user to documents of a corpus."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePath

from ...errors import InputError
from .catalogue import DocumentRecord

_MENTION = re.compile(r"(?<!\S)@(?:[\"\u201c]([^\"\u201c\u201d\n]+)[\"\u201d]|([\w][\w.-]*))")
_PARTS = re.compile(r"[^\w]+|_")
_MOST_LISTED = 8
_MOST_MEANT = 3
_CLOSE = 0.7
"""The similarity from which a name is suggested for a misspelt one."""


def documents_named(documents: Sequence[DocumentRecord], names: Iterable[str]) -> frozenset[str]:
    """The ids of the documents with these titles or file names, ignoring case, in full or as an unambiguous prefix.

    Raises `InputError` for a name that matches no document, or several, and for a text instead of a list.
    """
    if isinstance(names, str):
        raise InputError(f"Give a list of documents, [{names!r}], not a text.")
    found = set()
    for name in names:
        one = document_named(documents, name, begun=True)
        if one is None:
            choice = suggestion(documents, name) or f"choose from: {_listed(documents)}."
            raise InputError(f"No document is named {name!r}; {choice}")
        found.add(one.id)
    return frozenset(found)


def document_named(documents: Sequence[DocumentRecord], name: str, *, begun: bool = False) -> DocumentRecord | None:
    """The document with this title or file name, ignoring case, or, with `begun`, the only one that begins so.

    Raises `InputError` if it could be several; it names their paths to those who ask for whole names, who own them.
    """
    wanted = _plain(name)
    found = [document for document in documents if wanted and wanted in _names(document)]
    if not found and begun and wanted:
        found = [document for document in documents if any(own.startswith(wanted) for own in _names(document))]
    if len(found) > 1 and begun:
        raise InputError(f"Several documents are named {name!r}: {_listed(found)}; give more of the name.")
    if len(found) > 1:
        shown = ", ".join(f"{document.source} ({document.id})" for document in found[:_MOST_LISTED])
        raise InputError(f"Several documents are named {name!r}: {shown}; give the id or the path of one of them.")
    return found[0] if found else None


def addressed(
    message: str, documents: Sequence[DocumentRecord], among: Iterable[str] = ()
) -> tuple[str, frozenset[str]]:
    """A message without its `@name`s and `@"longer names"`, and the ids of the documents that they name.

    Without any, these are the ids of the documents named in `among`, to which `@name`s are limited; empty for all.
    Addresses such as `a@b.example` are left unchanged, and so is an unquoted `@word` unlike any document's name.
    Raises the errors of `documents_named`.
    """
    allowed = documents_named(documents, among)
    names = [_name(mention) for mention in _MENTION.finditer(message) if _names_one(documents, mention)]
    if not names:
        if message.strip() == "@":
            raise InputError("Write a document's name after @, as in @handbook, and then the question.")
        return message, allowed
    known = [document for document in documents if not allowed or document.id in allowed]
    return without_mentions(message, documents), documents_named(known, names)


def without_mentions(message: str, documents: Sequence[DocumentRecord] | None = None) -> str:
    """A message without its `@name`s: those that may name one of the documents, or all if these are not given."""
    kept = _MENTION.sub(lambda found: " " if documents is None or _names_one(documents, found) else found[0], message)
    return message if kept == message else " ".join(kept.split())


def suggestion(documents: Sequence[DocumentRecord], name: str) -> str:
    """`did you mean 'a.pdf' or 'b.pdf'?` for a name that names no document; empty if none is similar."""
    wanted = _plain(name)
    known = {own: document for document in reversed(documents) for own in _names(document) if own}
    begun = [own for own in known if wanted and (own.startswith(wanted) or wanted.endswith(f" {own}"))]
    near = [*begun, *get_close_matches(wanted, known, n=_MOST_MEANT, cutoff=_CLOSE)]
    meant = dict.fromkeys(PurePath(known[own].source).name or known[own].title for own in near)
    return f"did you mean {' or '.join(map(repr, list(meant)[:_MOST_MEANT]))}?" if meant else ""


def _name(mention: re.Match[str]) -> str:
    return mention[1] or mention[2].rstrip(".")


def _names_one(documents: Sequence[DocumentRecord], mention: re.Match[str]) -> bool:
    """Whether a name is quoted, or that of a document, the beginning of one, or a misspelt one."""
    return bool(mention[1] or suggestion(documents, _name(mention)))


def _names(document: DocumentRecord) -> list[str]:
    file = PurePath(document.source)
    return [_plain(name) for name in (document.title, file.name, file.name.partition(".")[0])]


def _plain(name: str) -> str:
    return " ".join(_PARTS.sub(" ", name.casefold()).split())


def _listed(documents: Sequence[DocumentRecord]) -> str:
    shown = [PurePath(document.source).name or document.title for document in documents[:_MOST_LISTED]]
    more = len(documents) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
