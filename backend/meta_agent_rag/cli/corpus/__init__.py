"""`marag ingest`, `corpora`, `documents`, `summarise` and `compare`: corpora and their documents."""

import typer

from . import corpora, documents, ingest, overviews


def register(app: typer.Typer) -> None:
    """Add the commands."""
    corpora.register(app)
    documents.register(app)
    ingest.register(app)
    overviews.register(app)
