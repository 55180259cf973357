"""The report's general plots, from the figures of a summary."""

from collections.abc import Mapping
from typing import Any

from ..plots import Plot, intervals, legend, ranges, scatter
from .figures import is_timed

Methods = Mapping[str, Mapping[str, Any]]
_RANKS = ("p50", "p90", "p99")


def quality_plot(methods: Methods, *, name: str = "quality", title: str = "Quality by method") -> Plot:
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

    return Plot(name=name, title=title, draw=draw, height=_height(methods))


def cost_plot(methods: Methods) -> Plot:
    """F1 against calls and, for methods with a known price, against dollars."""
    methods = _answered(methods)
    priced = any(figures["cost_usd"] is not None for figures in methods.values())

    def draw(figure: Any) -> None:
        every = figure.subplots(1, 2 if priced else 1, sharey=True, squeeze=False)[0]
        scatter(every[0], {name: _at(found, found["llm_calls"]) for name, found in methods.items()})
        every[0].set(xlabel="calls per question", ylabel="F1, percent")
        if priced:
            scatter(every[1], {name: _at(found, found["cost_usd"]) for name, found in methods.items()})
            every[1].set(xlabel="USD per question")
        for axes in every:
            axes.set_xlim(left=0)
            axes.grid(alpha=0.3)
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", fontsize="small", frameon=False)

    return Plot(name="cost", title="Quality against cost", draw=draw, width=9.0 if priced else 7.0)


def _answered(methods: Methods) -> Methods:
    return {name: figures for name, figures in methods.items() if figures["answered"]}


def _at(found: Mapping[str, Any], spent: float | None) -> tuple[float, float, float, float] | None:
    return None if spent is None else (spent / found["n"], found["f1"], *found["f1_ci95"])


def latency_plots(methods: Methods) -> list[Plot]:
    """Percentiles of the methods that have latencies; no plot if none has."""
    timed = {
        name: figures
        for name, figures in methods.items()
        if figures["latency_s"]["p50"] is not None and is_timed(figures)
    }

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        ranges(axes, list(timed), {rank: [found["latency_s"][rank] for found in timed.values()] for rank in _RANKS})
        axes.set_xlabel("seconds per question")
        axes.set_xlim(left=0)
        legend(axes)

    return [Plot(name="latency", title="Latency by method", draw=draw, height=_height(timed))] if timed else []


def _height(methods: Methods) -> float:
    return max(2.5, 0.4 * len(methods) + 1.5)
