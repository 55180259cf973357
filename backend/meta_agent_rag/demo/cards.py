"""The stages of the loop as HTML cards: pure functions from events to their display."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ..agent.calibration import calibration_in_force
from ..agent.derivation import Derivation, Fact, Plan
from ..agent.engine import Answer
from ..agent.routes import DERIVATION, Vote
from ..agent.routes.vote import upholds
from ..agent.state import NO_DEFICIT, Diagnosis, Draft, Packing, RepairPlan, Round, Signals
from ..errors import MetaRagError
from ..grounding.confidence import is_doubtful
from ..grounding.quotes import is_verbatim, place
from ..llm.ledger import LedgerRow, Totals, total
from ..retrieval.passage import Found
from ..retrieval.screening import Dropped
from ..settings import Settings
from ..statistics.scores import AnswerScore, score_answer
from ..wording import FREE, counted, passage_name
from .stepping import LoopView
from .words import ANSWER_MODES, ERROR_TYPES, at_work, ballot_note, deficit, repair, spoken, stop_reason


def stages(sight: LoopView, settings: Settings) -> str:
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


def _under_way(sight: LoopView, settings: Settings) -> list[str]:
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


def _waiting(sight: LoopView) -> str:
    doubted = sight.monitored is not None and not sight.monitored.satisfied
    plan = sight.plan
    words = at_work(sight.node, repaired=plan.deficit if plan is not None else "")
    if doubted:
        words = "Evaluating: the critic looks for faults in the draft"
    return f'<div class="m-waiting"><span class="m-pulse" aria-hidden="true"></span>{escape(words)} …</div>'


def _first_evidence(sight: LoopView) -> list[Found]:
    """The evidence of the first draft."""
    if not sight.rounds:
        return list(sight.evidence.values())
    first = set(sight.rounds[0].evidence_ids)
    return [found for id_, found in sight.evidence.items() if id_ in first]


def _known_before(sight: LoopView, index: int) -> tuple[str, ...]:
    return sight.rounds[index - 1].evidence_ids if index else ()


def problem(words: str) -> str:
    """The line for a fault before the start."""
    return f'<p class="m-status m-is-failed" role="alert">{escape(words)}</p>'


def card(kind: str, stage: str, title: str, body: str) -> str:
    """A card; `body` is HTML, the rest is escaped."""
    return (
        f'<section class="m-card m-{kind}" aria-label="{escape(stage)}: {escape(title)}">'
        f'<h3><span class="m-stage">{escape(stage)}</span>{escape(title)}</h3>{body}</section>'
    )


def retrieval(found: Sequence[Found], dropped: Sequence[Dropped] = ()) -> str:
    """The evidence of the first draft."""
    titles = {one.passage.id: one.passage.title or passage_name(one.passage.id) for one in found}
    passages = "".join(passage(one, number, titles) for number, one in enumerate(found, 1))
    gone = "".join(f"<li>{escape(one.reason)}</li>" for one in dropped)
    kept_out = f'<p class="m-note">Kept out of the prompt:</p><ul class="m-note">{gone}</ul>' if gone else ""
    return card("retrieval", "Retrieval", f"{counted(len(found), 'initial passage')}", passages + kept_out)


def passage(
    found: Found, number: int, titles: Mapping[str, str], *, quotes: Sequence[str] = (), shut: bool = True
) -> str:
    """A passage that opens on click, with its quotes marked and the link that led to it."""
    one = found.passage
    via = (
        f'<span class="m-via">named in “{escape(titles.get(found.via) or passage_name(found.via))}”</span>'
        if found.via
        else ""
    )
    suspect = ""
    if found.suspect:
        kinds = ", ".join(spoken(name) for name in found.suspect)
        suspect = f'<span class="m-warn">contains text aimed at the model: {escape(kinds)}</span>'
    return (
        f'<details class="m-passage"{"" if shut else " open"}><summary><span class="m-cite">{number}</span>'
        f"{escape(one.title or passage_name(one.id))}{via}{suspect}</summary>"
        f"<p>{with_quotes(one.text, quotes)}</p></details>"
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
    titles = {one.passage.id: one.passage.title or passage_name(one.passage.id) for one in evidence.values()}
    held = [
        passage(one, number, titles, quotes=draft.quotes, shut=False)
        for number, one in enumerate(packed, 1)
        if any(is_verbatim(quote, [one.passage.text]) for quote in draft.quotes)
    ]
    lost = "".join(
        f"<li>“{escape(quote)}” {words}</li>" for quote in draft.quotes if (words := _lost(quote, packed, evidence))
    )
    shown = f"<h4>Quoted from the evidence</h4>{''.join(held)}" if held else ""
    nothing = "" if draft.quotes else '<p class="m-note">It quotes no passage.</p>'
    return shown + nothing + (f'<ul class="m-lost">{lost}</ul>' if lost else "")


def _lost(quote: str, packed: Sequence[Found], evidence: Mapping[str, Found]) -> str:
    """Why a quote is not in the passages that the draft was shown; empty if it is."""
    if is_verbatim(quote, [one.passage.searchable() for one in packed]):
        return ""
    for number, one in enumerate(evidence.values(), 1):
        if is_verbatim(quote, [one.passage.searchable()]):
            return f"is in passage {number}, which this draft was not shown."
    return "is not in any passage."


def evaluating(diagnosis: Diagnosis) -> str:
    """The fault that the critic, or the rules instead, found."""
    error = ERROR_TYPES.get(diagnosis.error_type)
    rows = [("Why", diagnosis.rationale), ("Kind of error", error), ("Advice", diagnosis.suggestion)]
    if diagnosis.deficit != NO_DEFICIT:
        rows.append(("Suggested queries", "; ".join(diagnosis.suggested_queries)))
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
    titles = {one.passage.id: one.passage.title or passage_name(one.passage.id) for one in evidence.values()}
    numbers = {id_: number for number, id_ in enumerate(evidence, 1)}
    if not plan.queries:
        body = '<p class="m-note">This repair does not search: it uses the evidence that is there.</p>'
        return card("remediation", "Remediation", "No new evidence", body)
    body = "".join(passage(one, numbers[one.passage.id], titles, shut=len(new) > 2) for one in new)
    body = body or '<p class="m-note">The searches found nothing new.</p>'
    return card("remediation", "Remediation", f"{counted(len(new), 'new passage')}", body)


def _facts(rows: Sequence[tuple[str, str | None]]) -> str:
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows if value)
    return f'<dl class="m-facts">{shown}</dl>'


def monitoring(round_: Round, settings: Settings, evidence: Mapping[str, Found], before: Round | None = None) -> str:
    """The monitor's signals and conclusion for a draft; `evidence` holds the known passages.

    Parts unchanged since the round `before` are not repeated.
    """
    assert round_.signals is not None
    verdict = _monitor_verdict(round_)
    if round_.vote is not None and round_.derivation is not None:
        body = _routes(round_, round_.derivation, round_.vote, before, evidence)
    else:
        body = _two_routes(round_) + _gauge(round_, settings) + _signals(round_.signals)
    kind = "satisfied" if round_.satisfied else "doubted"
    return (
        f'<section class="m-card m-monitoring m-{kind}" aria-label="Monitoring: {verdict}">'
        f'<h3><span class="m-stage">Monitoring</span>{verdict}</h3>{body}</section>'
    )


def _monitor_verdict(round_: Round) -> str:
    """The monitor's verdict in words."""
    if not round_.satisfied:
        return "Not satisfied: the draft needs review"
    return "Accepted because no better answer was found" if is_doubtful(round_.p_correct) else "Satisfied"


def _routes(
    round_: Round, derivation: Derivation, vote: Vote, before: Round | None, evidence: Mapping[str, Found]
) -> str:
    """The derivation and the vote, each only if new, and how the draft relates to them."""
    known = before is not None and before.derivation == derivation
    shown = "" if known else chain(derivation, evidence)
    if before is None or before.vote != vote:
        return shown + bars(vote, derivation)
    agrees = "agrees" if upholds(vote, round_.draft.short_answer) else "does not agree"
    stands = f"The vote before this repair is still valid. It elected “{vote.elected}”; the new draft {agrees} with it."
    return f'{shown}<p class="m-note">{escape(stands)}</p>'


def _two_routes(round_: Round) -> str:
    second = round_.second_answer
    other = "none" if second is None else second.short_answer or second.error or "none"
    steps = second.steps if second is not None else ()
    how = "".join(f"<li>{escape(step)}</li>" for step in steps)
    shown = (
        f'<details class="m-passage"><summary>Steps of the second answer</summary><ol>{how}</ol></details>'
        if how
        else ""
    )
    return (
        '<div class="m-routes"><div><span>Draft</span><strong>'
        f"{escape(round_.draft.short_answer)}</strong></div><div><span>Second answer</span><strong>"
        f"{escape(other)}</strong></div></div>{shown}"
    )


def _gauge(round_: Round, settings: Settings) -> str:
    """A bar from 0 to 1 with a mark at the threshold, and the deciding signal in words."""
    signals = round_.signals
    assert signals is not None
    if round_.p_correct is not None:
        threshold = _fitted_threshold(settings)
        return _bar("Probability of being correct", round_.p_correct, threshold, "the fitted probability decides")
    if settings.monitor_policy == "paper":
        words = "the cosine of the two answers decides"
        return _bar("Cosine of the two answers", signals.similarity, settings.monitor_similarity_threshold, words)
    words = "agreement decides: the two answers must be equal, or one must contain the other"
    cosine = "the cosine, which decides in the paper, is shown for comparison"
    return _bar("Word overlap of the two answers", signals.overlap, None, words) + _bar(
        "Cosine of the two answers", signals.similarity, settings.monitor_similarity_threshold, cosine
    )


def _fitted_threshold(settings: Settings) -> float | None:
    """The threshold of the calibration in force; a run made elsewhere may have used another, unknown one."""
    try:
        return calibration_in_force(settings).threshold
    except MetaRagError:
        return None


def _bar(name: str, value: float | None, threshold: float | None, words: str) -> str:
    filled = 0.0 if value is None else min(max(value, 0.0), 1.0)
    figure = "nothing to compare" if value is None else f"{value:.2f}"
    against = f"{figure}, threshold {threshold:.2f}" if threshold is not None else figure
    mark = ""
    if threshold is not None:
        mark = f'<span class="m-threshold" style="left:{min(max(threshold, 0.0), 1.0):.0%}"></span>'
    low = " m-low" if threshold is not None and (value is None or value < threshold) else ""
    head = f'<div class="m-gauge-head"><span>{escape(name)}</span><span>{escape(against)}</span></div>'
    track = f'<div class="m-track"><span class="m-fill" style="width:{filled:.0%}"></span>{mark}</div>'
    label = escape(f"{name}: {against}")
    note = f'<p class="m-note">Here {escape(words)}.</p>'
    return f'<div class="m-gauge{low}" role="img" aria-label="{label}">{head}{track}{note}</div>'


def _signals(signals: Signals) -> str:
    rows = (
        ("Same short answer", _yes(signals.agreement)),
        ("Cosine of the answers", _figure(signals.similarity)),
        ("Shared words (F1)", _share(signals.overlap)),
        ("Verbatim quotes", _share(signals.verbatim)),
        ("Question covered by the quotes", _share(signals.coverage)),
        ("Answer found in a quote", _yes(signals.quoted)),
        ("Answer of the expected kind", _yes(signals.of_kind)),
        ("The draft abstains", _yes(signals.abstained)),
        ("Passages in the prompt", str(signals.evidence_passages)),
        ("The writer's own confidence", _share(signals.confidence)),
        ("Log-probability, draft", _figure(signals.logprob)),
        ("Log-probability, second route", _figure(signals.reference_logprob)),
    )
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in rows)
    return f'<details class="m-passage"><summary>All signals</summary><dl class="m-signals">{shown}</dl></details>'


_ABSENT = '<span class="m-absent">not measured</span>'


def _yes(value: bool | None) -> str:
    return _ABSENT if value is None else "yes" if value else "no"


def _figure(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.0%}"


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


def outcome(answer: Answer, golds: Sequence[str] = ()) -> str:
    """The answer, its change from the first draft, and why the loop stopped."""
    chosen = answer.rounds[answer.chosen]
    draft, ended = chosen.draft, stop_reason(answer.stop_reason, chosen.p_correct)
    scored = score(draft.short_answer, golds)
    doubtful = is_doubtful(chosen.p_correct) if scored is None else scored.em < 1.0
    kind = "m-outcome m-doubted" if doubtful else "m-outcome"
    return (
        f'<section class="m-card {kind}" aria-label="Answer"><h3><span class="m-stage">Answer</span>'
        f'{_chosen(answer)}</h3><p class="m-short">{escape(draft.short_answer)}</p>'
        f'<p class="m-answer">{with_citations(draft.answer)}</p>{_gain(answer, golds)}'
        f'<p class="m-note">{escape(ended)}</p></section>'
    )


def _chosen(answer: Answer) -> str:
    if len(answer.rounds) == 1:
        return "The first draft was kept"
    which = "the first draft" if answer.chosen == 0 else f"the draft after repair {answer.chosen}"
    return f"Best supported of {len(answer.rounds)}: {which}"


def _gain(answer: Answer, golds: Sequence[str]) -> str:
    """The first draft beside the final one, each with its score if gold answers are known."""
    first, last = answer.rounds[0].draft.short_answer, answer.short_answer
    cells = [_scored("First draft", first, golds), _scored("Returned answer", last, golds)]
    gold = f'<p class="m-note">Gold answer: {escape(" / ".join(golds))}.</p>' if golds else ""
    return f'<div class="m-gain">{"".join(cells)}</div><p class="m-verdict">{_verdict(first, last, golds)}</p>{gold}'


def _scored(name: str, short_answer: str, golds: Sequence[str]) -> str:
    scored = score(short_answer, golds)
    figures, kind = "", "m-open"
    if scored is not None:
        kind = "m-right" if scored.em == 1.0 else "m-wrong"
        figures = f"<small>EM {100 * scored.em:.0f} · F1 {100 * scored.f1:.0f}</small>"
    return f'<div class="{kind}"><span>{name}</span><strong>{escape(short_answer)}</strong>{figures}</div>'


def _verdict(first: str, last: str, golds: Sequence[str]) -> str:
    before, after = score(first, golds), score(last, golds)
    if before is None or after is None:
        return "The answer differs from the first draft." if first != last else "The answer did not change."
    if before.em and after.em:
        return "Correct from the start, and kept."
    if after.em:
        return "Repaired: the first draft was wrong, the answer is correct."
    if before.em:
        return "Broken: the first draft was correct, the answer is not."
    return "Closer, but not the gold answer." if after.f1 > before.f1 else "Wrong before and after."


def timeline(sight: LoopView) -> str:
    """The cost of each round: calls, tokens, cache, cost and time, one line each with a bar for the time."""
    if not sight.rows:
        return ""
    rounds = sorted({row.round for row in sight.rows})
    by_round = {index: [row for row in sight.rows if row.round == index] for index in rounds}
    longest = max(_seconds(rows) for rows in by_round.values()) or 1.0
    lines = "".join(_line(_named(index), rows, longest) for index, rows in by_round.items())
    sum_ = f'<p class="m-total"><strong>Total</strong> {_spent(sight.rows)} · {sight.seconds:.1f} s in all</p>'
    return f'<section class="m-timeline" aria-label="Cost of each round"><h3>Cost and time</h3>{lines}{sum_}</section>'


def _named(index: int) -> str:
    return "First draft" if index == 0 else f"Repair {index}"


def _seconds(rows: Sequence[LedgerRow]) -> float:
    return sum(row.latency_s for row in rows)


def _line(name: str, rows: Sequence[LedgerRow], longest: float) -> str:
    seconds = _seconds(rows)
    return (
        f'<div class="m-line"><div><strong>{name}</strong> {_spent(rows)} · {seconds:.1f} s</div>'
        f'<div class="m-track" aria-hidden="true"><span class="m-fill" style="width:{seconds / longest:.0%}"></span>'
        "</div></div>"
    )


def _spent(rows: Sequence[LedgerRow]) -> str:
    sums = total(rows)
    parts = [
        counted(sums.calls, "call"),
        f"{sums.prompt_tokens:,} tokens read, {sums.completion_tokens:,} written",
        f"{sums.cache_hit_share or 0.0:.0%} from the prefix cache",
    ]
    if sums.cached_calls:
        parts.append(f"{counted(sums.cached_calls, 'answer')} from the cache")
    if sums.failed_calls:
        parts.append(f"{counted(sums.failed_calls, 'failed call')}")
    return " · ".join([*parts, _cost(sums)])


def _cost(sums: Totals) -> str:
    if sums.cost_usd is not None:
        failed = f" + up to ${sums.failed_usd:.5f} for failed calls" if sums.failed_usd else ""
        return f"${sums.cost_usd:.5f}{failed}"
    return FREE if sums.on_this_machine else "price unknown"


def score(short_answer: str, golds: Sequence[str]) -> AnswerScore | None:
    """The official score of an answer, `None` if no gold answer is known."""
    return score_answer(short_answer, golds) if golds else None


_WORDS = re.compile(r"\S+\s*")
_CITATION = re.compile(r"\[(\d{1,3})\]")


def with_quotes(text: str, quotes: Sequence[str]) -> str:
    """A passage as HTML with its quotes marked; overlapping quotes share one mark."""
    spans = sorted(span for quote in quotes if (span := place(quote, text)) is not None)
    parts: list[str] = []
    at = 0
    for start, end in _joined(spans):
        parts += [escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>"]
        at = end
    return "".join((*parts, escape(text[at:])))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def with_citations(text: str) -> str:
    """An answer as HTML, its citations `[n]` highlighted."""
    return _CITATION.sub(r'<span class="m-cite">\1</span>', escape(text))


def difference(before: str, after: str) -> str:
    """The later text as HTML, with inserted and deleted words marked, in order."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts: list[str] = []
    for what, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = escape("".join(old[i:j])), escape("".join(new[k:n]))
        if what == "equal":
            parts.append(come)
            continue
        parts.append(f"<del>{gone.strip()}</del> " if gone else "")
        parts.append(f"<ins>{come.strip()}</ins> " if come else "")
    return "".join(parts).strip()
