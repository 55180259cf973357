"""The diagnosed deficit against the deficit that the data set and the model's memory imply."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.agent.state import NO_DEFICIT

from ..statistics import cohen_kappa
from ..tables import Table, number, percent
from .analysis import Analysis, Figures, Material, Quadrant, Row, share

MEMORY = "closed_book"
"""The method whose exact match shows whether the model's memory suffices: its row with the same settings, else with
the run's own."""


def measure(material: Material) -> dict[str, Figures]:
    """The confusion matrix of first diagnoses and the oracle's, for arms without an oracle diagnosis.

    The oracle's deficit is the one meant for the quadrant of (closed book right, all supporting paragraphs packed).
    Agreement and kappa are over the diagnoses that name a deficit with a quadrant; `none` is counted apart, by whether
    the draft was right. `unknown` diagnoses lack a closed-book answer or labelled paragraphs.
    """
    measured: dict[str, Figures] = {}
    asked = {arm.assignments: arm for arm in material.arms if arm.method.name == MEMORY}
    for arm in material.looping(without_oracle="diagnosis"):
        firsts = [(row["id"], row["rounds"][0]) for row in material.answered(arm)]
        diagnosed = [(id_, first) for id_, first in firsts if first["diagnosis"] is not None]
        memory = asked.get(arm.assignments, asked.get(()))
        answers = () if memory is None else material.rows[memory.name]
        knows = {row["id"]: row["em"] >= 1.0 for row in answers if row["error"] is None}
        if diagnosed and knows and any(material.quadrants.values()):
            measured[arm.name] = confusion(diagnosed, knows, material.quadrants)
    return measured


def confusion(
    diagnosed: Sequence[tuple[str, Row]], knows: Mapping[str, bool], quadrants: Mapping[str, Quadrant | None]
) -> dict[str, Any]:
    """Counts by (diagnosed, oracle), and their agreement; of deficits that share a quadrant, any is right."""
    oracle = {quadrant: name for name, quadrant in sorted(quadrants.items(), reverse=True) if quadrant is not None}
    pairs: list[tuple[str, str]] = []
    unknown = 0
    verdicts: Counter[str] = Counter()
    for id_, first in diagnosed:
        name, packed = first["diagnosis"]["deficit"], first.get("evidence_recall")
        if name == NO_DEFICIT:
            verdicts["none_on_right" if first["em"] >= 1.0 else "none_on_wrong"] += 1
        meant = oracle.get((knows[id_], packed["packed"] >= 1.0)) if id_ in knows and packed is not None else None
        if meant is None:
            unknown += 1
        else:
            pairs.append((name, meant))
    known = [(quadrants.get(name), meant) for name, meant in pairs]
    named = [(oracle[quadrant], meant) for quadrant, meant in known if quadrant is not None]
    kappa = cohen_kappa([name for name, _ in named], [meant for _, meant in named]) if named else None
    counts = Counter(pairs)
    return {
        "n": len(pairs),
        "unknown": unknown,
        "compared": len(named),
        "agreement": share(sum(name == meant for name, meant in named), len(named)),
        "kappa": None if kappa is None else round(kappa, 4),
        "none_on_right": verdicts["none_on_right"],
        "none_on_wrong": verdicts["none_on_wrong"],
        "confusion": {
            name: {meant: counts[name, meant] for meant in sorted(oracle.values())}
            for name in sorted({*oracle.values(), *(name for name, _ in pairs)})
        },
    }


def macro_f1(confusion: Mapping[str, Mapping[str, int]]) -> float | None:
    """The mean F1 (0..1) of the deficits that the oracle or a diagnosis names; `None` if there are none.

    Computed from counts by (diagnosed, oracle). Deficits without a quadrant, and those that share a quadrant with its
    representative, are left out.
    """
    scores = []
    for name in next(iter(confusion.values()), {}):
        named = sum(confusion[name].values())
        meant = sum(confusion[other][name] for other in confusion[name])
        if named + meant:
            scores.append(2 * confusion[name][name] / (named + meant))
    return sum(scores) / len(scores) if scores else None


def tables(figures: Figures) -> Sequence[Table]:
    """Agreement by method, and the confusion matrix of each."""
    agreement = [
        (
            method,
            str(found["compared"]),
            percent(found["agreement"]),
            number(found["kappa"], 3),
            number(macro_f1(found["confusion"]), 3),
            *(str(found[name]) for name in ("none_on_right", "none_on_wrong", "unknown")),
        )
        for method, found in figures.items()
    ]
    head = (
        *("method", "compared", "agreement", "kappa", "macro F1"),
        *("none, draft right", "none, draft wrong", "not comparable"),
    )
    shown = [Table(name="diagnosis", title="First diagnoses against the oracle's", head=head, rows=agreement)]
    for place, (method, found) in enumerate(figures.items(), start=1):
        oracle = list(next(iter(found["confusion"].values())))
        shown.append(
            Table(
                name=f"diagnosis-confusion-{place}",
                title=f"Diagnosed (rows) against oracle (columns): {method}",
                head=("diagnosed", *oracle),
                rows=[(name, *(str(line[meant]) for meant in oracle)) for name, line in found["confusion"].items()],
            )
        )
    return shown


ANALYSIS = Analysis(
    name="diagnosis",
    title="Diagnosis against the oracle",
    about=(
        "The oracle's deficit follows from two facts.",
        "Does the model answer correctly without evidence (the row `closed_book` of the same run and settings)?",
        "Did the prompt contain all supporting paragraphs?",
        "Only first diagnoses of answered questions count.",
        "Agreement and kappa exclude diagnoses that found nothing wrong.",
    ),
    measure=measure,
    tables=tables,
    missing="Omitted: it needs the answers of `closed_book` in the same run; use `--method closed_book,...`.",
    order=30,
)
