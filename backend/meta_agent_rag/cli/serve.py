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
    port: Annotated[int, typer.Option(help="The port; 0 picks a free one, shown in the log.")] = 8000,
    corpus: Annotated[
        list[str] | None, typer.Option(help="A corpus to answer from; repeatable, default: `sample`.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; more than one requires Qdrant, Elasticsearch and Redis.")
    ] = 1,
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Serve answers over HTTP within a deadline, to clients with a key (`marag keys create`)."""
    from ..retrieval.corpus.corpus import require_corpus
    from ..settings import Settings

    settings, corpora = Settings.load(set_ or ()), corpus or ["sample"]
    for name in corpora:
        require_corpus(settings.marag_data_dir, name)
    from ..service.running import serve as serve_until_stopped

    serve_until_stopped(settings, corpora, host=host, port=port, workers=workers)
