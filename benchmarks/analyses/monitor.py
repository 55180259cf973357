"""How well the monitor's signals and its policy separate right first drafts from wrong ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from meta_agent_rag.text.normalise import normalised

from ..plots import Plot, legend, lines
from ..run.arms import Arm
from ..statistics import (
    area_under_risk_coverage,
    auroc,
    auroc_interval,
    calibration_bins,
    expected_calibration_error,
    risk_coverage,
)
from ..tables import Table, number, with_interval
from .analysis import Analysis, Figures, Material, Row

_CURVE_POINTS = 50
"""Number of evenly spaced points of a curve in the summary; areas are computed from all points."""


def _signal(name: str) -> Callable[[Row], float | None]:
    def read(round_: Row) -> float | None:
        value = (round_["signals"] or {}).get(name)
        return None if value is None else float(value)

    return read


def _fact(name: str) -> Callable[[Row], float | None]:
    def read(round_: Row) -> float | None:
        value = round_.get(name)
        return None if value is None else float(value)

    return read


def _kept(signals: Row) -> float | None:
    """Is the answer of the kind that the question asks for? `None` in rows that predate this signal."""
    return float(signals["of_kind"] is not False) if "of_kind" in signals else None


SIGNALS: Mapping[str, Callable[[Row], float | None]] = {
    "similarity": _signal("similarity"),
    "agreement": _signal("agreement"),
    "verbatim": _signal("verbatim"),
    "not_abstained": lambda round_: float(not round_["draft"]["abstained"]),
    "not_of_another_kind": lambda round_: _kept(round_["signals"] or {}),
    "overlap": _signal("overlap"),
    "coverage": _signal("coverage"),
    "quoted": _signal("quoted"),
    "logprob": _signal("logprob"),
    "confidence": _signal("confidence"),
    "second_sample": _fact("second_sample"),
    "p_correct": lambda round_: _fact("p_correct")(round_) if "p_correct" in round_ else _fact("chance")(round_),
    "policy": lambda round_: float(round_["satisfied"]),
}
"""A signal: a figure read from a round, higher for more trustworthy drafts, `None` if missing."""
_ALWAYS = ("similarity", "agreement", "verbatim", "not_abstained", "policy")
"""Signals that are evaluated in every run; the others only if a draft has them."""
_LOWEST = {"similarity": -1.0, "logprob": -20.0}
_SECOND = "standard_rag"
"""The method whose answer is the second sample: one call over the same evidence."""


def measure(material: Material) -> dict[str, Figures]:
    """Figures of each signal over the monitored first drafts, for arms without an oracle monitor."""
    measured: dict[str, Figures] = {}
    second = _second_samples(material)
    for arm in material.looping(without_oracle="monitor"):
        drafts = [first for first in _firsts(material, arm, second) if first["signals"] is not None]
        if drafts:
            right = [float(draft["em"] >= 1.0) for draft in drafts]
            values = {name: [read(draft) for draft in drafts] for name, read in SIGNALS.items()}
            measured[arm.name] = {
                "n": len(drafts),
                "right": int(sum(right)),
                **{
                    name: judged(found, right, name, seed=material.seed)
                    for name, found in values.items()
                    if name in _ALWAYS or any(value is not None for value in found)
                },
            }
    return measured


def _firsts(material: Material, arm: Arm, second: Mapping[str, str]) -> list[dict[str, Any]]:
    """First rounds of answered questions; `second_sample` says whether the other method gave the same answer."""
    return [
        {**first, "second_sample": None if other is None else _short(first) == other}
        for first, other in ((row["rounds"][0], second.get(row["id"])) for row in material.answered(arm))
    ]


def _second_samples(material: Material) -> dict[str, str]:
    """The normalised answers of the second sample by question id; empty if the run lacks the unchanged method."""
    plain = next((arm for arm in material.arms if arm.name == _SECOND), None)
    if plain is None:
        return {}
    return {row["id"]: _short(row["rounds"][row["chosen"]]) for row in material.answered(plain)}


def _short(round_: Row) -> str:
    return normalised(round_["draft"]["short_answer"])


def judged(values: Sequence[float | None], right: Sequence[float], name: str, *, seed: int = 42) -> dict[str, Any]:
    """AUROC with its 95 % bootstrap interval, expected calibration error, and risk against coverage of one signal.

    A missing value counts as the lowest possible value and is reported. For calibration, a value is interpreted
    as a probability: a cosine below 0 as 0, a log-probability by its exponential.
    """
    scores = [_LOWEST.get(name, 0.0) if value is None else value for value in values]
    probabilities = [min(1.0, max(0.0, math.exp(score) if name == "logprob" else score)) for score in scores]
    curve = risk_coverage(scores, right)
    area, interval = auroc(scores, right), auroc_interval(scores, right, seed=seed)
    return {
        "missing": sum(value is None for value in values),
        "auroc": None if area is None else round(area, 4),
        "auroc_ci95": None if interval is None else [round(end, 4) for end in interval],
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
    """One row per signal."""
    rows = [
        (
            method,
            name,
            str(found["n"]),
            str(found[name]["missing"]),
            _area(found[name]),
            number(found[name]["ece"], 3),
            number(found[name]["aurc"], 3),
        )
        for method, found in figures.items()
        for name in judged_in(found)
    ]
    head = ("method", "signal", "drafts", "missing", "AUROC [95 %]", "ECE", "AURC")
    return [Table(name="monitor", title="The monitor on first drafts", head=head, rows=rows)] if rows else []


def judged_in(found: Mapping[str, Any]) -> list[str]:
    """The signals in a method's figures that some draft has, in order."""
    return [name for name in SIGNALS if name in found and found[name]["missing"] < found["n"]]


def _area(found: Mapping[str, Any]) -> str:
    interval = found["auroc_ci95"]
    return number(found["auroc"], 3) if interval is None else with_interval(found["auroc"], interval, 3)


def plots(figures: Figures) -> Sequence[Plot]:
    """Reliability and risk-coverage of every signal, one plot per method."""
    return [_plot(method, found, place) for place, (method, found) in enumerate(figures.items(), start=1)]


def _plot(method: str, found: Mapping[str, Any], place: int) -> Plot:
    def draw(figure: Any) -> None:
        reliability, risk = figure.subplots(1, 2)
        reliability.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        names = judged_in(found)
        curves = {name: [(one["confidence"], one["accuracy"]) for one in found[name]["bins"]] for name in names}
        lines(reliability, curves)
        reliability.set(
            xlabel="signal, read as a probability", ylabel="share of right drafts", xlim=(0, 1), ylim=(0, 1)
        )
        reliability.set_title("reliability", fontsize="small")
        lines(risk, {name: [(x, y) for x, y in found[name]["risk_coverage"]] for name in names})
        risk.set(xlabel="share of drafts kept", ylabel="share of wrong ones among them", xlim=(0, 1.02), ylim=(0, 1))
        risk.set_title("risk and coverage", fontsize="small")
        legend(risk)

    title = f"Calibration of the monitor: {method}"
    return Plot(name="calibration" if place == 1 else f"calibration-{place}", title=title, draw=draw, width=9.0)


ANALYSIS = Analysis(
    name="monitor",
    title="Calibration of the monitor",
    about=(
        "How well each signal, and the policy based on them, identifies first drafts that match a gold answer exactly.",
        "Over the monitored drafts of answered questions.",
        "AUROC 0.5 is chance; lower is better for the expected calibration error (ECE)",
        "and for the area under the risk-coverage curve (AURC).",
        "The interval of AUROC is a 95 % bootstrap over questions.",
        "`second_sample`: did `standard_rag`, in the same run and without variation, give the same short answer?",
        "`p_correct` is the probability of being correct that the calibrated policy estimated.",
        "A missing signal counts as its lowest value; a signal that no draft of a method has is omitted.",
        "For ECE a cosine below 0 counts as 0, and a log-probability by its exponential.",
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    order=20,
)
