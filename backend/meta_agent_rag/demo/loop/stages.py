"""The stages of the loop as HTML cards: pure functions from events to their display."""

from collections.abc import Mapping, Sequence
from html import escape

from ...agent.state import NO_DEFICIT, Diagnosis, Draft, Packing, RepairPlan, Round
from ...grounding.quotes import is_verbatim
from ...retrieval.passage import Found
from ...retrieval.screening import Dropped
from ...settings import Settings
from ...wording import counted
from ..marking import difference, with_citations, with_quotes
from ..words import ANSWER_MODES, ERROR_TYPES, at_work, deficit, repair, spoken
from .gauge import monitoring
from .walk import Sight


def stages(sight: Sight, settings: Settings) -> str:
    """Every stage so far as cards, the running one last."""
    evidence = sight.evidence
    cards = [retrieval(_first_evidence(sight), sight.state.get("dropped", ()))] if evidence else []
    for round_ in sight.rounds:
        before = sight.rounds[round_.index - 1] if round_.index else None
        own = round_cards(round_, before, evidence, settings, known=_known_before(sight, round_.index))
        cards += of_round(round_.index, own)
    cards += of_round(len(sight.rounds), _under_way(sight, settings))
    return f'<div class="m-stages">{slider(len(sight.rounds))}{"".join(cards)}</div>' if cards else ""


def of_round(index: int, cards: Sequence[str]) -> list[str]:
    """Cards that the slider hides if it is at an earlier round."""
    return [f'<div class="m-round" data-round="{index}">{one}</div>' for one in cards]


def slider(rounds: int) -> str:
    """A slider over the rounds, set to the last one; empty for one round. The page's script hides later rounds."""
    if rounds < 2:
        return ""
    last = rounds - 1
    return (
        '<label class="m-rounds">Rounds shown'
        f'<input type="range" min="0" max="{last}" value="{last}" step="1" aria-label="Rounds shown">'
        f"<output>up to repair {last}</output></label>"
    )


def round_cards(
    round_: Round, before: Round | None, evidence: Mapping[str, Found], settings: Settings, *, known: Sequence[str] = ()
) -> list[str]:
    """The cards of a complete round; `known` are the ids of the evidence before it."""
    new = [evidence[id_] for id_ in round_.evidence_ids if id_ not in known and id_ in evidence]
    cards = [planning(round_.plan), remediation(round_.plan, new, evidence)] if round_.plan is not None else []
    cards.append(
        cognition(round_.draft, round_.index, round_.packing, evidence, None if before is None else before.draft)
    )
    if round_.signals is not None:
        cards.append(monitoring(round_, settings, evidence, before))
    if round_.diagnosis is not None:
        cards.append(evaluating(round_.diagnosis))
    return cards


def _under_way(sight: Sight, settings: Settings) -> list[str]:
    """The results of the current round so far, and what is pending."""
    evidence, index = sight.evidence, len(sight.rounds)
    cards = []
    if sight.plan is not None:
        known = _known_before(sight, index)
        new = [found for id_, found in evidence.items() if id_ not in known]
        cards += [planning(sight.plan), remediation(sight.plan, new, evidence)]
    if sight.draft is not None:
        before = sight.rounds[-1].draft if sight.rounds else None
        cards.append(cognition(sight.draft, index, sight.packing, evidence, before))
    if sight.monitored is not None:
        cards.append(monitoring(sight.monitored, settings, evidence, sight.rounds[-1] if sight.rounds else None))
    if sight.status == "working":
        cards.append(_waiting(sight))
    return cards


def _waiting(sight: Sight) -> str:
    doubted = sight.monitored is not None and not sight.monitored.satisfied
    plan = sight.plan
    words = at_work(sight.node, repaired=plan.deficit if plan is not None else "")
    if doubted:
        words = "Evaluating: the critic looks for faults in the draft"
    return f'<div class="m-waiting"><span class="m-pulse" aria-hidden="true"></span>{escape(words)} …</div>'


def _first_evidence(sight: Sight) -> list[Found]:
    """The evidence of the first draft."""
    if not sight.rounds:
        return list(sight.evidence.values())
    first = set(sight.rounds[0].evidence_ids)
    return [found for id_, found in sight.evidence.items() if id_ in first]


def _known_before(sight: Sight, index: int) -> tuple[str, ...]:
    return sight.rounds[index - 1].evidence_ids if index else ()


def card(kind: str, stage: str, title: str, body: str) -> str:
    """A card; `body` is HTML, the rest is escaped."""
    return (
        f'<section class="m-card m-{kind}" aria-label="{escape(stage)}: {escape(title)}">'
        f'<h3><span class="m-stage">{escape(stage)}</span>{escape(title)}</h3>{body}</section>'
    )


def retrieval(found: Sequence[Found], dropped: Sequence[Dropped] = ()) -> str:
    """The evidence of the first draft."""
    titles = {one.passage.id: one.passage.title or one.passage.id for one in found}
    passages = "".join(passage(one, number, titles) for number, one in enumerate(found, 1))
    gone = "".join(f"<li>{escape(one.reason)}</li>" for one in dropped)
    kept_out = f'<p class="m-note">Kept out of the prompt:</p><ul class="m-note">{gone}</ul>' if gone else ""
    return card("retrieval", "Retrieval", f"{counted(len(found), 'initial passage')}", passages + kept_out)


def passage(
    found: Found, number: int, titles: Mapping[str, str], *, quotes: Sequence[str] = (), shut: bool = True
) -> str:
    """A passage that opens on click, with its quotes marked and the link that led to it."""
    one = found.passage
    via = f'<span class="m-via">named in “{escape(titles.get(found.via, found.via))}”</span>' if found.via else ""
    suspect = ""
    if found.suspect:
        kinds = ", ".join(spoken(name) for name in found.suspect)
        suspect = f'<span class="m-warn">contains text aimed at the model: {escape(kinds)}</span>'
    return (
        f'<details class="m-passage"{"" if shut else " open"}><summary><span class="m-cite">{number}</span>'
        f"{escape(one.title or one.id)}{via}{suspect}</summary><p>{with_quotes(one.text, quotes)}</p></details>"
    )


def cognition(draft: Draft, index: int, packing: Packing, evidence: Mapping[str, Found], before: Draft | None) -> str:
    """A draft with its quotes marked in the evidence, and its differences from the previous draft."""
    body = f'<p class="m-short">{escape(draft.short_answer)}</p>'
    if before is None:
        body += f'<p class="m-answer">{with_citations(draft.answer)}</p>'
    else:
        body += f'<p class="m-answer">{difference(before.answer, draft.answer)}</p>'
        body += f'<p class="m-note">{_change(before, draft)}</p>'
    title = "First draft" if index == 0 else f"Draft after repair {index}"
    return card("cognition", "Cognition", title, body + _quoted(draft, packing, evidence))


def _change(before: Draft, draft: Draft) -> str:
    old, new = escape(before.short_answer), escape(draft.short_answer)
    return f"Still “{new}”." if old == new else f"The short answer changed from “{old}” to “{new}”."


def _quoted(draft: Draft, packing: Packing, evidence: Mapping[str, Found]) -> str:
    """The passages that the draft quotes, and the quotes found in none."""
    packed = [evidence[id_] for id_ in packing.packed_ids if id_ in evidence]
    if len(packed) < len(packing.packed_ids):  # an old run without passages: quotes cannot be checked
        quotes = "".join(f"<li>“{escape(quote)}”</li>" for quote in dict.fromkeys(draft.quotes))
        return f'<h4>Quotes</h4><ul class="m-note">{quotes}</ul>' if quotes else ""
    titles = {one.passage.id: one.passage.title or one.passage.id for one in evidence.values()}
    held = [
        passage(one, number, titles, quotes=draft.quotes, shut=False)
        for number, one in enumerate(packed, 1)
        if any(is_verbatim(quote, [one.passage.text]) for quote in draft.quotes)
    ]
    texts = [one.passage.searchable() for one in packed]
    lost = "".join(
        f"<li>“{escape(quote)}” is not in any passage.</li>" for quote in draft.quotes if not is_verbatim(quote, texts)
    )
    shown = f"<h4>Quoted from the evidence</h4>{''.join(held)}" if held else ""
    nothing = "" if draft.quotes else '<p class="m-note">It quotes no passage.</p>'
    return shown + nothing + (f'<ul class="m-lost">{lost}</ul>' if lost else "")


def evaluating(diagnosis: Diagnosis) -> str:
    """The fault that the critic, or the rules instead, found."""
    error = ERROR_TYPES.get(diagnosis.error_type)
    rows = [("Why", diagnosis.rationale), ("Kind of error", error), ("Advice", diagnosis.suggestion)]
    if diagnosis.deficit != NO_DEFICIT:
        rows.append(("Queries", "; ".join(diagnosis.suggested_queries)))
    by_rule = ""
    if diagnosis.source == "heuristic":
        why = f" ({diagnosis.critic_error})" if diagnosis.critic_error else ""
        by_rule = f'<p class="m-note">The critic failed{escape(why)}; a rule chose the deficit.</p>'
    return card("evaluating", "Evaluating", deficit(diagnosis.deficit), _facts(rows) + by_rule)


def planning(plan: RepairPlan) -> str:
    """The instructions for the next draft."""
    queries = "".join(f"<li>{escape(query)}</li>" for query in plan.queries)
    asked = f'<h4>Follow-up searches</h4><ul class="m-queries">{queries}</ul>' if queries else ""
    sources = None if plan.repair == "conclude" else ANSWER_MODES[plan.answer_mode]  # which asks no model
    rows = [("Repair", repair(plan)), ("Sources", sources), ("Hint", plan.suggestion)]
    return card("planning", "Planning", f"Repair: {spoken(plan.deficit)}", _facts(rows) + asked)


def remediation(plan: RepairPlan, new: Sequence[Found], evidence: Mapping[str, Found]) -> str:
    """The evidence added for a repair, and the searches that found it."""
    titles = {one.passage.id: one.passage.title or one.passage.id for one in evidence.values()}
    numbers = {id_: number for number, id_ in enumerate(evidence, 1)}
    if not plan.queries:
        body = '<p class="m-note">This repair needs no search: it uses the evidence that is there.</p>'
        return card("remediation", "Remediation", "No new evidence", body)
    body = "".join(passage(one, numbers[one.passage.id], titles, shut=len(new) > 2) for one in new)
    body = body or '<p class="m-note">The searches found nothing new.</p>'
    return card("remediation", "Remediation", f"{counted(len(new), 'new passage')}", body)


def _facts(rows: Sequence[tuple[str, str | None]]) -> str:
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows if value)
    return f'<dl class="m-facts">{shown}</dl>'
