"""An overview of a run: its description, scores with intervals, tables and plots, as HTML with everything escaped."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

from pydantic import TypeAdapter

from ..agent.state import NO_DEFICIT, Round
from ..errors import InputError
from ..llm.providers import EMBEDDED
from ..retrieval.passage import Found
from ..settings import Settings
from ..shipped import shipped
from ..statistics.paired import paired_difference, permutation_p, verdict
from ..wording import FREE, counted, passage_name
from .cards import card, of_round, retrieval, round_cards, slider
from .run_files import LOOP, ONE_PASS, RIGHT, Row, Run, Stop, mapping, rounds_of
from .words import deficit, stop_reason


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


def quiet(text: str) -> str:
    """A less prominent line: a hint, or a placeholder."""
    return f'<p class="m-note">{escape(text)}</p>'


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


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


SHOWN = 200
"""The number of questions listed at once; the difference covers all."""

Pair = tuple[Row, Row]


def pairs(one: Run, method: str, other: Run, other_method: str) -> tuple[Pair, ...]:
    """The answers to their common questions; those that differ most in F1 first, then those with other wording.

    Raises `InputError` if they have no question in common, or if an id names different questions.
    """
    ours, theirs = _answers(one, method), _answers(other, other_method)
    shared = [(row, theirs[id_]) for id_, row in ours.items() if id_ in theirs]
    if not shared:
        raise InputError(
            f"{method!r} of {one.name!r} and {other_method!r} of {other.name!r} have no question in common; "
            "choose two runs over the same questions."
        )
    for ours_, theirs_ in shared:
        if ours_["question"] != theirs_["question"]:
            raise InputError(f"The id {ours_['id']!r} names different questions; choose two runs over the same data.")
    return tuple(sorted(shared, key=lambda pair: (-abs(_f1(pair[1]) - _f1(pair[0])), _said(pair[0]) == _said(pair[1]))))


def beside(found: Sequence[Pair], free: tuple[bool, bool] = (False, False)) -> str:
    """The difference in a sentence, and a table with a row per question; a failed answer scores 0.

    `free` tells for both sides whether a missing cost means that the model runs on this machine.
    """
    ours, theirs = ([_percent(row) for row in side] for side in zip(*found, strict=True))
    difference = paired_difference(ours, theirs)
    p = permutation_p(ours, theirs)
    known = verdict(difference, p) != "unknown"
    sentence = (
        f"Over {counted(len(found), 'question')}: F1 {_mean(ours):.1f} (A) and {_mean(theirs):.1f} (B). B minus A is "
        f"{difference.mean:+.1f} points, 95 % interval {difference.low:+.1f} to {difference.high:+.1f}, p = {p:.3f}: "
        f"{'a significant difference' if known else 'not statistically significant'}."
    )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("question", "answer A", "answer B", "F1 A", "F1 B", "calls A", "calls B", "cost A", "cost B")
    )
    lines = "".join(_line(pair, free) for pair in found[:SHOWN])
    hidden = quiet(f"The first {SHOWN} of {len(found)} are shown.") if len(found) > SHOWN else ""
    shown = scrolling(f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>", "Answers side by side")
    return f'<p class="m-verdict">{escape(sentence)}</p>{hidden}<div class="m-beside">{shown}</div>'


def _line(pair: Pair, free: tuple[bool, bool]) -> str:
    values = [text(row) for text in (_said, _score, _calls) for row in pair]
    values += [_cost(row, free=here) for row, here in zip(pair, free, strict=True)]
    cells = "".join(f"<td>{escape(value)}</td>" for value in values)
    differs = ' class="m-differs"' if _f1(pair[0]) != _f1(pair[1]) else ""
    return f'<tr{differs}><th scope="row">{escape(str(pair[0]["question"]))}</th>{cells}</tr>'


def _answers(run: Run, method: str) -> Mapping[str, Row]:
    return {row["id"]: row for row in run.rows if row["method"] == method}


def _f1(row: Row) -> float:
    return 0.0 if row.get("error") else float(row.get("f1") or 0.0)


def _percent(row: Row) -> float:
    return 100.0 * _f1(row)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _said(row: Row) -> str:
    return "failed" if row.get("error") else str(row.get("prediction") or "")


def _score(row: Row) -> str:
    return f"{_percent(row):.0f}"


def _calls(row: Row) -> str:
    calls = row.get("llm_calls")
    return "unknown" if calls is None else str(calls)


def _cost(row: Row, *, free: bool) -> str:
    cost = row.get("cost_usd")
    return f"${float(cost):.5f}" if cost is not None else "free" if free else "unknown"


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
    named = escape(deficit(str(diagnosis.get("deficit") or NO_DEFICIT)))
    found = f"<span>What the monitor found</span><strong>{named}</strong>"
    steps = (
        _side("First draft", str(first["draft"]["short_answer"]), float(first["f1"])),
        f"<div>{found}<small>{escape(str(diagnosis.get('rationale') or ''))}</small></div>",
        _side("Returned answer", str(row["prediction"]), float(row["f1"])),
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


def _side(name: str, answer: str, f1: float) -> str:
    verdict, kind = ("right", "m-right") if f1 >= RIGHT else ("wrong", "m-wrong")
    said = escape(answer or "nothing")
    return f'<div class="{kind}"><span>{name}</span><strong>{said}</strong><small>{verdict}</small></div>'


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
