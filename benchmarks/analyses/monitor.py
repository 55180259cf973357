"""How well the monitor's signals and its policy separate right first drafts from wrong ones."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.text.normalise import normalised

from ..plots import Plot, legend, lines
from ..statistics import (
    area_under_risk_coverage,
    calibration_bins,
    expected_calibration_error,
    risk_coverage,
)
from ..tables import Table, number, with_interval
from .analysis import Analysis, Figures, Material, Row, separation

_CURVE_POINTS = 50
"""Number of evenly spaced points of a curve in the summary; areas are computed from all points."""
_ALWAYS = ("similarity", "agreement", "verbatim", "not_abstained", "policy")
"""Signals that are evaluated in every run; the others only if a draft has them."""
SIGNALS = (
    *("similarity", "agreement", "verbatim", "not_abstained", "not_of_another_kind", "overlap", "coverage"),
    *("quoted", "logprob", "confidence", "second_sample", "p_correct", "policy"),
)
_LOWEST = {"similarity": -1.0, "logprob": -20.0}
_SECOND = "standard_rag"
"""The method whose answer is the second sample: one call over the same evidence."""


def measure(material: Material) -> dict[str, Figures]:
    """Figures of each signal over the monitored first drafts, for arms without an oracle monitor."""
    plain = next((arm for arm in material.arms if arm.name == _SECOND), None)
    second: dict[str, str] = (
        {} if plain is None else {row["id"]: _short(row, row["chosen"]) for row in material.answered(plain)}
    )
    measured: dict[str, Figures] = {}
    for arm in material.looping(without_oracle="monitor"):
        drafts: list[dict[str, Any]] = []
        for row in material.answered(arm):
            if row["rounds"][0]["signals"] is not None:
                same = _short(row, 0) == second[row["id"]] if row["id"] in second else None
                drafts.append({**row["rounds"][0], "second_sample": same})
        if drafts:
            right = [float(draft["em"] >= 1.0) for draft in drafts]
            values = {name: [_value(draft, name) for draft in drafts] for name in SIGNALS}
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


def _short(row: Row, index: int) -> str:
    return normalised(row["rounds"][index]["draft"]["short_answer"])


def _value(draft: Row, name: str) -> float | None:
    """A signal of a first draft, higher for more trustworthy drafts; `None` if missing."""
    signals = draft["signals"]
    found: Any = signals.get(name)
    if name == "not_abstained":
        found = not draft["draft"]["abstained"]
    elif name == "not_of_another_kind":
        found = signals["of_kind"] is not False if "of_kind" in signals else None
    elif name == "second_sample":
        found = draft["second_sample"]
    elif name == "p_correct":
        found = draft.get("p_correct", draft.get("chance"))
    elif name == "policy":
        found = draft["satisfied"]
    return None if found is None else float(found)


def judged(values: Sequence[float | None], right: Sequence[float], name: str, *, seed: int = 42) -> dict[str, Any]:
    """AUROC with its 95 % bootstrap interval, expected calibration error, and risk against coverage of one signal.

    A missing value counts as the lowest possible value and is reported. For calibration, a value is interpreted
    as a probability: a cosine below 0 as 0, a log-probability by its exponential.
    """
    scores = [_LOWEST.get(name, 0.0) if value is None else value for value in values]
    probabilities = [min(1.0, max(0.0, math.exp(score) if name == "logprob" else score)) for score in scores]
    curve = risk_coverage(scores, right)
    step = math.ceil(len(curve) / _CURVE_POINTS)
    thinned = [*curve[step - 1 :: step], *(curve[-1:] if len(curve) % step else ())]
    return {
        "missing": sum(value is None for value in values),
        **separation(scores, right, seed=seed),
        "ece": round(expected_calibration_error(probabilities, right), 4),
        "aurc": round(area_under_risk_coverage(curve), 4),
        "bins": [
            {field: round(value, 4) for field, value in one.items()} for one in calibration_bins(probabilities, right)
        ],
        "risk_coverage": [[round(coverage, 4), round(risk, 4)] for coverage, risk in thinned],
    }


def tables(figures: Figures) -> Sequence[Table]:
    """One row per method and signal that some draft has."""
    rows = [
        (
            method,
            name,
            str(found["n"]),
            str(found[name]["missing"]),
            with_interval(found[name]["auroc"], found[name]["auroc_ci95"], 3),
            number(found[name]["ece"], 3),
            number(found[name]["aurc"], 3),
        )
        for method, found in figures.items()
        for name in _judged_in(found)
    ]
    head = ("method", "signal", "drafts", "missing", "AUROC [95 %]", "ECE", "AURC")
    return [Table(name="monitor", title="The monitor on first drafts", head=head, rows=rows)]


def _judged_in(found: Mapping[str, Any]) -> list[str]:
    """The signals in a method's figures that some draft has, in order."""
    return [name for name in SIGNALS if name in found and found[name]["missing"] < found["n"]]


def plots(figures: Figures) -> Sequence[Plot]:
    """Reliability and risk-coverage of every signal, one plot per method."""
    return [_plot(method, found, place) for place, (method, found) in enumerate(figures.items(), start=1)]


def _plot(method: str, found: Mapping[str, Any], place: int) -> Plot:
    def draw(figure: Any) -> None:
        reliability, risk = figure.subplots(1, 2)
        reliability.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        names = _judged_in(found)
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
        "`p_correct` is the probability of being correct that the monitor estimated.",
        "A missing signal counts as its lowest value; a signal that no draft of a method has is omitted.",
        "For ECE a cosine below 0 counts as 0, and a log-probability by its exponential.",
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    order=20,
)
