"""An answer of a run, step by step as the loop took them: HTML in which everything from models and files is escaped."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from urllib.parse import urlencode

from ..agent.state import NO_DEFICIT, Diagnosis, Plan, Round, Signals
from .run_files import Row, rounds_of

_ID_DIGEST = re.compile(r"-[0-9a-f]{12}$")

STOPPED: Mapping[str, str] = {
    "satisfied": "the monitor was satisfied",
    "critic_satisfied": "the critic found nothing wrong with the draft: a false alarm of the monitor",
    "converged": "the answer did not change any more",
    "oscillating": "the answer went back to an earlier one",
    "max_rounds": "all rounds were used",
    "not_in_evidence": "the evidence does not hold the answer",
    "no_evidence": "there was no evidence at all",
    "deadline": "the time was up",
    "cost_limit": "the cost limit was reached",
    "budget": "the budget was used up",
    "write_failed": "the model did not serve a further draft",
}
"""Why a loop ended, in words."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of a replay: its part of the loop, its title, and its body as HTML."""

    part: str
    title: str
    body: str


def stages(row: Row, titles: Mapping[str, str], threshold: float | None) -> tuple[Stage, ...]:
    """All steps of an answer, the last one its outcome.

    `titles` are those of passages by id, where they are known; `threshold` is the monitor's. Raises `InputError`
    for a damaged row.
    """
    found: list[Stage] = []
    before: Round | None = None
    for round_ in rounds_of(row):
        found.extend(_of_round(round_, before, titles, threshold))
        before = round_
    return (*found, _outcome(row))


def link_to(run: str, row: Row) -> str:
    """The address of an answer, within the app."""
    return f"?{urlencode({'run': run, 'question': row['id'], 'method': row['method']})}"


def shown(row: Row, taken: Sequence[Stage], of: int, link: str) -> str:
    """The question and the steps taken so far, as an ordered list; `of` is how many there are."""
    steps = "".join(
        f'<li class="marag-step marag-{stage.part}"><h4><span class="marag-part">{stage.part}</span> '
        f"{escape(stage.title)}</h4>{stage.body}</li>"
        for stage in taken
    )
    heading = f"<h3>{escape(str(row.get('question', '')))}</h3>"
    about = f"{escape(str(row['id']))} by {escape(row['method'])}; step {len(taken)} of {of}. "
    here = f'<a href="{escape(link)}">Link to this answer</a>'
    return (
        f'<section class="marag-replay" aria-label="Replay">{heading}<p class="marag-quiet">{about}{here}</p>'
        f'<ol class="marag-steps">{steps}</ol></section>'
    )


def difference(old: str, new: str) -> str:
    """`new` with what came in marked as inserted and what went as deleted, word by word."""
    before, after = old.split(), new.split()
    parts: list[str] = []
    for kind, low, high, start, end in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        gone, come = escape(" ".join(before[low:high])), escape(" ".join(after[start:end]))
        if kind == "equal":
            parts.append(come)
            continue
        parts += [f"<del>{gone}</del>"] if gone else []
        parts += [f"<ins>{come}</ins>"] if come else []
    return " ".join(parts)


def gauge(value: float | None, threshold: float | None) -> str:
    """The monitor's cosine on a scale of 0 to 1, with its threshold."""
    if value is None:
        return '<p class="marag-quiet">There was no cosine to measure.</p>'
    place = 100 * min(1.0, max(0.0, value))
    mark, told = "", ""
    if threshold is not None:
        mark = f'<span class="marag-mark" style="left:{100 * min(1.0, max(0.0, threshold)):.0f}%"></span>'
        told = f", threshold {threshold:.2f}"
    label = f"cosine of draft and reference answer {value:.2f}{told}"
    return (
        f'<div class="marag-gauge" role="img" aria-label="{label}"><span class="marag-bar" style="width:{place:.0f}%">'
        f'</span>{mark}</div><p class="marag-quiet">{label}</p>'
    )


def _of_round(round_: Round, before: Round | None, titles: Mapping[str, str], threshold: float | None) -> list[Stage]:
    found: list[Stage] = []
    if round_.plan is not None:
        found.append(Stage(part="planning", title=_words(round_.plan.deficit), body=_plan(round_.plan)))
    drafted = "First draft" if before is None else f"Draft revised, round {round_.index}"
    part = "cognition" if before is None else "remediation"
    found.append(Stage(part=part, title=drafted, body=_draft(round_, before, titles)))
    if round_.signals is not None:
        verdict = "satisfied" if round_.satisfied else "not satisfied"
        found.append(Stage(part="monitoring", title=verdict, body=_monitored(round_, round_.signals, threshold)))
    if round_.diagnosis is not None:
        named = round_.diagnosis.deficit
        title = "nothing wrong" if named == NO_DEFICIT else _words(named)
        found.append(Stage(part="evaluating", title=title, body=_diagnosed(round_.diagnosis)))
    return found


def _draft(round_: Round, before: Round | None, titles: Mapping[str, str]) -> str:
    draft = round_.draft
    text = escape(draft.answer) if before is None else difference(before.draft.answer, draft.answer)
    known = set() if before is None else set(before.evidence_ids)
    new = [id_ for id_ in round_.evidence_ids if id_ not in known]
    quotes = "".join(f"<blockquote>{escape(quote)}</blockquote>" for quote in dict.fromkeys(draft.quotes))
    return "".join(
        [
            f'<p class="marag-draft">{text or "<em>(empty)</em>"}</p>',
            _line("Short answer", draft.short_answer),
            f"<details><summary>{len(set(draft.quotes))} quotes</summary>{quotes}</details>" if quotes else "",
            _titled("Evidence" if before is None else "New evidence", new, titles),
        ]
    )


def _monitored(round_: Round, signals: Signals, threshold: float | None) -> str:
    reference = round_.reference
    answer = "" if reference is None else reference.short_answer or reference.error or ""
    agreement = {True: "yes", False: "no", None: "not measured"}[signals.agreement]
    measured = [
        ("same short answer", agreement),
        ("quotes found word for word", _share(signals.verbatim)),
        ("words in common", _share(signals.overlap)),
        ("question's words in the quotes", _share(signals.coverage)),
        ("short answer stands in a quote", {True: "yes", False: "no", None: "not measured"}[signals.quoted]),
        *([] if round_.chance is None else [("chance of being right", _share(round_.chance))]),
    ]
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in measured)
    return (
        f"{gauge(signals.similarity, threshold)}{_line('Answer by another route', answer)}"
        f'<dl class="marag-signals">{cells}</dl>'
    )


def _diagnosed(diagnosis: Diagnosis) -> str:
    source = "the critic" if diagnosis.source == "critic" else "rules, in place of the critic"
    return "".join(
        [
            _line("Said by", source),
            _line("Why", diagnosis.rationale),
            _line("Error", "" if diagnosis.error_type == "none" else _words(diagnosis.error_type)),
            _line("Suggestion", diagnosis.suggestion),
            _line("The critic's call", diagnosis.critic_error or ""),
        ]
    )


def _plan(plan: Plan) -> str:
    queries = "".join(f"<li>{escape(query)}</li>" for query in plan.queries)
    looked = f"<p>Looked up:</p><ul>{queries}</ul>" if queries else '<p class="marag-quiet">Nothing was looked up.</p>'
    return f"{_line('Directive', plan.directive)}{_line('Suggestion', plan.suggestion)}{looked}"


def _outcome(row: Row) -> Stage:
    if row.get("error"):
        return Stage(part="outcome", title="no answer", body=_line("Error", str(row["error"])))
    scores = [f"{name} {100 * row[key]:.0f}" for name, key in (("EM", "em"), ("F1", "f1")) if row.get(key) is not None]
    reason = str(row.get("stop_reason") or "")
    rounds = row.get("rounds") or []
    better = row.get("chosen") is not None and len(rounds) > 1
    body = [
        _line("Answer", str(row.get("prediction") or "")),
        _line("Gold", str(row.get("gold") or "")),
        _line("Stopped", f"{STOPPED.get(reason, _words(reason))}." if reason else ""),
        _line("Returned", f"the draft of round {row['chosen']}, the best supported one." if better else ""),
        _line("Spent", _spent(row)),
    ]
    return Stage(part="outcome", title=", ".join(scores) or "not scored", body="".join(body))


def _spent(row: Row) -> str:
    tokens = row.get("tokens") or {}
    cost = row.get("cost_usd")
    parts = [
        f"{row['llm_calls']} calls" if row.get("llm_calls") is not None else "",
        f"{tokens['prompt']} + {tokens['completion']} tokens" if {"prompt", "completion"} <= set(tokens) else "",
        f"{row['latency_s']:.1f} s" if row.get("latency_s") is not None else "",
        f"{float(cost):.4f} USD" if cost is not None else "cost unknown",
    ]
    return ", ".join(part for part in parts if part)


def _titled(label: str, ids: Sequence[str], titles: Mapping[str, str]) -> str:
    if not ids:
        return ""
    names = "".join(f"<li>{escape(titles.get(id_) or _title(id_))}</li>" for id_ in ids)
    return f'<div class="marag-evidence"><span>{label}</span><ul>{names}</ul></div>'


def _title(passage_id: str) -> str:
    """A readable name from the id of a passage whose title nobody knows."""
    return _ID_DIGEST.sub("", passage_id).replace("-", " ")


def _line(label: str, text: str) -> str:
    return f"<p><strong>{label}:</strong> {escape(text)}</p>" if text.strip() else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.0%}"
