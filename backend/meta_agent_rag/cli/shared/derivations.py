"""How commands show a derivation and a vote: a line per fact, what follows, and a bar per route."""

from typing import TYPE_CHECKING, Any

from .command import plain

if TYPE_CHECKING:
    from ...agent.derivation import Derivation, Fact
    from ...agent.routes import Vote

_BAR = 20


def show_derivation(screen: Any, derivation: "Derivation") -> None:
    """The chain of facts with their values and passages, open ones in red, and what follows from them."""
    if derivation.plan is None:
        screen.print(f"  derivation: dropped, as {plain(derivation.dropped)}")
        return
    screen.print(f"  derivation: [cyan]{plain(derivation.plan.operator)}[/]")
    for fact in derivation.facts:
        screen.print(f"    {_fact(fact)}")
    if derivation.answer:
        screen.print(f"    [bold]{plain(derivation.because)}[/] -> {plain(derivation.answer)}")


def _fact(fact: "Fact") -> str:
    value = plain(fact.value or "?")
    if fact.open is not None:
        return f"{plain(fact.asked)} [red]{value}[/] (open: {plain(fact.open)})"
    source = "from memory" if fact.from_memory else plain(fact.passage_id or "")
    return f"{plain(fact.asked)} [green]{value}[/] ({source})"


def show_vote(screen: Any, vote: "Vote") -> None:
    """The elected answer, and each route's answer with its share of the support."""
    screen.print(f"  vote: {plain(vote.elected or '(nothing)')} with {vote.share:.0%}")
    for ballot, support in zip(vote.ballots, vote.support, strict=True):
        bar = "█" * round(_BAR * support)
        screen.print(f"    {ballot.route:<16} {bar:<{_BAR}} {plain(ballot.short_answer or '(nothing)')}")
