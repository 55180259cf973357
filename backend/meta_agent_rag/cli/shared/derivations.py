"""Displays a derivation and a vote: a line per fact, the conclusion, and a bar per route."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...wording import passage_name
from .command import plain

if TYPE_CHECKING:
    from ...agent.derivation import Derivation, Fact
    from ...agent.routes import Vote

_BAR = 20


def show_derivation(screen: Any, derivation: "Derivation") -> None:
    """The chain of facts with their values and passages, open ones in red, and the conclusion."""
    if derivation.plan is None:
        screen.print(f"  derivation: none, {plain(derivation.why_none)}")
        return
    screen.print(f"  derivation: [cyan]{plain(derivation.plan.operator)}[/]")
    for line in derivation_lines(derivation):
        screen.print(line)


def derivation_lines(derivation: "Derivation") -> Iterator[str]:
    """A line of markup for each fact, then one for the conclusion."""
    for fact in derivation.facts:
        yield f"    {_fact(fact)}"
    if derivation.answer:
        ends = derivation.because.endswith(derivation.answer)
        yield f"    [bold]{plain(derivation.because)}[/]{'' if ends else f' -> {plain(derivation.answer)}'}"


def _fact(fact: "Fact") -> str:
    value = plain(fact.value or "?")
    if fact.open is not None:
        return f"{plain(fact.asked)} [red]{value}[/] (open: {plain(fact.open)})"
    source = "from memory" if fact.from_memory else plain(passage_name(fact.passage_id or ""))
    return f"{plain(fact.asked)} [green]{value}[/] ({source})"


def show_vote(screen: Any, vote: "Vote", derivation: "Derivation | None") -> None:
    """The elected answer, and each route's answer with its support."""
    for line in vote_lines(vote, derivation):
        screen.print(line)


def vote_lines(vote: "Vote", derivation: "Derivation | None") -> Iterator[str]:
    """A line of markup for the elected answer, then a bar for each route."""
    from ...demo.words import ballot_note, spoken

    yield f"  vote: {plain(vote.elected or '(nothing)')} wins with a support of {vote.share:.0%}"
    for ballot, support in zip(vote.ballots, vote.support, strict=True):
        bar = "█" * round(_BAR * support)
        route = spoken(ballot.route)
        note = ballot_note(ballot, support, derivation)
        said = f"{plain(ballot.short_answer or '(nothing)')}{f' [dim]({note})[/]' if note else ''}"
        yield f"    {route:<16} {bar:<{_BAR}} {support:>4.0%} {said}"
