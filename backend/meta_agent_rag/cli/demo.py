"""`marag demo`: the loop in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from .command import Assignments, Debug, reporting


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


@reporting
def demo(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 picks a free one and prints it.")] = 7860,
    corpus: Annotated[str, typer.Option(help="The corpus to search; `sample` is built on first use.")] = "sample",
    data_file: Annotated[
        list[Path] | None,
        typer.Option(help="An official file of HotpotQA, 2WikiMultiHopQA or MuSiQue to choose questions from."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Offer a data set (hotpotqa, 2wikimultihopqa, musique) from the Hugging Face hub; fetched when picked."
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder of benchmark runs to browse.")] = Path("RESULTS"),
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Watch the loop question and repair its answers, in a browser."""
    from ..retrieval.corpus.corpus import require_corpus
    from ..settings import Settings

    settings = Settings.load(set_ or ())
    require_corpus(settings.marag_data_dir, corpus)
    from ..demo.running import launch
    from ..demo.workbench import open_workbench

    files, datasets = data_file or (), dataset or ()
    launch(
        lambda: open_workbench(settings, corpus=corpus, data_files=files, datasets=datasets, runs_dir=runs),
        host=host,
        port=port,
    )
