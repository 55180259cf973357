"""`marag serve`: the loop behind HTTP."""

from typing import Annotated

import typer

from .command import Assignments, Debug, reporting


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


@reporting
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one, which the log names.")] = 8000,
    corpus: Annotated[
        list[str] | None, typer.Option(help="A corpus to answer from, any number of times; default: `sample`.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; more than one with Qdrant, Elasticsearch and Redis alone.")
    ] = 1,
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Serve answers over HTTP to clients that have a key (`marag keys create`), within a deadline."""
    from ..retrieval.corpus.corpus import require_corpus
    from ..settings import Settings

    settings, corpora = Settings.load(set_ or ()), corpus or ["sample"]
    for name in corpora:
        require_corpus(settings.marag_data_dir, name)
    from ..service.running import serve as serve_until_stopped

    serve_until_stopped(settings, corpora, host=host, port=port, workers=workers)
