"""`marag tour`: recorded answers of a 1.5B model, step by step, without a model, a key or a network."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .shared.command import Debug, plain, reporting

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..agent.state import Round
    from ..demo.runs.tour import Stop


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tour")(tour)


@reporting
def tour(
    number: Annotated[int | None, typer.Argument(help="Show this stop alone, counted from 1.", min=1)] = None,
    all_: Annotated[bool, typer.Option("--all", help="Print everything at once, without waiting for Enter.")] = False,
    debug: Debug = False,
) -> None:
    """See how the loop answers, on recorded questions, step by step. No model, key or network is needed."""
    from ..demo.runs.tour import tour as stops
    from ..errors import InputError
    from .shared.command import console

    screen, found = console(), stops()
    if number is not None and number > len(found):
        raise InputError(f"The tour has {len(found)} stops; choose one from 1 to {len(found)}.")
    waits = not all_ and sys.stdin.isatty() and sys.stdout.isatty()
    for index, stop in enumerate(found, start=1):
        if number not in {None, index}:
            continue
        for step in (_head(index, len(found), stop), *_steps(stop)):
            screen.print(step, highlight=False)
            if waits and not _goes_on(screen):
                return
    screen.print(_END, highlight=False)


_END = (
    "Ask a question of your own: [bold]marag ask[/]. See the same in a browser: [bold]marag demo[/]. "
    "Measure: [bold]marag bench runner --dataset sample --n 5[/]."
)


def _goes_on(screen: Any) -> bool:
    """Wait for Enter; false once the reader has had enough."""
    try:
        return screen.input("[dim]Enter: next step, q: quit[/] ").strip().lower() not in {"q", "quit", "exit"}
    except EOFError:
        return False


def _head(index: int, of: int, stop: "Stop") -> "RenderableType":
    from rich.console import Group
    from rich.rule import Rule

    title = Rule(f"{index} of {of}: {plain(stop.shows)}", align="left")
    return Group(title, f"[bold]Question.[/] {plain(stop.row['question'])}\n")


def _steps(stop: "Stop") -> Iterator["RenderableType"]:
    from ..demo.runs.files import rounds_of
    from ..wording import passage_name

    rounds = rounds_of(stop.row)
    names = ", ".join(plain(passage_name(id_)) for id_ in rounds[0].evidence_ids)
    yield f"[bold]Evidence.[/] {len(rounds[0].evidence_ids)} passages to start from: [dim]{names}[/]\n"
    for before, round_ in zip((None, *rounds), rounds, strict=False):
        yield from _round(round_, before)
    yield _outcome(stop, rounds)


def _round(round_: "Round", before: "Round | None") -> Iterator["RenderableType"]:
    """The stages of a round: how it came about, its draft, the facts and the vote if they are new, the diagnosis."""
    from ..demo.words import deficit, spoken
    from .shared.derivations import derivation_lines, vote_lines

    if round_.plan is not None:
        yield f"[bold]Repair: {spoken(round_.plan.deficit)}.[/] {_instruction(round_)}\n"
    quotes = "".join(f"\n    quotes “{plain(quote)}”" for quote in round_.draft.quotes)
    name = "The first draft" if round_.index == 0 else "The new draft"
    yield f"[bold]{name}[/] answers [cyan]{plain(round_.draft.short_answer or 'nothing')}[/].{quotes}\n"
    derivation = round_.derivation
    if derivation is not None and (before is None or derivation != before.derivation):
        if derivation.plan is None:
            yield f"[bold]Derivation.[/] There is none: {plain(derivation.dropped)}.\n"
        else:
            facts = "\n".join(derivation_lines(derivation))
            yield f"[bold]Derivation.[/] The question is divided into facts; each is looked up alone:\n{facts}\n"
    if round_.vote is not None and (before is None or round_.vote != before.vote):
        ballots = "\n".join(vote_lines(round_.vote))
        yield f"[bold]Vote.[/] Every route has a ballot, and similar answers support each other:\n{ballots}\n"
    if round_.diagnosis is not None:
        named = deficit(round_.diagnosis.deficit)
        yield f"[bold]Diagnosis: [yellow]{plain(named)}[/].[/] {_sentence(round_.diagnosis.rationale)}\n"


def _instruction(round_: "Round") -> str:
    plan = round_.plan
    assert plan is not None
    searched = "".join(f"\n    searched for “{plain(query)}”" for query in plan.queries)
    return f"{_sentence(plan.directive)}{searched}"


def _outcome(stop: "Stop", rounds: "tuple[Round, ...]") -> "RenderableType":
    from ..demo.runs.tour import RIGHT
    from ..demo.words import stop_reason
    from ..wording import counted

    row = stop.row
    answers = [("the loop", row)] if stop.one_pass is None else [("one pass", stop.one_pass), ("the loop", row)]
    lines = [
        f"[bold]Result.[/] {plain(stop_reason(row['stop_reason']))} The gold answer is [bold]{plain(row['gold'])}[/]."
    ]
    for name, one in answers:
        colour = "green" if one["f1"] >= RIGHT else "red"
        score = f"F1 {100 * one['f1']:.0f}, {counted(one['llm_calls'], 'call')}"
        answer = f"[{colour}]{plain(one['prediction'] or 'nothing')}[/]"
        lines.append(f"    {name:<9} {answer} [dim]({score}, {one['tokens']['completion']} tokens written)[/]")
    chance = rounds[row["chosen"]].p_correct
    if chance is not None:
        lines.append(f"    The loop states a probability of {chance:.0%} that its answer is correct.")
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    words = plain(text.strip())
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
