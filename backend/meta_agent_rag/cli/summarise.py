"""`marag summarise`: whole documents in points, each with its source."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..wording import printable
from .shared.command import (
    Assignments,
    Debug,
    Json,
    complain,
    confirm,
    console,
    print_json,
    reporting,
    run,
    say,
    settings_of,
)
from .shared.display import spending

if TYPE_CHECKING:
    from ..chat.summaries import Estimate

Corpus = Annotated[str, typer.Option("--corpus", metavar="NAME", help="The corpus.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("summarise")(summarise)


@reporting
def summarise(
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="By title or file; `all` for every one.")
    ] = None,
    corpus: Corpus = "sample",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before calls that cost money.")
    ] = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Summarise whole documents with one call per section; every point cites the sentence that supports it."""
    from ..asking import summarise as summary_of
    from ..chat.summaries import prepared, summary_text
    from ..llm.opening import open_language_model
    from ..retrieval.corpus.corpus import open_catalogue

    settings = settings_of(set_)

    async def estimated() -> "Estimate":
        with open_catalogue(settings.marag_data_dir, corpus) as catalogue:
            async with open_language_model(settings) as model:
                return (await prepared(model, catalogue, documents or ())).estimate

    estimate = run(estimated())
    complain(f"{estimate}.")
    if not (yes or estimate.free):  # asked between two runs, since Ctrl+C does not interrupt a question within one
        confirm("This", "Continue?", declined="No call was made.", json_=json_)
    summary = run(
        summary_of(
            documents or (),
            corpus=corpus,
            settings=settings,
            on_section=(lambda done, of: complain(f"Section {done} of {of}")) if sys.stderr.isatty() else None,
        )
    )
    if json_:
        print_json({**asdict(summary), "totals": asdict(summary.totals)})
        return
    for line in summary_text(summary).splitlines():
        say(printable(line))
    console().print(f"\n[dim]{spending(summary.totals)}[/]")
