"""Recorded runs as HTML: an answer with its steps, a run's scores with intervals, tables and plots, and the gain."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

from pydantic import TypeAdapter

from ..agent.engine import Answer
from ..agent.state import NO_DEFICIT, MethodStop, State
from ..llm.providers import EMBEDDED
from ..retrieval.passage import Found
from ..settings import Settings
from ..shipped import shipped
from ..wording import FREE, counted
from .cards import card, cards, cards_with_slider, cell, outcome, quiet
from .run_files import LOOP, ONE_PASS, RIGHT, Row, Run, Stop, mapping, rounds_of
from .stepping import LoopView
from .words import deficit


def about(run: Run) -> str:
    """A description of the run in a sentence; empty for a run without answers."""
    if not run.rows:
        return ""
    experiment = mapping(run.config.get("experiment"))
    facts = {name: run.summary.get(name, experiment.get(name)) for name in ("dataset", "mode", "n", "seed")}
    questions = facts["n"] or len({row["id"] for row in run.rows})
    provider = mapping(run.config.get("provider"))
    models = provider.get("embedded_model") or ", ".join(dict.fromkeys(mapping(provider.get("models")).values()))
    parts = [
        f"Data set {facts['dataset']}" if facts["dataset"] else "",
        _words(str(facts["mode"] or "")),
        counted(questions, "question"),
        f"seed {facts['seed']}" if facts["seed"] is not None else "",
        f"model {models}" if models else "",
    ]
    small = provider.get("name") == "embedded"
    note = (
        "The embedded model is a very small one: read this run for how the loop works, not for how well it can answer."
    )
    return f"<p>{escape(', '.join(part for part in parts if part))}.</p>{quiet(note) if small else ''}"


_QUALITY_HEAD = ("method", "F1", "EM", "repaired", "wrong first drafts fixed", "right first drafts broken")


def quality(run: Run) -> str:
    """EM and F1 of each method as bars with 95 % intervals, the best F1 first, with the figures next to the bars."""
    scored = {
        name: figures
        for name, figures in (run.summary.get("methods") or {}).items()
        if isinstance(figures, dict) and {"em", "f1", "em_ci95", "f1_ci95"} <= set(figures)
    }
    if not scored:
        return quiet("This run has no summary yet: it was stopped, or is still in progress.")
    ordered = sorted(scored.items(), key=lambda item: -float(item[1]["f1"]))
    lines = "".join(_scores(name, figures) for name, figures in ordered)
    names = "".join(f'<th scope="col">{name}</th>' for name in _QUALITY_HEAD)
    return scrolling(f"<thead><tr>{names}</tr></thead><tbody>{lines}</tbody>", "Scores in percent with 95 % intervals")


def table(rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table of the report; the first row is its header."""
    if not rows:
        return quiet("There is no such table.")
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return scrolling(f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>", caption)


def plots(run: Run) -> str:
    """The plots of the report as embedded images; each takes the full width once opened."""
    if not run.plots:
        return quiet("This run has no plots; they are drawn at the end of a run.")
    images = "".join(
        f'<details><summary title="Show at full width, or small again">'
        f'<img alt="Plot: {escape(_words(name))}" src="data:image/png;base64,{b64encode(raw).decode()}">'
        f"<span>{escape(_words(name))}</span></summary></details>"
        for name, raw in run.plots.items()
    )
    return f'<div class="m-plots">{images}</div>'


def scrolling(cells: str, caption: str) -> str:
    """A table that scrolls if it is wider than the page."""
    named = escape(caption)
    return (
        f'<div class="m-scroll" tabindex="0" role="region" aria-label="{named}"><table><caption>{named}</caption>'
        f"{cells}</table></div>"
    )


def _scores(name: str, figures: Mapping[str, Any]) -> str:
    fired = figures.get("trigger_rate")
    cells = [
        f'<th scope="row">{escape(name)}</th>',
        *(f"<td>{_bar(float(figures[score]), figures[f'{score}_ci95'])}</td>" for score in ("f1", "em")),
        f"<td>{'-' if fired is None else f'{fired:.0%}'}</td>",
        *(f"<td>{escape(str(figures.get(count, '-')))}</td>" for count in ("fixed", "broken")),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _bar(value: float, interval: Sequence[float]) -> str:
    low, high = (min(100.0, max(0.0, float(end))) for end in interval)
    return (
        f'<span class="m-score"><span class="m-bar" style="width:{min(100.0, max(0.0, value)):.1f}%"></span>'
        f'<span class="m-interval" style="left:{low:.1f}%;width:{high - low:.1f}%"></span></span>'
        f"<span>{value:.1f} <small>[{low:.0f}, {high:.0f}]</small></span>"
    )


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


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
        return (*steps, card("doubted", "Answer", "None", f"<p>{escape(str(row['error']))}</p>"))
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
    steps = "".join(taken)
    rounds = sum(f'data-round="{index}"' in steps for index in range(len(row.get("rounds") or ())))
    address = f"?{escape(urlencode(place))}" if place else ""
    linked = f'<a href="{address}">Link to this answer</a>' if place else ""
    return (
        f'<section aria-label="Replay" data-place="{address}"><h3 class="m-side-head" title="{escape(str(row["id"]))}">'
        f"{escape(str(row.get('question', '')))}</h3>"
        f'<p class="m-note">Method {escape(row["method"])}, step {len(taken)} of {of}. {linked}</p>'
        f"{cards_with_slider(taken, rounds)}</section>"
    )


def _spent(row: Row, *, free: bool) -> str:
    tokens, cost = row.get("tokens") or {}, row.get("cost_usd")
    parts = [
        counted(row["llm_calls"], "call") if "llm_calls" in row else "",
        f"{tokens['prompt']:,} tokens read, {tokens['completion']:,} written" if "prompt" in tokens else "",
        f"{row['latency_s']:.1f} s" if "latency_s" in row and row.get("timed", True) else "",
        f"${float(cost):.5f}" if cost is not None else FREE if free else "price unknown",
    ]
    return " · ".join(part for part in parts if part)


_TERMS = (
    (
        "Derivation",
        "A second way to an answer: the question is broken into single facts, each fact is looked up in the passages, "
        "and code, not the model, combines them.",
    ),
    (
        "Vote",
        "The draft, the derivation and, while it is undecided, further answers of the model vote; answers in the same "
        "words support each other. If another answer than the draft's wins, the draft is questioned.",
    ),
    (
        "Deficit",
        "What is wrong with a draft: a fact is missing (insufficient knowledge) or left to memory (internal only), it "
        "strays from the passages (external only), or joins facts wrongly (reasoning error).",
    ),
)


_ASKED = "What are a derivation, the vote and a deficit, and what does the loop gain?"
_DEVELOPED = (
    "The loop was developed with these questions, so they only show how it works; docs/findings.md has its gain on "
    "others."
)


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """F1 of one pass and of the loop over `n` held-out questions, and the paired gain with its 95 % interval."""

    dataset: str
    n: int
    one_pass: float
    loop: float
    gain: float
    low: float
    high: float
    p: float


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
    results = TypeAdapter(tuple[HeldOut, ...]).validate_json(shipped("held_out.json").read_bytes())
    sizes = ", ".join(f"{one.dataset} {one.n}" for one in results)
    return (
        '<section class="m-card m-opening" aria-label="What the loop gains"><div>'
        f'<h3>{escape(str(row["question"]))}</h3><div class="m-gain">{"".join(steps)}</div></div>'
        f"<div><h3>F1 gained over one pass of the same 1.5B model</h3>{_chart(results)}"
        f'<p class="m-note">Paired differences with 95 % intervals on held-out questions ({escape(sizes)}).</p>'
        "</div></section>"
    )


def _chart(results: Sequence[HeldOut]) -> str:
    """A bar for each gain with its interval; one whose interval includes zero is grey."""
    width, left, row, scale = 460, 130, 38, 5.2
    zero = left + 6 * scale
    parts = [f'<path d="M{zero:.0f} 0V{row * len(results)}" class="m-edge"/>']
    for place, one in enumerate(results):
        y = place * row
        low, high, end = (round(zero + scale * value) for value in (one.low, one.high, one.gain))
        ends = f"M{low} {y + 10}V{y + 18}M{high} {y + 10}V{y + 18}"
        kind = "m-sure" if one.low > 0 else "m-unsure"
        words = f"{one.gain:+.1f} [{one.low:.1f}, {one.high:.1f}]"
        parts.append(
            f'<text x="0" y="{y + 17}">{escape(one.dataset)}</text>'
            f'<text x="0" y="{y + 31}" class="m-caption">{one.one_pass:.1f} to {one.loop:.1f} F1</text>'
            f'<rect x="{min(zero, end):.0f}" y="{y + 7}" width="{abs(end - zero):.0f}" height="14" class="{kind}"/>'
            f'<path d="M{low} {y + 14}H{high}{ends}" class="m-whisker"/>'
            f'<text x="{width}" y="{y + 33}" text-anchor="end" class="m-caption">{words}</text>'
        )
    label = "; ".join(f"{one.dataset}: {one.gain:+.1f} points, from {one.low:.1f} to {one.high:.1f}" for one in results)
    size = f'viewBox="0 0 {width} {row * len(results) + 2}"'
    return f'<svg class="m-chart" {size} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def primer(runs: Iterable[Run]) -> str:
    """The terms, and a sentence with figures for each run that has both the loop and a single pass."""
    terms = "".join(f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in _TERMS)
    gained = " ".join([*filter(None, map(_gained, runs)), _DEVELOPED])
    opened = f'<details class="m-primer"><summary>{_ASKED}</summary>'
    return f'{opened}<dl class="m-facts">{terms}</dl><p class="m-note">{escape(gained)}</p></details>'


def _gained(run: Run) -> str:
    methods = run.summary.get("methods") or {}
    if not {LOOP, ONE_PASS} <= set(methods):
        return ""
    loop, one_pass = methods[LOOP], methods[ONE_PASS]
    n = int(loop["n"])
    ours, theirs = (float(each["llm_calls"]) / n for each in (loop, one_pass))
    return (
        f"{run.name.removeprefix('recorded: ')}, {counted(n, 'question')}: F1 of one pass "
        f"{_with_interval(one_pass['f1'], one_pass['f1_ci95'])}, of the loop "
        f"{_with_interval(loop['f1'], loop['f1_ci95'])}, with {ours:.1f} calls per question instead of {theirs:.1f}."
    )


def _with_interval(value: float, interval: "list[float]") -> str:
    low, high = interval
    return f"{value:.0f} % (95 % interval {low:.0f} to {high:.0f})"
