"""An overview of a run: its description, scores with intervals, tables and plots, as HTML with everything escaped."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ...wording import counted
from .files import Run, mapping


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
