"""`marag ask`: one question over a corpus."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Assignments, Debug, Json, console, plain, print_json, reporting, run
from .rounds import counted, place, show_round, spending

if TYPE_CHECKING:
    from ..agent.engine import Answer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ask")(ask)


@reporting
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    corpus: Annotated[str, typer.Option(help="The corpus to search; `sample` is built on first use.")] = "sample",
    grounded: Annotated[
        bool, typer.Option("--grounded", help="Answer from the documents alone, or say NOT FOUND.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show every round: draft, signals, diagnosis, repair.")
    ] = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Answer a question over a corpus, doubting and repairing the answer where it is inadequate."""
    from ..settings import Settings

    result = run(_answer(question, corpus, grounded, Settings.load(set_ or ())))
    if json_:
        print_json(_as_json(result))
        return
    if trace:
        _show_evidence(result)
        _show_rounds(result)
    _show_answer(result)


async def _answer(question: str, corpus: str, grounded: bool, settings: Any) -> "Answer":
    from ..asking import answer

    return await answer(question, corpus=corpus, grounded=grounded, settings=settings)


def _show_answer(result: "Answer") -> None:
    screen = console()
    screen.print(f"[bold]{plain(result.short_answer)}[/]")
    if result.text != result.short_answer:
        screen.print(plain(result.text))
    packed = result.rounds[result.chosen].packing.packed_ids
    passages = {found.passage.id: found.passage for found in result.evidence}
    for number, identity in enumerate(packed, start=1):
        screen.print(f"  [dim]{plain(f'[{number}]')} {plain(place(passages[identity]))}[/]")
    rounds = counted(len(result.rounds), "round")
    screen.print(f"[dim]{rounds}, stopped: {result.stop_reason}; {spending(result.totals)}[/]")


def _show_evidence(result: "Answer") -> None:
    """What was found, by which scores and along which link; and what was dropped, and why."""
    screen = console()
    screen.print("[bold]Evidence[/]")
    titles = {found.passage.id: found.passage.title or found.passage.id for found in result.evidence}
    for found in result.evidence:
        scores = [
            f"{name} {value:.2f}"
            for name, value in (("cosine", found.dense), ("BM25", found.lexical))
            if value is not None
        ]
        link = [] if found.via is None else [f"mentioned in {titles.get(found.via, found.via)}"]
        details = "; ".join([*scores, *link])
        screen.print(f"  {plain(place(found.passage))} [dim]{plain(details)}[/]")
    for dropped in result.dropped:
        screen.print(f"  [yellow]dropped[/] {plain(dropped.passage_id)}: {plain(dropped.reason)}")


def _show_rounds(result: "Answer") -> None:
    screen = console()
    for round_ in result.rounds:
        show_round(screen, round_, chosen=round_.index == result.chosen)


def _as_json(result: "Answer") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "question": result.question,
        "answer": result.text,
        "short_answer": result.short_answer,
        "stop_reason": result.stop_reason,
        "chosen": result.chosen,
        "fired": result.fired,
        "rounds": [asdict(round_) for round_ in result.rounds],
        "evidence": [asdict(found) for found in result.evidence],
        "dropped": [asdict(dropped) for dropped in result.dropped],
        "totals": asdict(result.totals),
    }
