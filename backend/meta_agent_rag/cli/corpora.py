"""`marag corpora list|show|drop` and `marag documents list|show|drop`: what was ingested."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CorpusError, InputError
from ..wording import counted, unbroken
from .shared.command import Assignments, Json, Yes, command, confirm, group, plain, run, settings_of, show

if TYPE_CHECKING:
    from ..retrieval.corpus.catalogue import DocumentRecord
    from ..retrieval.corpus.corpus import Manifest

Name = Annotated[str, typer.Argument(metavar="NAME", help="The corpus.")]
Corpus = Annotated[str, typer.Option("--corpus", metavar="NAME", help="The corpus.")]
Document = Annotated[
    str, typer.Argument(metavar="DOCUMENT", help="Its id, title or file name, or the path of its file.")
]
_CORPORA = group("corpora", "Manage corpora.")
_DOCUMENTS = group("documents", "List, show and remove the documents of a corpus.")


@command(_CORPORA, "list")
def list_corpora(set_: Assignments = None, json_: Json = False) -> None:
    """List all corpora: documents, passages, encoder, chunker, stores."""
    from ..retrieval.corpus.corpus import list_corpora as corpora_in

    manifests = corpora_in(settings_of(set_).marag_data_dir)
    lines = [f"[bold]{plain(one.name)}[/]: {_summary(one)}" for one in manifests]
    none = "No corpora yet; create one with `marag ingest PATH... --corpus NAME`."
    show([one.model_dump(mode="json") for one in manifests], *(lines or [none]), json_=json_)


@command(_CORPORA, "show")
def show_corpus(name: Name, set_: Assignments = None, json_: Json = False) -> None:
    """Show a corpus: its documents with title, type, pages and passages, and how it was built."""
    from ..retrieval.corpus.corpus import list_corpora as corpora_in
    from ..retrieval.corpus.corpus import read_documents

    data_dir = settings_of(set_).marag_data_dir
    documents = read_documents(data_dir, name)
    manifest = next((one for one in corpora_in(data_dir) if one.name == name), None)
    if manifest is None:
        raise CorpusError(f"The corpus {name!r} was removed in the meantime; see `marag corpora list`.")
    show(
        {**manifest.model_dump(mode="json"), "documents": [asdict(document) for document in documents]},
        *map(_line, documents),
        f"[bold]{plain(name)}[/]: {_summary(manifest)}",
        f"[dim]created {manifest.created:%Y-%m-%d %H:%M} UTC[/]",
        json_=json_,
    )


@command(_CORPORA, "drop")
def drop_corpus(
    name: Name,
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Delete a corpus and its indexes. The source files are kept."""
    from ..retrieval.corpus.corpus import drop_corpus as remove
    from ..retrieval.corpus.corpus import read_documents, require_corpus

    settings = settings_of(set_)
    require_corpus(settings.marag_data_dir, name)
    if not yes:
        documents = counted(len(read_documents(settings.marag_data_dir, name)), "document")
        question = f"Remove the corpus {name!r} with {documents}?"
        confirm(f"Dropping {name!r} ({documents})", question, declined="Nothing was removed.", json_=json_)
    manifest = run(remove(settings, name))
    removed = f"Removed {name!r} with {counted(manifest.passages, 'passage')}."
    show({"dropped": manifest.model_dump(mode="json")}, plain(removed), json_=json_)


def _summary(manifest: "Manifest") -> str:
    return plain(
        f"{counted(manifest.documents, 'document')}, {counted(manifest.passages, 'passage')}; {manifest.encoder} "
        f"({manifest.dimension} dimensions), {manifest.chunker}; {manifest.stores}"
    )


def _line(document: "DocumentRecord") -> str:
    pages = f", {counted(document.pages, 'page')}" if document.pages else ""
    facts = plain(unbroken(f"{document.kind}{pages}, {counted(document.passages, 'passage')}, {document.source}"))
    return f"  {plain(document.title)} [dim]({facts})[/]"


@command(_DOCUMENTS, "list")
def list_documents(corpus: Corpus, set_: Assignments = None, json_: Json = False) -> None:
    """List the documents of a corpus: id, title, passages, source."""
    from ..retrieval.corpus.corpus import read_documents

    documents = read_documents(settings_of(set_).marag_data_dir, corpus)
    facts = {one.id: unbroken(f"{counted(one.passages, 'passage')}, {one.source}") for one in documents}
    lines = (plain(f"{one.id}  {one.title} ({facts[one.id]})") for one in documents)
    show([asdict(document) for document in documents], *lines, json_=json_)


@command(_DOCUMENTS, "show")
def show_document(document: Document, corpus: Corpus, set_: Assignments = None, json_: Json = False) -> None:
    """Show a document: title, type, pages, passages, source and the hash of its content."""
    from ..retrieval.corpus.corpus import read_documents
    from ..retrieval.corpus.naming import document_named, suggestion

    known = read_documents(settings_of(set_).marag_data_dir, corpus)
    found = _named(known, document) or document_named(known, document, begun=True)
    if found is None:
        advice = suggestion(known, document) or f"see `marag documents list --corpus {corpus}`."
        raise InputError(f"The corpus {corpus!r} has no document {document!r}; {advice}")
    facts = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in asdict(found).items()}
    lines = (plain(f"{name.replace('_', ' ')}: {value}") for name, value in facts.items() if value)
    show(asdict(found), *lines, json_=json_)


@command(_DOCUMENTS, "drop")
def drop_document(
    document: Document,
    corpus: Corpus,
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Remove a document from a corpus; its file is kept. A document that does not exist is not an error."""
    from ..retrieval.corpus.corpus import read_documents, remove_documents
    from ..retrieval.corpus.naming import suggestion

    settings = settings_of(set_)
    known = read_documents(settings.marag_data_dir, corpus)
    found = _named(known, document)
    if found is not None:
        if not yes:
            question = f"Remove {found.source!r} with {counted(found.passages, 'passage')}?"
            confirm(f"Removing {found.source!r}", question, declined="Nothing was removed.", json_=json_)
        run(remove_documents(settings, corpus, [found.id]))
    if found is None:
        meant = suggestion(known, document)
        what = f"The corpus {corpus!r} has no document {document!r}; nothing to remove{f' ({meant})' if meant else ''}."
    else:
        what = f"Removed {found.source!r} with {counted(found.passages, 'passage')}."
    show({"dropped": None if found is None else asdict(found)}, plain(what), json_=json_)


def _named(documents: "Sequence[DocumentRecord]", wanted: str) -> "DocumentRecord | None":
    """The document with this id or path, else the one with this title or file name in full."""
    from ..ingestion.sources import source_name
    from ..retrieval.corpus.naming import document_named

    names = {wanted, source_name(Path(wanted).resolve())}
    exact = (document for document in documents if names & {document.id, document.source})
    return next(exact, None) or document_named(documents, wanted)
