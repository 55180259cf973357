"""`marag corpora list|show|drop|copy`: the ingested corpora."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import CorpusError
from ...wording import counted, unbroken
from ..shared.command import (
    Assignments,
    Debug,
    Json,
    add_group,
    confirm,
    console,
    plain,
    print_json,
    reporting,
    run,
    say,
    settings_of,
)

if TYPE_CHECKING:
    from ...retrieval.corpus.catalogue import DocumentRecord
    from ...retrieval.corpus.corpus import Manifest

Name = Annotated[str, typer.Argument(metavar="NAME", help="The corpus.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_group(app, "corpora", "Manage corpora.", list_, show, drop, copy)


@reporting
def list_(set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """List all corpora: documents, passages, encoder, chunker, stores."""
    from ...retrieval.corpus.corpus import list_corpora

    manifests = list_corpora(settings_of(set_).marag_data_dir)
    if json_:
        print_json([manifest.model_dump(mode="json") for manifest in manifests])
        return
    if not manifests:
        say("No corpora yet; create one with `marag ingest PATH... --corpus NAME`.")
    for manifest in manifests:
        console().print(f"[bold]{plain(manifest.name)}[/]: {_summary(manifest)}")


@reporting
def show(name: Name, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Show a corpus: its documents with title, type, pages and passages, and how it was built."""
    from ...retrieval.corpus.corpus import read_documents

    data_dir = settings_of(set_).marag_data_dir
    documents = read_documents(data_dir, name)
    manifest = _manifest(data_dir, name)
    if json_:
        print_json({**manifest.model_dump(mode="json"), "documents": [asdict(document) for document in documents]})
        return
    for document in documents:
        console().print(_line(document))
    console().print(f"[bold]{plain(name)}[/]: {_summary(manifest)}")
    console().print(f"[dim]created {manifest.created:%Y-%m-%d %H:%M} UTC[/]")


@reporting
def drop(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Delete a corpus and its indexes. The source files are kept."""
    from ...retrieval.corpus.corpus import drop_corpus, read_documents, require_corpus

    settings = settings_of(set_)
    require_corpus(settings.marag_data_dir, name, to_build=False)
    if not yes:
        documents = counted(len(read_documents(settings.marag_data_dir, name)), "document")
        question = f"Remove the corpus {name!r} with {documents}?"
        confirm(f"Dropping {name!r} ({documents})", question, declined="Nothing was removed.", json_=json_)
    manifest = run(drop_corpus(settings, name))
    if json_:
        print_json({"dropped": manifest.model_dump(mode="json")})
    else:
        say(f"Removed {name!r} with {counted(manifest.passages, 'passage')}.")


@reporting
def copy(
    name: Name,
    to: Annotated[str, typer.Option(help="`servers` (QDRANT_URL and ELASTICSEARCH_URL) or `embedded`.")],
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Move a corpus's indexes to servers or back. Nothing is re-encoded."""
    from ...retrieval.corpus.corpus import copy_corpus

    manifest = run(copy_corpus(settings_of(set_), name, to))
    if json_:
        print_json(manifest.model_dump(mode="json"))
    else:
        say(f"{name!r} is now searched at {to!r}: {counted(manifest.passages, 'passage')}.")


def _manifest(data_dir: Path, name: str) -> "Manifest":
    from ...retrieval.corpus.corpus import list_corpora

    manifest = next((manifest for manifest in list_corpora(data_dir) if manifest.name == name), None)
    if manifest is None:
        raise CorpusError(f"The corpus {name!r} was removed in the meantime; see `marag corpora list`.")
    return manifest


def _summary(manifest: "Manifest") -> str:
    return plain(
        f"{counted(manifest.documents, 'document')}, {counted(manifest.passages, 'passage')}; {manifest.encoder} "
        f"({manifest.dimension} dimensions), {manifest.chunker}; {manifest.dense_store} + {manifest.lexical_store}"
    )


def _line(document: "DocumentRecord") -> str:
    pages = f", {counted(document.pages, 'page')}" if document.pages else ""
    facts = plain(unbroken(f"{document.kind}{pages}, {counted(document.passages, 'passage')}, {document.source}"))
    return f"  {plain(document.title)} [dim]({facts})[/]"
