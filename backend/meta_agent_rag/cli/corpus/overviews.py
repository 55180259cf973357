"""`marag summarise` and `marag compare`: summaries and comparisons of whole documents, with every point cited."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...extras import require
from ...wording import printable
from ..shared.command import (
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
from ..shared.display import spending

if TYPE_CHECKING:
    from ...chat.summaries.estimate import Estimate
    from ...chat.summaries.overview import OnSection
    from ...llm.ledger import Totals

Corpus = Annotated[str, typer.Option("--corpus", metavar="NAME", help="The corpus.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before calls that cost money.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("summarise")(summarise)
    app.command("compare")(compare)


@reporting
def summarise(
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="By title or file; `all` for every one.")
    ] = None,
    corpus: Corpus = "sample",
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Summarise whole documents with one call per section; every point cites the sentence that supports it."""
    from ...asking import summarise as summary_of
    from ...chat.summaries.writing import summary_text

    require("grounding", "`marag summarise`")
    summary = run(
        summary_of(
            documents or (),
            corpus=corpus,
            settings=settings_of(set_),
            on_estimate=_asking(yes=yes, json_=json_),
            on_section=_progress(),
        )
    )
    _show(summary, summary_text(summary), summary.totals, json_=json_)


@reporting
def compare(
    first: Annotated[str, typer.Argument(metavar="DOCUMENT", help="By title or file.")],
    second: Annotated[str, typer.Argument(metavar="DOCUMENT", help="The other one.")],
    corpus: Corpus = "sample",
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two documents: what both cover, point by point, and what only one covers."""
    from ...asking import compare as comparison_of
    from ...chat.summaries.writing import comparison_text

    require("grounding", "`marag compare`")
    comparison = run(
        comparison_of(
            first,
            second,
            corpus=corpus,
            settings=settings_of(set_),
            on_estimate=_asking(yes=yes, json_=json_),
            on_section=_progress(),
        )
    )
    _show(comparison, comparison_text(comparison), comparison.totals, json_=json_)


def _asking(*, yes: bool, json_: bool) -> Any:
    def show(estimate: "Estimate") -> None:
        complain(f"{estimate}.")
        if not (yes or estimate.free):
            confirm("This", "Continue?", declined="No call was made.", json_=json_)

    return show


def _progress() -> "OnSection | None":
    if not sys.stderr.isatty():
        return None
    return lambda done, of: complain(f"Section {done} of {of}")


def _show(result: Any, text: str, totals: "Totals", *, json_: bool) -> None:
    if json_:
        print_json({**asdict(result), "totals": asdict(totals)})
        return
    for line in text.splitlines():
        say(printable(line))
    console().print(f"\n[dim]{spending(totals)}[/]")
