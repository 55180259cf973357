"""The report's general tables and plots, and the score table on the terminal, from the figures of a summary."""

from collections.abc import Mapping
from typing import Any

from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import counted

from ..metrics import SCORES
from ..plots import Plot, intervals, legend, scatter
from ..rows.survival import STAGES
from ..run.config import RunConfig
from ..tables import Cells, Table, number, with_interval

Methods = Mapping[str, Mapping[str, Any]]
HEAD: Cells = (
    *("method", "EM [95 %]", "F1 [95 %]", "prec. [95 %]", "rec. [95 %]"),
    *("fired", "fixed", "broken", "calls", "USD", "p50 s"),
)


def quality(
    methods: Methods, *, free: bool = False, table: str = "quality", title: str = "Quality by method, percent"
) -> Table:
    """One row per method, with the judge's figure and the number of answers that it covers, if a judge was used."""
    judged = any("judge" in figures for figures in methods.values())
    head = (*HEAD, "judge [95 %]") if judged else HEAD
    rows = [
        (*method_cells(method, figures, free=free), *_judge(figures, judged)) for method, figures in methods.items()
    ]
    return Table(name=table, title=title, head=head, rows=rows)


def _judge(figures: Mapping[str, Any], judged: bool) -> Cells:
    if not judged:
        return ()
    if "judge" not in figures:
        return ("-",)
    over = f"({figures['judged']} of {figures['judged'] + figures['judge_missing']})"
    value = figures["judge"]
    return (f"{'-' if value is None else with_interval(value, figures['judge_ci95'])} {over}",)


def method_cells(name: str, figures: Mapping[str, Any], *, free: bool = False) -> Cells:
    """The row of a method, as `HEAD` has it."""
    fired = figures["trigger_rate"]
    return (
        name,
        with_interval(figures["em"], figures["em_ci95"]),
        with_interval(figures["f1"], figures["f1_ci95"]),
        with_interval(figures["precision"], figures["precision_ci95"]),
        with_interval(figures["recall"], figures["recall_ci95"]),
        "-" if fired is None else f"{fired:.0%}",
        str(figures["fixed"]),
        str(figures["broken"]),
        str(figures["llm_calls"] or "-"),  # may be unknown for imported answers
        _usd(figures["cost_usd"], free=free),
        _seconds(figures, "p50"),
    )


def _seconds(figures: Mapping[str, Any], rank: str) -> str:
    """A percentile for a cell; a time shortened by the response cache is no latency."""
    latency = figures["latency_s"]
    if latency[rank] is not None and ("timed" in latency or not latency["cached_calls"]):
        return f"{latency[rank]:.2f}"
    return "cached" if latency["cached_calls"] else "-"


def _usd(amount: float | None, *, free: bool, digits: int = 4) -> str:
    """Dollars for a cell: free if the model runs on this machine."""
    return f"{amount:.{digits}f}" if amount is not None else "free" if free else "unknown"


def supporting(methods: Methods) -> Table:
    """Supporting facts and joint scores of the methods that quote."""
    rows = [
        (
            method,
            what,
            str(figures[part]["n"]),
            *(with_interval(figures[part][score], figures[part][f"{score}_ci95"]) for score in SCORES),
        )
        for method, figures in methods.items()
        for what, part in (("supporting facts", "support"), ("joint", "joint"))
        if part in figures
    ]
    head = ("method", "score", "questions", "EM [95 %]", "F1 [95 %]", "prec. [95 %]", "rec. [95 %]")
    return Table(name="supporting-facts", title="Supporting facts and joint scores, percent", head=head, rows=rows)


def cost(methods: Methods, *, free: bool = False) -> Table:
    """Cost per question, by method."""
    rows = [
        (
            method,
            number(figures["f1"]),
            number(figures["llm_calls"] / _reached(figures), 2),
            *(_tokens(figures, kind) for kind in ("prompt", "cache_hit", "completion", "reasoning")),
            _usd(None if figures["cost_usd"] is None else figures["cost_usd"] / _reached(figures), free=free, digits=6),
        )
        for method, figures in methods.items()
        if figures["llm_calls"]
    ]
    tokens = ("prompt tokens", "of which cached", "completion tokens", "of which reasoning")
    return Table(name="cost", title="Cost per question", head=("method", "F1", "calls", *tokens, "USD"), rows=rows)


def _tokens(figures: Mapping[str, Any], kind: str) -> str:
    tokens = figures["tokens"].get(kind, 0)
    return "unknown" if tokens is None else f"{tokens / _reached(figures):.0f}"


def _reached(figures: Mapping[str, Any]) -> int:
    """The questions that were asked so far: a run may have been stopped."""
    return max(1, int(figures["answered"]) + int(figures["errors"]))


def latency(methods: Methods) -> Table:
    """Seconds per question, by method."""
    ranks = ("p50", "p75", "p90", "p99")
    rows = [
        (method, *(_seconds(found, rank) for rank in ranks), number(found["latency_s"].get("waiting_mean"), 2))
        for method, found in methods.items()
    ]
    return Table(name="latency", title="Seconds per question", head=("method", *ranks, "mean wait"), rows=rows)


def survival(methods: Methods, of_what: str, *, name: str, title: str) -> Table:
    """What is still present after each stage, by round; no rows if the data set has no labels."""
    rows = [
        (method, str(stage["round"]), str(stage["n"]), *(number(stage[one]) for one in STAGES))
        for method, figures in methods.items()
        for stage in figures[of_what]
    ]
    return Table(name=name, title=title, head=("method", "round", "questions", *STAGES), rows=rows)


def quality_plot(methods: Methods) -> Plot:
    """EM and F1 with their intervals, one row per method with answers."""
    methods = _answered(methods)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        series = {
            score.upper(): [(found[score], *found[f"{score}_ci95"]) for found in methods.values()]
            for score in ("em", "f1")
        }
        intervals(axes, list(methods), series)
        axes.set_xlabel("percent, with 95 % intervals")
        axes.set_xlim(0, 100)
        legend(axes)

    return Plot(name="quality", title="Quality by method", draw=draw, height=max(2.5, 0.4 * len(methods) + 1.5))


def cost_plot(methods: Methods) -> Plot:
    """F1 against calls per question."""
    methods = _answered(methods)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        points = {name: (one["llm_calls"] / _reached(one), one["f1"], *one["f1_ci95"]) for name, one in methods.items()}
        scatter(axes, points)
        axes.set(xlabel="calls per question", ylabel="F1, percent")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        legend(axes)

    return Plot(name="cost", title="Quality against cost", draw=draw)


def _answered(methods: Methods) -> Methods:
    return {name: figures for name, figures in methods.items() if figures["answered"]}


def mixed(methods: Methods) -> str:
    """The caveat of every table if more than one model answered; empty if only one did, or if it is not known."""
    models = {model for figures in methods.values() for model in figures.get("models", ())}
    return "mixed models" if len(models) > 1 else ""


_LEFT_OUT_FIRST = ("prec. [95 %]", "rec. [95 %]", "broken", "fixed", "fired", "calls", "p50 s", "USD")
"""Columns that a narrow terminal does without, so that every name is whole."""


def show(config: RunConfig, summary: Mapping[str, Any]) -> None:
    """Print a row for each method, with the columns that fit beside each other, and intervals without decimals."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    title = f"{config.dataset}, {config.mode}, {counted(summary['n'], 'question')} (percent)"
    if caveat := mixed(summary["methods"]):
        title = f"{title}, {caveat}: see report.md"
    free = runs_here(config.settings)
    rows = []
    for name, figures in summary["methods"].items():
        row = dict(zip(HEAD, method_cells(name, figures, free=free), strict=True))
        for score in ("em", "f1"):
            if figures[score] is not None:
                low, high = figures[f"{score}_ci95"]
                row[f"{score.upper()} [95 %]"] = f"{figures[score]:.1f} [{low:.0f}, {high:.0f}]"
        rows.append(row)
    widths = {column: max(len(row[column]) for row in ({column: column}, *rows)) + 1 for column in HEAD}
    console = Console()
    for column in _LEFT_OUT_FIRST:
        if sum(widths.values()) - 1 > console.width:
            del widths[column]
    table = Grid(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
    for column in widths:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(row[column]) for column in widths))
    console.print(table)
    console.print()
