"""A run's answer, card by card in the loop's order, as HTML with all text from models and files escaped."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from ...agent.state import Round
from ...llm.providers import EMBEDDED
from ...retrieval.passage import Found
from ...settings import Settings
from ...wording import FREE, counted, passage_name
from ..loop.stages import card, of_round, retrieval, round_cards, slider
from ..words import stop_reason
from .files import Row, Run, rounds_of

_TOKENS = {"prompt", "completion"}
_OF_THE_MONITOR = {"monitor_policy": str, "monitor_similarity_threshold": float}


def cards(row: Row, one_pass: Row | None, texts: Mapping[str, Found], settings: Settings) -> tuple[str, ...]:
    """All steps of an answer; the last one is its outcome, next to that of a single pass if available.

    A run references passages by id: `texts` are the known ones. `settings` are those of the run.
    Raises `InputError` for a damaged row.
    """
    found: list[str] = []
    before: Round | None = None
    known: tuple[str, ...] = ()
    for round_ in rounds_of(row):
        here = {id_: texts[id_] for id_ in dict.fromkeys((*known, *round_.evidence_ids)) if id_ in texts}
        if before is None and round_.evidence_ids:
            found.append(_evidence(round_.evidence_ids, here))
        found += of_round(round_.index, round_cards(round_, before, here, settings, known=known))
        before, known = round_, round_.evidence_ids
    return (*found, _outcome(row, one_pass, free=settings.llm_provider == EMBEDDED))


def settings_of(run: Run, settings: Settings) -> Settings:
    """These settings with the run's own monitor and provider, if recorded."""
    recorded = {name: run.setting(name) for name in _OF_THE_MONITOR}
    own = {name: value for name, value in recorded.items() if isinstance(value, _OF_THE_MONITOR[name])}
    return settings.model_copy(update={**own, "llm_provider": run.provider})


def link_to(run: str, row: Row) -> str:
    """The address of an answer, within the app."""
    return f"?{urlencode({'run': run, 'question': row['id'], 'method': row['method']})}"


def shown(row: Row, taken: Sequence[str], of: int, link: str) -> str:
    """The question and the steps taken so far; `of` is their total number."""
    about = f"Method {row['method']}, step {len(taken)} of {of}."
    steps = "".join(taken)
    rounds = sum(f'data-round="{index}"' in steps for index in range(len(row.get("rounds") or ())))
    linked = f'<a href="{escape(link)}">Link to this answer</a>' if link else ""
    return (
        f'<section aria-label="Replay"><h3 class="m-side-head" title="{escape(str(row["id"]))}">'
        f"{escape(str(row.get('question', '')))}</h3>"
        f'<p class="m-note">{escape(about)} {linked}</p>'
        f'<div class="m-stages">{slider(rounds)}{steps}</div></section>'
    )


def _evidence(ids: Sequence[str], known: Mapping[str, Found]) -> str:
    if all(id_ in known for id_ in ids):
        return retrieval([known[id_] for id_ in ids])
    names = "".join(f"<li>{escape(passage_name(id_))}</li>" for id_ in ids)
    body = f'<ul class="m-queries">{names}</ul><p class="m-note">The run contains their names, not their texts.</p>'
    return card("retrieval", "Retrieval", f"{counted(len(ids), 'initial passage')}", body)


def _outcome(row: Row, one_pass: Row | None, *, free: bool) -> str:
    if row.get("error"):
        return card("doubted", "Answer", "None", f"<p>{escape(str(row['error']))}</p>")
    rounds: Sequence[Mapping[str, Any]] = row.get("rounds") or []
    repaired = len(rounds) > 1
    parts = []
    if one_pass is not None and one_pass is not row:
        parts.append(_scored(f"One pass ({one_pass['method']})", str(one_pass.get("prediction") or ""), one_pass))
    if repaired:
        first = rounds[0].get("draft") or {}
        parts.append(_scored("First draft of the loop", str(first.get("short_answer", "")), rounds[0]))
    parts.append(_scored("Returned answer", str(row.get("prediction") or ""), row))
    reason, p_correct = row.get("stop_reason"), _p_correct(row, rounds)
    notes = [
        f"Gold answer: {row.get('gold')}.",
        stop_reason(reason, p_correct) if isinstance(reason, str) else "",
        "" if p_correct is None else f"Estimated probability of being correct: {p_correct:.0%}.",
        _spent(row, free=free),
    ]
    doubted = any(round_.get("signals") for round_ in rounds)
    title = "The first draft was kept" if doubted else "The first draft, unchanged"
    if repaired:
        title = f"Best supported of {len(rounds)} drafts: {_draft_name(row.get('chosen'))}"
    remarks = "".join(f'<p class="m-note">{escape(note)}</p>' for note in notes if note)
    return card("outcome", "Answer", title, f'<div class="m-gain">{"".join(parts)}</div>{remarks}')


def _draft_name(chosen: object) -> str:
    return f"the one after repair {chosen}" if chosen else "the first one"


def _p_correct(row: Row, rounds: Sequence[Mapping[str, Any]]) -> float | None:
    chosen = row.get("chosen")
    p_correct = rounds[chosen].get("p_correct") if isinstance(chosen, int) and chosen < len(rounds) else None
    return p_correct if isinstance(p_correct, float) else None


def _scored(name: str, answer: str, scored: Mapping[str, Any]) -> str:
    figures = [f"{label} {100 * scored[key]:.0f}" for label, key in (("EM", "em"), ("F1", "f1")) if key in scored]
    kind = "m-right" if scored.get("em") else "m-wrong"
    return (
        f'<div class="{kind}"><span>{name}</span><strong>{escape(answer)}</strong>'
        f"<small>{escape(' · '.join(figures))}</small></div>"
    )


def _spent(row: Row, *, free: bool) -> str:
    tokens = row.get("tokens") or {}
    cost = row.get("cost_usd")
    parts = [
        counted(row["llm_calls"], "call") if "llm_calls" in row else "",
        f"{tokens['prompt']:,} tokens read, {tokens['completion']:,} written" if set(tokens) >= _TOKENS else "",
        f"{row['latency_s']:.1f} s" if "latency_s" in row and row.get("timed", True) else "",
        f"${float(cost):.5f}" if cost is not None else FREE if free else "price unknown",
    ]
    return " · ".join(part for part in parts if part)
