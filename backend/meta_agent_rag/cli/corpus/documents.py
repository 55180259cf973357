"""`marag documents list|show|drop`: the documents of a corpus."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import InputError
from ...wording import counted, printable, unbroken
from ..shared.command import Assignments, Debug, Json, add_group, confirm, print_json, reporting, run, say, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...retrieval.corpus.catalogue import DocumentRecord

Corpus = Annotated[str, typer.Option("--corpus", metavar="NAME", help="The corpus.")]
Document = Annotated[
    str, typer.Argument(metavar="DOCUMENT", help="Its id, title or file name, or the path of its file.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_group(app, "documents", "List, show and remove the documents of a corpus.", list_, show, drop)


@reporting
def list_(corpus: Corpus, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """List the documents of a corpus: id, title, passages, source."""
    from ...retrieval.corpus.corpus import read_documents

    documents = read_documents(settings_of(set_).marag_data_dir, corpus)
    if json_:
        print_json([asdict(document) for document in documents])
        return
    for document in documents:
        facts = f"{counted(document.passages, 'passage')}, {document.source}"
        say(f"{printable(document.id)}  {printable(document.title)} ({printable(unbroken(facts))})")


@reporting
def show(
    document: Document, corpus: Corpus, set_: Assignments = None, json_: Json = False, debug: Debug = False
) -> None:
    """Show a document: title, type, pages, passages, source and the hash of its content."""
    from ...retrieval.corpus.corpus import read_documents
    from ...retrieval.corpus.naming import begun_with, suggestion

    known = read_documents(settings_of(set_).marag_data_dir, corpus)
    found = _named(known, document) or begun_with(known, document)
    if found is None:
        advice = suggestion(known, document) or f"see `marag documents list --corpus {corpus}`."
        raise InputError(f"The corpus {corpus!r} has no document {document!r}; {advice}")
    if json_:
        print_json(asdict(found))
        return
    for name, value in asdict(found).items():
        if value:
            say(f"{name.replace('_', ' ')}: {printable(', '.join(value) if isinstance(value, tuple) else str(value))}")


@reporting
def drop(
    document: Document,
    corpus: Corpus,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Remove a document from a corpus; its file is kept. A document that does not exist is not an error."""
    from ...retrieval.corpus.corpus import read_documents, remove_documents
    from ...retrieval.corpus.naming import suggestion

    settings = settings_of(set_)
    known = read_documents(settings.marag_data_dir, corpus)
    found = _named(known, document)
    if found is not None:
        if not yes:
            question = f"Remove {found.source!r} with {counted(found.passages, 'passage')}?"
            confirm(f"Removing {found.source!r}", question, declined="Nothing was removed.", json_=json_)
        run(remove_documents(settings, corpus, [found.id]))
    if json_:
        print_json({"dropped": None if found is None else asdict(found)})
    elif found is None:
        meant = suggestion(known, document)
        say(f"The corpus {corpus!r} has no document {document!r}; nothing to remove{f' ({meant})' if meant else ''}.")
    else:
        say(f"Removed {found.source!r} with {counted(found.passages, 'passage')}.")


def _named(documents: "Sequence[DocumentRecord]", wanted: str) -> "DocumentRecord | None":
    """The document with this id or path, else the one with this title or file name in full."""
    from pathlib import Path

    from ...ingestion.sources import source_name
    from ...retrieval.corpus.naming import document_named

    names = {wanted, source_name(Path(wanted).resolve())}
    exact = (document for document in documents if names & {document.id, document.source})
    return next(exact, None) or document_named(documents, wanted)
