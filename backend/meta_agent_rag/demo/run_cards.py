"""Recorded runs as HTML: an answer with its steps, a run's tables and plots, and what the loop gains."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from ..agent.engine import Answer
from ..agent.state import NO_DEFICIT, MethodStop, State
from ..llm.providers import EMBEDDED
from ..retrieval.passage import Found
from ..settings import Settings
from ..shipped import shipped
from ..wording import FREE, counted
from .cards import card, cards, cell, outcome, quiet
from .run_files import RIGHT, Row, Run, Stop, mapping, rounds_of
from .stepping import LoopView
from .vocabulary import deficit, spoken, without_addresses


def about(run: Run) -> str:
    """A description of the run in a sentence, with its address within the app; empty for a run without answers."""
    if not run.rows:
        return ""
    experiment, provider = mapping(run.config.get("experiment")), mapping(run.config.get("provider"))
    facts = {name: run.summary.get(name, experiment.get(name)) for name in ("dataset", "mode", "n", "seed")}
    models = provider.get("embedded_model") or ", ".join(dict.fromkeys(mapping(provider.get("models")).values()))
    questions = counted(facts["n"] or len({row["id"] for row in run.rows}), "question")
    named = {"data set": facts["dataset"], "mode": facts["mode"], "seed": facts["seed"], "model": models or None}
    parts = [questions, *(f"{name} {value}" for name, value in named.items() if value is not None)]
    return f'<p data-place="{_address({"run": run.name})}">{escape(", ".join(parts))}.</p>'


def plots(run: Run) -> str:
    """The plots of the report as embedded images; each takes the full width once opened."""
    if not run.plots:
        return quiet("This run has no plots; they are drawn at the end of a run.")
    images = ""
    for name, raw in run.plots.items():
        label, source = escape(spoken(name).replace("-", " ")), f"data:image/png;base64,{b64encode(raw).decode()}"
        images += (
            '<details><summary title="Show at full width, or small again">'
            f'<img alt="Plot: {label}" src="{source}"><span>{label}</span></summary></details>'
        )
    return f'<div class="m-plots">{images}</div>'


def settings_of(run: Run, settings: Settings) -> Settings:
    """These settings with the run's own monitor and provider, if recorded."""
    recorded = {"monitor_policy": str, "monitor_similarity_threshold": float}
    own = {name: value for name, kind in recorded.items() if isinstance(value := run.setting(name), kind)}
    return settings.model_copy(update={**own, "llm_provider": run.provider})


def replayed(row: Row, one_pass: Row | None, texts: Mapping[str, Found], settings: Settings) -> tuple[str, ...]:
    """All steps of an answer; the last one is its outcome, next to that of a single pass if available.

    A run references passages by id: `texts` are the known ones. `settings` are those of the run.
    Raises `InputError` for a damaged row.
    """
    rounds, stop = rounds_of(row), str(row.get("stop_reason"))
    found = tuple(
        texts[id_] for id_ in dict.fromkeys(id_ for one in rounds for id_ in one.evidence_ids) if id_ in texts
    )
    question, state = str(row.get("question")), State(evidence=found, rounds=rounds)
    steps = cards(LoopView(question=question, state=state, status="done"), settings)
    if row.get("error"):
        return (*steps, card("doubted", "Answer", "None", f"<p>{escape(without_addresses(str(row['error'])))}</p>"))
    answer = Answer(
        question=question,
        text=str(row.get("answer") or ""),
        short_answer=str(row.get("prediction") or ""),
        stop_reason=MethodStop(stop),
        chosen=row.get("chosen") or 0,
        rounds=rounds,
        evidence=found,
        dropped=(),
        calls=(),
    )
    others = {}
    if one_pass is not None and one_pass is not row:
        others[f"One pass ({one_pass['method']})"] = str(one_pass.get("prediction") or "")
    golds = [str(gold) for gold in (row.get("gold"), *(row.get("aliases") or ())) if gold]
    return (*steps, outcome(answer, golds, others=others, spent=_spent(row, free=settings.llm_provider == EMBEDDED)))


def shown(row: Row, taken: Sequence[str], of: int, place: Mapping[str, str]) -> str:
    """The question and the steps taken so far of all; `place` is the address of the answer within the app."""
    address = _address(place)
    return (
        f'<section aria-label="Replay" data-place="{address}"><h3 class="m-side-head" title="{escape(str(row["id"]))}">'
        f"{escape(str(row.get('question', '')))}</h3>"
        f'<p class="m-note">Method {escape(row["method"])}, step {len(taken)} of {of}. '
        f'<a href="{address}">Link to this answer</a></p><div class="m-stages">{"".join(taken)}</div></section>'
    )


def _address(place: Mapping[str, str]) -> str:
    return f"?{escape(urlencode(place))}"


def _spent(row: Row, *, free: bool) -> str:
    tokens, cost = row.get("tokens") or {}, row.get("cost_usd")
    parts = [
        counted(row["llm_calls"], "call") if "llm_calls" in row else "",
        f"{tokens['prompt']:,} tokens read, {tokens['completion']:,} written" if "prompt" in tokens else "",
        f"{row['latency_s']:.1f} s" if "latency_s" in row and row.get("timed", True) else "",
        f"${float(cost):.5f}" if cost is not None else FREE if free else "price unknown",
    ]
    return " · ".join(part for part in parts if part)


def opening(stop: Stop) -> str:
    """What the loop gains: one question before and after, and the held-out result of each data set as a chart."""
    row = stop.row
    first = row["rounds"][0]
    diagnosis = first.get("diagnosis") or {}
    named, why = deficit(str(diagnosis.get("deficit") or NO_DEFICIT)), str(diagnosis.get("rationale") or "")
    before, after = (
        ("right", "m-right") if float(one["f1"]) >= RIGHT else ("wrong", "m-wrong") for one in (first, row)
    )
    steps = (
        cell("First draft", str(first["draft"]["short_answer"]), *before),
        cell("What the monitor found", named, why),
        cell("Returned answer", str(row["prediction"]), *after),
    )
    results = json.loads(shipped("held_out.json").read_bytes())
    sizes = ", ".join(f"{one['dataset']} {one['n']}" for one in results)
    return (
        '<section class="m-card m-opening" aria-label="What the loop gains"><div>'
        f'<h3>{escape(str(row["question"]))}</h3><div class="m-gain">{"".join(steps)}</div></div>'
        f"<div><h3>F1 gained over one pass of the same 1.5B model</h3>{_chart(results)}"
        f'<p class="m-note">Paired differences with 95 % intervals on held-out questions ({escape(sizes)}).</p>'
        "</div></section>"
    )


def _chart(results: Sequence[Mapping[str, Any]]) -> str:
    """A bar for each gain in F1 with its 95 % interval; one whose interval includes zero is grey."""
    width, left, row, scale = 300, 118, 38, 4.2  # so narrow that its text can be read on a phone
    zero = left + 3 * scale
    parts, labels = [f'<path d="M{zero:.0f} 0V{row * len(results)}" class="m-edge"/>'], []
    for place, one in enumerate(results):
        y, name, gain = place * row, escape(one["dataset"]), f"{one['gain']:+.1f}"
        low, high, end = (round(zero + scale * one[figure]) for figure in ("low", "high", "gain"))
        ends = f"M{low} {y + 10}V{y + 18}M{high} {y + 10}V{y + 18}"
        kind = "m-sure" if one["low"] > 0 else "m-unsure"
        scores = f"{one['one_pass']:.1f} to {one['loop']:.1f} F1"
        labels.append(f"{name}: {gain} points, {scores}")
        parts.append(
            f'<text x="0" y="{y + 17}">{name}</text><text x="0" y="{y + 31}" class="m-caption">{scores}</text>'
            f'<rect x="{min(zero, end):.0f}" y="{y + 7}" width="{abs(end - zero):.0f}" height="14" class="{kind}"/>'
            f'<path d="M{low} {y + 14}H{high}{ends}" class="m-whisker"/>'
            f'<text x="{width}" y="{y + 33}" text-anchor="end" class="m-caption">'
            f"{gain} [{one['low']:.1f}, {one['high']:.1f}]</text>"
        )
    size = f'viewBox="0 0 {width} {row * len(results) + 2}"'
    return f'<svg class="m-chart" {size} role="img" aria-label="{"; ".join(labels)}">{"".join(parts)}</svg>'
