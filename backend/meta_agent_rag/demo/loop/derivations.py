"""A derivation and a vote as HTML: the chain of facts, what follows from them, and a bar per route."""

from html import escape

from ...agent.derivation import Derivation, Fact
from ...agent.routes import Vote
from ..words import spoken


def chain(derivation: Derivation) -> str:
    """Every fact with its value, an open one marked with its reason, and the conclusion in code."""
    if derivation.plan is None:
        return f'<p class="m-note">No derivation: {escape(derivation.dropped or "the plan was dropped")}.</p>'
    facts = "".join(f"<li>{_fact(fact)}</li>" for fact in derivation.facts)
    follows = (
        f'<p class="m-short">{escape(derivation.answer)}</p><p class="m-note">{escape(derivation.because)}</p>'
        if derivation.answer
        else '<p class="m-note">The facts give no answer.</p>'
    )
    return f"<h4>Derived from facts: {escape(spoken(derivation.plan.operator))}</h4><ol>{facts}</ol>{follows}"


def _fact(fact: Fact) -> str:
    value = f"{escape(fact.asked)} <strong>{escape(fact.value or '?')}</strong>"
    if fact.open is not None:
        return f'{value} <span class="m-warn">open: {escape(fact.open)}</span>'
    return f'{value} <span class="m-via">from memory</span>' if fact.from_memory else value


def bars(vote: Vote) -> str:
    """A bar per route: the share of the vote that supports its answer."""
    shown = "".join(
        f'<div class="m-gauge-head"><span>{escape(spoken(ballot.route))}: {escape(ballot.short_answer or "nothing")}'
        f'</span><span>{support:.0%}</span></div><div class="m-track"><span class="m-fill" style="width:{support:.0%}">'
        "</span></div>"
        for ballot, support in zip(vote.ballots, vote.support, strict=True)
    )
    return f"<h4>The vote elects {escape(vote.elected or 'nothing')}</h4>{shown}"
