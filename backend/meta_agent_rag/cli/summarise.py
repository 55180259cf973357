"""`marag summarise`: a whole document in points, each with its source."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..wording import FREE, counted, printable
from .shared.command import Assignments, Json, command, complain, confirm, console, print_json, run, say, settings_of
from .shared.display import spending

if TYPE_CHECKING:
    from ..chat.summaries import Work

T = TypeVar("T")
Corpus = Annotated[str, typer.Option("--corpus", metavar="NAME", help="The corpus.")]


@command()
def summarise(
    document: Annotated[str, typer.Argument(help="Its title or file; needed if there are several documents.")] = "",
    corpus: Corpus = "sample",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before calls that cost money.")
    ] = False,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Summarise a whole document with one call per section; every point cites the sentence that supports it."""
    from ..chat.summaries import prepared, summary_text
    from ..llm.ledger import total
    from ..llm.opening import open_language_model
    from ..retrieval.corpus.corpus import open_catalogue

    settings = settings_of(set_)

    async def with_work(use: "Callable[[Work], Awaitable[T]]") -> "T":
        with open_catalogue(settings.marag_data_dir, corpus) as catalogue:
            async with open_language_model(settings) as model:
                return await use(prepared(model, catalogue, document))

    async def planned(work: "Work") -> tuple[int, bool]:
        return len(work.sections), work.free

    calls, free = run(with_work(planned))
    complain(f"{counted(calls, 'call')}{f', {FREE}' if free else ''}.")
    if not (yes or free):  # asked between two runs, since Ctrl+C does not interrupt a question within one
        confirm("This", "Continue?", declined="No call was made.", json_=json_)
    summary = run(with_work(lambda work: work.done()))
    totals = total(summary.calls)
    if json_:
        print_json({**asdict(summary), "totals": asdict(totals)})
        return
    for line in summary_text(summary).splitlines():
        say(printable(line))
    console().print(f"\n[dim]{spending(totals)}[/]")
