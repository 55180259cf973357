"""`marag ingest`, `marag corpora` and `marag documents`: what questions are answered from."""

import typer

from . import corpora, documents, ingest


def register(app: typer.Typer) -> None:
    """Add the commands."""
    corpora.register(app)
    documents.register(app)
    ingest.register(app)
