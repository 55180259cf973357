"""How well the monitor's signals and its policy tell right first drafts from wrong ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..plots import Plot, legend, lines
from ..statistics import (
    area_under_risk_coverage,
    auroc,
    calibration_bins,
    expected_calibration_error,
    risk_coverage,
)
from ..tables import Table, number
from .analysis import Analysis, Figures, Material, Row

_CURVE_POINTS = 50
"""Points of a curve that the summary keeps, evenly spread; areas are computed from all."""


def _signal(name: str) -> Callable[[Row], float | None]:
    def read(round_: Row) -> float | None:
        value = (round_["signals"] or {}).get(name)
        return None if value is None else float(value)

    return read


SIGNALS: Mapping[str, Callable[[Row], float | None]] = {
    "similarity": _signal("similarity"),
    "agreement": _signal("agreement"),
    "verbatim": _signal("verbatim"),
    "not_abstained": lambda round_: float(not round_["draft"]["abstained"]),
    "policy": lambda round_: float(round_["satisfied"]),
}
"""What is judged: a figure read from a round that is higher for a draft to be trusted, `None` where missing."""
_LOWEST = {"similarity": -1.0}


def measure(material: Material) -> dict[str, Figures]:
    """Figures of each signal over the first drafts that were monitored, where the monitor is no oracle."""
    measured: dict[str, Figures] = {}
    for arm in material.looping(without_oracle="monitor"):
        firsts = [row["rounds"][0] for row in material.answered(arm)]
        drafts = [first for first in firsts if first["signals"] is not None]
        if drafts:
            right = [float(draft["em"] >= 1.0) for draft in drafts]
            measured[arm.name] = {
                "n": len(drafts),
                "right": int(sum(right)),
                **{name: judged([read(draft) for draft in drafts], right, name) for name, read in SIGNALS.items()},
            }
    return measured


def judged(values: Sequence[float | None], right: Sequence[float], name: str) -> dict[str, Any]:
    """AUROC, expected calibration error, and risk against coverage of one signal.

    A missing value counts as the lowest that the signal can take, and is counted. For calibration a value is read
    as a probability, a cosine below 0 as 0.
    """
    scores = [_LOWEST.get(name, 0.0) if value is None else value for value in values]
    probabilities = [min(1.0, max(0.0, score)) for score in scores]
    curve = risk_coverage(scores, right)
    area = auroc(scores, right)
    return {
        "missing": sum(value is None for value in values),
        "auroc": None if area is None else round(area, 4),
        "ece": round(expected_calibration_error(probabilities, right), 4),
        "aurc": round(area_under_risk_coverage(curve), 4),
        "bins": [
            {
                "low": round(one.low, 4),
                "high": round(one.high, 4),
                "n": one.n,
                "confidence": round(one.confidence, 4),
                "accuracy": round(one.accuracy, 4),
            }
            for one in calibration_bins(probabilities, right)
        ],
        "risk_coverage": [[round(coverage, 4), round(risk, 4)] for coverage, risk in _thinned(curve)],
    }


def _thinned(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    stride = math.ceil(len(curve) / _CURVE_POINTS)
    return [point for index, point in enumerate(curve, start=1) if index % stride == 0 or index == len(curve)]


def tables(figures: Figures) -> Sequence[Table]:
    """A row a signal."""
    rows = [
        (
            method,
            name,
            str(found["n"]),
            str(found[name]["missing"]),
            number(found[name]["auroc"], 3),
            number(found[name]["ece"], 3),
            number(found[name]["aurc"], 3),
        )
        for method, found in figures.items()
        for name in SIGNALS
    ]
    head = ("method", "signal", "drafts", "missing", "AUROC", "ECE", "AURC")
    return [Table(name="monitor", title="The monitor on first drafts", head=head, rows=rows)] if rows else []


def plots(figures: Figures) -> Sequence[Plot]:
    """Reliability and risk-coverage of every signal, a plot a method."""
    return [_plot(method, found, place) for place, (method, found) in enumerate(figures.items(), start=1)]


def _plot(method: str, found: Mapping[str, Any], place: int) -> Plot:
    def draw(figure: Any) -> None:
        reliability, risk = figure.subplots(1, 2)
        reliability.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        curves = {name: [(one["confidence"], one["accuracy"]) for one in found[name]["bins"]] for name in SIGNALS}
        lines(reliability, curves)
        reliability.set(
            xlabel="signal, read as a probability", ylabel="share of right drafts", xlim=(0, 1), ylim=(0, 1)
        )
        reliability.set_title("reliability", fontsize="small")
        lines(risk, {name: [(x, y) for x, y in found[name]["risk_coverage"]] for name in SIGNALS})
        risk.set(xlabel="share of drafts kept", ylabel="share of wrong ones among them", xlim=(0, 1.02), ylim=(0, 1))
        risk.set_title("risk and coverage", fontsize="small")
        legend(risk)

    title = f"Calibration of the monitor: {method}"
    return Plot(name="calibration" if place == 1 else f"calibration-{place}", title=title, draw=draw, width=9.0)


ANALYSIS = Analysis(
    name="monitor",
    title="Calibration of the monitor",
    about=(
        "How well each signal, and the policy made of them, tells first drafts that match a gold answer exactly.",
        "Over the monitored drafts of answered questions.",
        "AUROC 0.5 is chance; lower is better for the expected calibration error (ECE)",
        "and for the area under the risk-coverage curve (AURC).",
        "A missing signal counts as its lowest value; for ECE a cosine below 0 counts as 0.",
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    order=20,
)
