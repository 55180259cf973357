"""A derivation and a vote as HTML: the chains of facts side by side, the conclusion, and a bar per route."""

from collections.abc import Mapping
from html import escape

from ...agent.derivation import Derivation, Fact, Plan
from ...agent.routes import DERIVATION, Vote
from ...agent.routes.vote import upholds
from ...retrieval.passage import Found
from ...wording import passage_name
from ..words import ballot_note, spoken


def chain(derivation: Derivation, evidence: Mapping[str, Found]) -> str:
    """Every fact with its value and its place, open ones in red with the reason, and the conclusion in code."""
    if derivation.plan is None:
        return f'<p class="m-note">No derivation; {escape(derivation.why_none)}.</p>'
    columns = "".join(
        f"<ol>{''.join(_fact(fact, evidence) for fact in derivation.facts if fact.chain == place)}</ol>"
        for place in range(len(derivation.plan.chains))
    )
    follows = _conclusion(derivation.plan, derivation)
    how = "Each fact is looked up in the passages on its own; code, not the model, combines them."
    return (
        f'<h4>Derived from single facts</h4><p class="m-note">{how}</p><div class="m-chains">{columns}</div>{follows}'
    )


def _fact(fact: Fact, evidence: Mapping[str, Found]) -> str:
    asked = f"<span>{escape(fact.asked)}</span><strong>{escape(fact.value or '?')}</strong>"
    if fact.open is not None:
        return f'<li class="m-open-fact">{asked}<small>open: {escape(fact.open)}</small></li>'
    if fact.from_memory:
        return f"<li>{asked}<small>from the model's memory</small></li>"
    if fact.passage_id is None:
        return f"<li>{asked}</li>"
    found = evidence.get(fact.passage_id)
    name = found.passage.title if found is not None else passage_name(fact.passage_id)
    quoted = f": “{escape(fact.sentence)}”" if fact.sentence else ""
    return f"<li>{asked}<small>{escape(name)}{quoted}</small></li>"


def _conclusion(plan: Plan, derivation: Derivation) -> str:
    if not derivation.answer:
        return '<p class="m-note">The facts give no answer.</p>'
    return (
        f'<div class="m-conclusion"><span class="m-stage">{escape(spoken(plan.operator))}</span>'
        f"{escape(derivation.because)}<strong>{escape(derivation.answer)}</strong></div>"
    )


def bars(vote: Vote, derivation: Derivation | None = None) -> str:
    """A bar per route: the support of its answer among all routes; those of the elected answer are highlighted."""
    shown = "".join(
        f'<div class="m-ballot{" m-elected" if upholds(vote, ballot.short_answer) else ""}"><div class="m-gauge-head">'
        f"<span>{escape(spoken(ballot.route))}: {escape(ballot.short_answer or 'nothing')}</span><span>{support:.0%}"
        f'</span></div><div class="m-track"><span class="m-fill" style="width:{support:.0%}"></span></div>'
        f"{_noted(ballot_note(ballot, support, derivation))}</div>"
        for ballot, support in zip(vote.ballots, vote.support, strict=True)
    )
    how = (
        "Each bar is the support of an answer among all routes. Answers that share words support each other, so the "
        "bars need not sum to 100 %."
    )
    head = f'<h4>The vote elects {escape(vote.elected or "nothing")}</h4><p class="m-note">{how}</p>'
    return f"{head}{shown}{_outvoted(vote)}"


def _noted(note: str) -> str:
    return f"<small>{escape(note)}</small>" if note else ""


def _outvoted(vote: Vote) -> str:
    derived = next((one.short_answer for one in vote.ballots if one.route == DERIVATION and one.short_answer), None)
    if derived is None or upholds(vote, derived):
        return ""
    return f'<p class="m-note">The other routes outvoted the answer of the derivation: {escape(derived)}.</p>'
