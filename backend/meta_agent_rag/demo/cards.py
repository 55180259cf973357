"""A run of the loop, live or recorded, as HTML: its graph, a card for each stage, its answer and what it cost."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from html import escape
from itertools import groupby

from ..agent.derivation import Derivation, Fact
from ..agent.engine import Answer
from ..agent.routes import Vote
from ..agent.routes.vote import alike, upholds
from ..agent.state import NO_DEFICIT, Diagnosis, Draft, Packing, RepairPlan, Round, Signals
from ..grounding.confidence import is_doubtful
from ..grounding.quotes import is_verbatim, place
from ..llm.ledger import LedgerRow, total
from ..retrieval.passage import Found
from ..retrieval.screening import Dropped
from ..settings import Settings
from ..statistics.scores import score_answer
from ..wording import FREE, counted, passage_name
from .stepping import LoopView
from .vocabulary import (
    ANSWER_MODES,
    ERROR_TYPES,
    STAGES,
    at_work,
    ballot_note,
    deficit,
    repair,
    spoken,
    stop_reason,
    without_addresses,
)


def quiet(text: str) -> str:
    """A less prominent line: a hint, or a placeholder."""
    return f'<p class="m-note">{escape(text)}</p>'


def problem(words: str) -> str:
    """The line for a fault before the start."""
    return f'<p class="m-status m-is-failed" role="alert">{escape(words)}</p>'


def card(kind: str, stage: str, title: str, body: str) -> str:
    """A card; `body` is HTML, the rest is escaped."""
    return (
        f'<section class="m-card m-{kind}" aria-label="{escape(stage)}: {escape(title)}">'
        f'<h3><span class="m-stage">{escape(stage)}</span>{escape(title)}</h3>{body}</section>'
    )


def graph(repairs: Sequence[str], view: LoopView | None = None) -> str:
    """The graph with the running node highlighted; `repairs` are the nodes that a diagnosis leads to."""
    active, visited, done = (view.node, view.visited, view.status == "done") if view else (None, (), False)

    def node(name: str, title: str, state: str = "") -> str:
        state = state or ("active" if name == active else "visited" if name in visited else "idle")
        stage = f"<small>{escape(STAGES[name])}</small>" if name in STAGES else ""
        return f'<li class="m-node m-{state}"><span>{escape(title)}</span>{stage}</li>'

    main = "".join(node(name, name) for name in ("retrieve", "write", "diagnose"))
    end = node("answer", "answer", "visited" if done else "")
    below = "".join(node(name, spoken(name)) for name in repairs)
    running = "the answer is ready" if done else f"running: {spoken(active)}" if active else "nothing is running"
    return (
        '<div class="m-graph" role="group" aria-label="The loop: retrieve, write, diagnose, repair, write again; '
        f'{escape(running)}"><ol class="m-main">{main}{end}</ol>'
        '<div class="m-turn" aria-hidden="true"><span>↑</span><span>↓</span></div>'
        f'<div class="m-repairs"><small>remediate: Planning, Remediation</small><ul>{below}</ul></div></div>'
    )


def stages(view: LoopView, settings: Settings) -> str:
    """All cards so far, the running stage last."""
    shown = cards(view, settings)
    if view.status == "working":
        words = at_work(view.node, repaired=view.plan.deficit if view.plan else "", doubted=view.doubted)
        pulse, elapsed = '<span class="m-pulse" aria-hidden="true"></span>', '<span class="m-elapsed"></span>'
        said = escape(words)
        shown.append(f'<div class="m-waiting" data-stage="{len(view.rounds)} {said}">{pulse}{said} … {elapsed}</div>')
    return f'<div class="m-stages">{"".join(shown)}</div>'


def cards(view: LoopView, settings: Settings) -> list[str]:
    """A card for each stage so far, in order."""
    evidence, rounds = view.evidence, view.rounds
    first = rounds[0].evidence_ids if rounds else tuple(evidence)
    shown = [retrieval(first, evidence, view.state.get("dropped", ()))] if first else []
    before: Round | None = None
    for round_ in rounds:
        shown += _round(
            round_.plan, round_.draft, round_.packing, round_, before, round_.evidence_ids, evidence, settings
        )
        before = round_
    if view.status != "done":
        shown += _round(
            view.plan, view.draft, view.packing, view.monitored, before, tuple(evidence), evidence, settings
        )
    return shown


def _round(  # noqa: PLR0917  # a round, as far as it has come
    plan: RepairPlan | None,
    draft: Draft | None,
    packing: Packing,
    judged: Round | None,
    before: Round | None,
    ids: Sequence[str],
    evidence: Mapping[str, Found],
    settings: Settings,
) -> list[str]:
    """The cards of a round, whose evidence are `ids`; `before` is the previous one."""
    shown = []
    if plan is not None:
        new = [id_ for id_ in ids if before is None or id_ not in before.evidence_ids]
        shown += [planning(plan), remediation(plan, new, evidence)]
    if draft is not None:
        shown.append(cognition(draft, packing, evidence, before))
    if judged is not None and judged.signals is not None:
        shown.append(monitoring(judged, settings, evidence, before))
    if judged is not None and judged.diagnosis is not None:
        shown.append(evaluating(judged.diagnosis))
    return shown


def retrieval(ids: Sequence[str], evidence: Mapping[str, Found], dropped: Sequence[Dropped] = ()) -> str:
    """The evidence of the first draft; by name alone if the texts of a recorded run are unknown."""
    if all(id_ in evidence for id_ in ids):
        body = "".join(_passage(evidence[id_], number, evidence) for number, id_ in enumerate(ids, 1))
    else:
        names = "".join(f"<li>{escape(passage_name(id_))}</li>" for id_ in ids)
        body = f'<ul class="m-queries">{names}</ul>{quiet("The run contains their names, not their texts.")}'
    gone = "".join(f"<li>{escape(one.reason)}</li>" for one in dropped)
    kept_out = f'{quiet("Kept out of the prompt:")}<ul class="m-note">{gone}</ul>' if gone else ""
    return card("retrieval", "Retrieval", counted(len(ids), "initial passage"), body + kept_out)


def _title(id_: str, evidence: Mapping[str, Found]) -> str:
    return (evidence[id_].passage.title if id_ in evidence else "") or passage_name(id_)


def _passage(
    found: Found, number: int, evidence: Mapping[str, Found], *, quotes: Sequence[str] = (), shut: bool = True
) -> str:
    """A passage that opens on click, with its quotes marked and the link that led to it."""
    one, notes = found.passage, ""
    if found.via:
        notes += f'<span class="m-via">named in “{escape(_title(found.via, evidence))}”</span>'
    if found.suspect:
        kinds = ", ".join(map(spoken, found.suspect))
        notes += f'<span class="m-warn">contains text aimed at the model: {escape(kinds)}</span>'
    return (
        f'<details class="m-passage"{"" if shut else " open"}><summary><span class="m-cite">{number}</span>'
        f"{escape(_title(one.id, evidence))}{notes}</summary><p>{with_quotes(one.text, quotes)}</p></details>"
    )


def cognition(draft: Draft, packing: Packing, evidence: Mapping[str, Found], before: Round | None) -> str:
    """A draft with its quotes marked in the evidence, and its differences from the previous draft."""
    short = escape(draft.short_answer)
    if before is None:
        title, body = "First draft", f'<p class="m-answer">{with_citations(draft.answer)}</p>'
    else:
        title, old = f"Draft after repair {before.index + 1}", escape(before.draft.short_answer)
        change = f"Still “{short}”." if old == short else f"The short answer changed from “{old}” to “{short}”."
        body = f'<p class="m-answer">{difference(before.draft.answer, draft.answer)}</p><p class="m-note">{change}</p>'
    return card(
        "cognition", "Cognition", title, f'<p class="m-short">{short}</p>{body}{_quoted(draft, packing, evidence)}'
    )


def _quoted(draft: Draft, packing: Packing, evidence: Mapping[str, Found]) -> str:
    """The passages that the draft quotes, and the quotes that are not in what it was shown."""
    packed = [evidence[id_] for id_ in packing.packed_ids if id_ in evidence]
    if len(packed) < len(packing.packed_ids):  # a run without passages: quotes cannot be checked
        quotes = "".join(f"<li>“{escape(quote)}”</li>" for quote in dict.fromkeys(draft.quotes))
        return f'<h4>Quotes</h4><ul class="m-note">{quotes}</ul>' if quotes else ""
    held = "".join(
        _passage(one, number, evidence, quotes=draft.quotes, shut=False)
        for number, one in enumerate(packed, 1)
        if any(is_verbatim(quote, [one.passage.text]) for quote in draft.quotes)
    )
    shown = f"<h4>Quoted from the evidence</h4>{held}" if held else ""
    lost = ""
    for quote in dict.fromkeys(draft.quotes):
        if not is_verbatim(quote, [one.passage.searchable() for one in packed]):
            known = (n for n, one in enumerate(evidence.values(), 1) if is_verbatim(quote, [one.passage.searchable()]))
            number = next(known, None)
            where = f"is in passage {number}, which this draft was not shown" if number else "is not in any passage"
            lost += f"<li>“{escape(quote)}” {where}.</li>"
    nothing = "" if draft.quotes else quiet("It quotes no passage.")
    return shown + nothing + (f'<ul class="m-lost">{lost}</ul>' if lost else "")


def evaluating(diagnosis: Diagnosis) -> str:
    """The fault that the critic, or the rules instead, found."""
    rows = [
        ("Why", diagnosis.rationale),
        ("Kind of error", ERROR_TYPES.get(diagnosis.error_type)),
        ("Advice", diagnosis.suggestion),
    ]
    if diagnosis.deficit != NO_DEFICIT:
        rows.append(("Suggested queries", "; ".join(diagnosis.suggested_queries)))
    by_rule = ""
    if diagnosis.source == "heuristic":
        why = f" ({without_addresses(diagnosis.critic_error)})" if diagnosis.critic_error else ""
        by_rule = quiet(f"The critic failed{why}; a rule chose the deficit.")
    return card("evaluating", "Evaluating", deficit(diagnosis.deficit), _facts(rows) + by_rule)


def planning(plan: RepairPlan) -> str:
    """The instructions for the next draft."""
    queries = "".join(f"<li>{escape(query)}</li>" for query in plan.queries)
    asked = f'<h4>Follow-up searches</h4><ul class="m-queries">{queries}</ul>' if queries else ""
    sources = None if plan.repair == "conclude" else ANSWER_MODES[plan.answer_mode]  # which asks no model
    rows = [("Repair", repair(plan)), ("Sources", sources), ("Hint", plan.suggestion)]
    return card("planning", "Planning", f"Repair: {spoken(plan.deficit)}", _facts(rows) + asked)


def remediation(plan: RepairPlan, new: Sequence[str], evidence: Mapping[str, Found]) -> str:
    """The evidence added for a repair."""
    if not plan.queries:
        body = quiet("This repair does not search: it uses the evidence that is there.")
        return card("remediation", "Remediation", "No new evidence", body)
    numbers = {id_: number for number, id_ in enumerate(evidence, 1)}
    found = [id_ for id_ in new if id_ in evidence]
    body = "".join(_passage(evidence[id_], numbers[id_], evidence, shut=len(found) > 2) for id_ in found)
    title = counted(len(found), "new passage")
    return card("remediation", "Remediation", title, body or quiet("The searches found nothing new."))


def _facts(rows: Sequence[tuple[str, str | None]]) -> str:
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows if value)
    return f'<dl class="m-facts">{shown}</dl>'


def monitoring(round_: Round, settings: Settings, evidence: Mapping[str, Found], before: Round | None = None) -> str:
    """The monitor's signals and conclusion for a draft; `evidence` holds the known passages.

    A derivation or vote that has not changed since the round `before` is not repeated.
    """
    assert round_.signals is not None
    title = "Not satisfied: the draft needs review"
    if round_.satisfied:
        title = "Accepted because no better answer was found" if is_doubtful(round_.p_correct) else "Satisfied"
    if round_.vote is not None and round_.derivation is not None:
        derived = before is not None and before.derivation == round_.derivation
        body = "" if derived else chain(round_.derivation, evidence)
        body += _voted(round_, round_.vote, before)
    else:
        body = _two_routes(round_) + _gauges(round_, round_.signals, settings)
    kind = f"monitoring m-{'satisfied' if round_.satisfied else 'doubted'}"
    return card(kind, "Monitoring", title, body + _signals(round_.signals))


def _voted(round_: Round, vote: Vote, before: Round | None) -> str:
    """The vote if it is new, and how similar the draft is to the elected answer."""
    draft = round_.draft.short_answer
    if before is not None and before.vote == vote:
        agrees = "agrees" if upholds(vote, draft) else "does not agree"
        stands = "The vote before this repair is still valid. It elected"
        shown = quiet(f"{stands} “{vote.elected}”; the new draft {agrees} with it.")
    else:
        shown = bars(vote, round_.derivation)
    words = "the vote decides: the draft must mean the same as the elected answer"
    return shown + _bar("Similarity of the draft to the elected answer", alike(draft, vote.elected), 1.0, words)


def _two_routes(round_: Round) -> str:
    second = round_.second_answer
    other = (second and (second.short_answer or without_addresses(second.error or ""))) or "none"
    how = "".join(f"<li>{escape(step)}</li>" for step in (second.steps if second is not None else ()))
    steps = f'<details class="m-passage"><summary>Steps of the second answer</summary><ol>{how}</ol></details>'
    return (
        f'<div class="m-routes">{cell("Draft", round_.draft.short_answer)}{cell("Second answer", other)}</div>'
        f"{steps if how else ''}"
    )


def cell(name: str, value: str, note: str = "", kind: str = "") -> str:
    """A value under its name, in a row of such cells."""
    small = f"<small>{escape(note)}</small>" if note else ""
    return f'<div class="{kind}"><span>{escape(name)}</span><strong>{escape(value)}</strong>{small}</div>'


def _gauges(round_: Round, signals: Signals, settings: Settings) -> str:
    """A bar from 0 to 1 with a mark at the threshold, and the deciding signal in words."""
    limit = settings.monitor_similarity_threshold
    if round_.p_correct is not None:
        return _bar("Probability of being correct", round_.p_correct, None, "the fitted probability decides")
    cosine = "Cosine of the two answers"
    if settings.monitor_policy == "paper":
        return _bar(cosine, signals.similarity, limit, "the cosine of the two answers decides")
    words = "agreement decides: the two answers must be equal, or one must contain the other"
    compared = "the cosine, which decides in the paper, is shown for comparison"
    overlap = _bar("Word overlap of the two answers", signals.overlap, None, words)
    return overlap + _bar(cosine, signals.similarity, limit, compared)


def _bar(name: str, value: float | None, threshold: float | None, words: str) -> str:
    def percent(figure: float) -> str:
        return f"{min(max(figure, 0.0), 1.0):.0%}"

    figure = "nothing to compare" if value is None else f"{value:.2f}"
    against, mark = figure, ""
    if threshold is not None:
        against = f"{figure}, threshold {threshold:.2f}"
        mark = f'<span class="m-threshold" style="left:{percent(threshold)}"></span>'
    head = f'<div class="m-gauge-head"><span>{escape(name)}</span><span>{escape(against)}</span></div>'
    return (
        f'<div class="m-gauge" role="img" aria-label="{escape(f"{name}: {against}")}">{head}'
        f'<div class="m-track"><span class="m-fill" style="width:{percent(value or 0.0)}"></span>{mark}</div>'
        f"{quiet(f'Here {words}.')}</div>"
    )


def _signals(signals: Signals) -> str:
    """All signals that were measured, on demand."""
    shown = ""
    for name, value in asdict(signals).items():
        if value is not None:
            said = {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value:.3g}"
            shown += f"<div><dt>{spoken(name)}</dt><dd>{said}</dd></div>"
    return f'<details class="m-passage"><summary>All signals</summary><dl class="m-signals">{shown}</dl></details>'


def chain(derivation: Derivation, evidence: Mapping[str, Found]) -> str:
    """Every fact with its value and its place, open ones in red with the reason, and the conclusion in code."""
    plan = derivation.plan
    if plan is None:
        return quiet(f"No derivation; {derivation.why_none}.")
    columns = "".join(
        f"<ol>{''.join(_fact(fact, evidence) for fact in derivation.facts if fact.chain == place)}</ol>"
        for place in range(len(plan.chains))
    )
    follows = quiet("The facts give no answer.")
    if derivation.answer:
        follows = (
            f'<div class="m-conclusion"><span class="m-stage">{escape(spoken(plan.operator))}</span>'
            f"{escape(derivation.because)}<strong>{escape(derivation.answer)}</strong></div>"
        )
    how = quiet("Each fact is looked up in the passages on its own; code, not the model, combines them.")
    return f'<h4>Derived from single facts</h4>{how}<div class="m-chains">{columns}</div>{follows}'


def _fact(fact: Fact, evidence: Mapping[str, Found]) -> str:
    kind, note = "", ""
    if fact.open is not None:
        kind, note = ' class="m-open-fact"', f"open: {fact.open}"
    elif fact.from_memory:
        note = "from the model's memory"
    elif fact.passage_id is not None:
        note = _title(fact.passage_id, evidence) + (f": “{fact.sentence}”" if fact.sentence else "")
    small = f"<small>{escape(without_addresses(note))}</small>" if note else ""
    return f"<li{kind}><span>{escape(fact.asked)}</span><strong>{escape(fact.value or '?')}</strong>{small}</li>"


def bars(vote: Vote, derivation: Derivation | None = None) -> str:
    """A bar per route: the support of its answer among all routes; those of the elected answer are highlighted."""
    shown = ""
    for ballot, support in zip(vote.ballots, vote.support, strict=True):
        note = ballot_note(ballot, support, derivation)
        shown += (
            f'<div class="m-ballot{" m-elected" if upholds(vote, ballot.short_answer) else ""}">'
            f'<div class="m-gauge-head"><span>{escape(spoken(ballot.route))}: '
            f"{escape(ballot.short_answer or 'nothing')}</span><span>{support:.0%}</span></div>"
            f'<div class="m-track"><span class="m-fill" style="width:{support:.0%}"></span></div>'
            f"{f'<small>{escape(note)}</small>' if note else ''}</div>"
        )
    how = quiet(
        "Each bar is the support of an answer among all routes. Answers that share words support each other, so the "
        "bars need not sum to 100 %."
    )
    return f"<h4>The vote elects {escape(vote.elected or 'nothing')}</h4>{how}{shown}"


def outcome(
    answer: Answer, golds: Sequence[str] = (), *, others: Mapping[str, str] | None = None, spent: str = ""
) -> str:
    """The answer, its change from the first draft, and why the loop stopped.

    `others` are answers to the same question by the name of what gave them. With `golds`, all answers are scored.
    """
    rounds, last = answer.rounds, answer.short_answer
    chosen = rounds[answer.chosen] if rounds else None
    p_correct = chosen.p_correct if chosen is not None else None
    answers = dict(others or {})
    if rounds:
        answers["First draft"] = rounds[0].draft.short_answer
    answers["Returned answer"] = last
    notes = [
        f"Gold answer: {' / '.join(golds)}." if golds else "",
        stop_reason(answer.stop_reason, p_correct),
        f"Estimated probability of being correct: {p_correct:.0%}." if p_correct is not None else "",
        spent,
    ]
    if len(rounds) > 1:
        notes.append(f"The draft of round {answer.chosen} was the best supported of {len(rounds)}.")
    return card(
        "outcome m-doubted" if doubtful(answer, golds) else "outcome",
        "Answer",
        _verdict(rounds[0].draft.short_answer, last, golds) if rounds else last,
        f'<p class="m-short">{escape(last)}</p><p class="m-answer">{with_citations(answer.text)}</p>'
        f'<div class="m-gain">{"".join(_scored(name, said, golds) for name, said in answers.items())}</div>'
        + "".join(quiet(note) for note in notes if note),
    )


def doubtful(answer: Answer, golds: Sequence[str] = ()) -> bool:
    """The answer is wrong or, if no gold answer is known, probably so."""
    if golds:
        return score_answer(answer.short_answer, golds).em < 1.0
    return bool(answer.rounds) and is_doubtful(answer.rounds[answer.chosen].p_correct)


def _scored(name: str, short_answer: str, golds: Sequence[str]) -> str:
    if not golds:
        return cell(name, short_answer)
    scored = score_answer(short_answer, golds)
    figures = f"EM {100 * scored.em:.0f} · F1 {100 * scored.f1:.0f}"
    return cell(name, short_answer, figures, "m-right" if scored.em == 1.0 else "m-wrong")


def _verdict(first: str, last: str, golds: Sequence[str]) -> str:
    if not golds:
        return "The answer differs from the first draft." if first != last else "The answer did not change."
    before, after = score_answer(first, golds), score_answer(last, golds)
    if before.em and after.em:
        return "Correct from the start, and kept."
    if after.em:
        return "Repaired: the first draft was wrong, the answer is correct."
    if before.em:
        return "Broken: the first draft was correct, the answer is not."
    return "Closer, but not the gold answer." if after.f1 > before.f1 else "Wrong before and after."


def timeline(view: LoopView) -> str:
    """The cost of each round: calls, tokens, cache, cost and time, one line each."""
    rows = view.rows
    if not rows:
        return ""
    lines = ""
    for index, own in groupby(sorted(rows, key=lambda row: row.round), lambda row: row.round):
        calls = tuple(own)
        seconds = sum(row.latency_s for row in calls)
        name = f"Repair {index}" if index else "First draft"
        lines += f'<p class="m-line"><strong>{name}</strong> {spent(calls)} · {seconds:.1f} s</p>'
    sum_ = f'<p class="m-total"><strong>Total</strong> {spent(rows)} · {view.seconds:.1f} s in all</p>'
    return f'<section class="m-timeline" aria-label="Cost of each round"><h3>Cost and time</h3>{lines}{sum_}</section>'


def spent(rows: Collection[LedgerRow]) -> str:
    """Calls, tokens, cached share and cost in a line."""
    sums = total(tuple(rows))
    parts = [
        counted(sums.calls, "call"),
        f"{sums.prompt_tokens:,} tokens read, {sums.completion_tokens:,} written",
        f"{sums.cache_hit_share or 0.0:.0%} from the prefix cache",
    ]
    if sums.cached_calls:
        parts.append(f"{counted(sums.cached_calls, 'answer')} from the cache")
    if sums.failed_calls:
        parts.append(f"{counted(sums.failed_calls, 'failed call')}")
    cost = FREE if sums.on_this_machine else "price unknown"
    if sums.cost_usd is not None:
        cost = f"${sums.cost_usd:.5f}"
        cost += f" + up to ${sums.failed_usd:.5f} for failed calls" if sums.failed_usd else ""
    return " · ".join([*parts, cost])


_WORDS = re.compile(r"\S+\s*")
_CITATION = re.compile(r"\[(\d{1,3})\]")


def with_quotes(text: str, quotes: Sequence[str]) -> str:
    """A passage as HTML with its quotes marked; overlapping quotes share one mark."""
    marked = {at for quote in quotes if (span := place(quote, text)) is not None for at in range(*span)}
    parts = ""
    for quoted, run in groupby(range(len(text)), marked.__contains__):
        places = list(run)
        said = escape(text[places[0] : places[-1] + 1])
        parts += f"<mark>{said}</mark>" if quoted else said
    return parts


def with_citations(text: str) -> str:
    """An answer as HTML, its citations `[n]` highlighted."""
    return _CITATION.sub(r'<span class="m-cite">\1</span>', escape(text))


def difference(before: str, after: str) -> str:
    """The later text as HTML, with inserted and deleted words marked, in order."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts = ""
    for what, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = escape("".join(old[i:j])), escape("".join(new[k:n]))
        if what == "equal":
            parts += come
        else:
            parts += f"<del>{gone.strip()}</del> " if gone else ""
            parts += f"<ins>{come.strip()}</ins> " if come else ""
    return parts.strip()
