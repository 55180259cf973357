"""`marag serve`, `marag mcp`, `marag demo`: the loop behind HTTP, as a tool for assistants, and in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..extras import require
from .shared.command import Assignments, command, keep_private, run, settings_of

_RUNS = Path("RESULTS")


@command()
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
) -> None:
    """Serve answers over HTTP within a deadline, to clients with a key (`marag keys create`)."""
    require("service", "`marag serve`")
    keep_private()
    from ..retrieval.corpus.corpus import require_corpus

    settings, corpora = settings_of(set_), corpus or ["sample"]
    for name in corpora:
        require_corpus(settings.marag_data_dir, name)
    from ..service.uvicorn_server import serve as serve_until_stopped

    serve_until_stopped(settings, corpora, host=host, port=port, workers=workers)


@command()
def mcp(
    corpus: Annotated[
        list[str] | None, typer.Option(help="A corpus to look in; repeatable, default: `sample`. No other is served.")
    ] = None,
    set_: Assignments = None,
) -> None:
    """Offer `ask` and `search` as tools to an assistant (Model Context Protocol over stdio)."""
    require("mcp", "`marag mcp`")
    from ..retrieval.corpus.corpus import require_corpus
    from ..service.mcp import create_server

    settings, corpora = settings_of(set_), corpus or ["sample"]
    for name in corpora:
        require_corpus(settings.marag_data_dir, name)
    run(create_server(settings, corpora).run_stdio_async())


@command()
def demo(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 picks a free one and prints it.")] = 7860,
    corpus: Annotated[str, typer.Option(help="The corpus to search; `sample` is built on first use.")] = "sample",
    data_file: Annotated[
        list[Path] | None,
        typer.Option(help="An official file of a known data set to choose questions from."),
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder of benchmark runs to browse.")] = _RUNS,
    set_: Assignments = None,
) -> None:
    """Watch the loop check and repair its answers in a browser."""
    require("demo", "`marag demo`")
    from ..retrieval.corpus.corpus import require_corpus

    settings = settings_of(set_)
    require_corpus(settings.marag_data_dir, corpus)
    from ..demo.app import launch
    from ..demo.workbench import open_workbench

    if runs != _RUNS and not runs.is_dir():
        raise InputError(f"There is no folder {str(runs)!r}; name a folder of benchmark runs with --runs.")
    launch(
        lambda: open_workbench(settings, corpus=corpus, data_files=data_file or (), runs_dir=runs),
        host=host,
        port=port,
    )
