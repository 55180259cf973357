"""Paired comparison of two rows of a run, shared by the analyses that compare rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from meta_agent_rag.statistics.paired import mcnemar_exact, paired_difference, permutation_p, verdict

from ..run.arms import Arm
from ..tables import Cells, Table, signed
from .analysis import Material

SCORES = ("em", "f1")


def against(material: Material, arm: Arm, baseline: Arm) -> dict[str, Any]:
    """Points of an arm over a baseline, with 95 % bootstrap intervals over questions and p values.

    Only questions that both answered are compared: `n` is their number if it is not that of the run, and without one
    there is no figure.
    For EM McNemar's exact test, for F1 a sign-flip permutation test; both two-sided. `verdict` is that of
    `statistics.verdict`: does the arm score more, less, or is the difference not significant?
    """
    differences = {}
    for score in SCORES:
        theirs, ours = material.pairs(baseline, arm, score)
        if not ours:
            return {}
        found = paired_difference(theirs, ours, seed=material.seed)
        if score == "em":
            only_ours = sum(one >= 100.0 > other for one, other in zip(ours, theirs, strict=True))
            only_theirs = sum(other >= 100.0 > one for one, other in zip(ours, theirs, strict=True))
            p = mcnemar_exact(only_theirs, only_ours)
        else:
            p = permutation_p(theirs, ours, seed=material.seed)
        differences[score] = {
            "difference": round(found.mean, 2),
            "ci95": [round(found.low, 2), round(found.high, 2)],
            "p": round(p, 4),
            "verdict": verdict(found, p),
        }
    return {"reference": baseline.name, **({} if len(ours) == material.n else {"n": len(ours)}), **differences}


def baseline_of(arm: Arm, arms: Sequence[Arm]) -> Arm | None:
    """The row that an arm is compared with, of the same method and repetition.

    For an oracle or an ablation it is the row with the same settings without it; for swept settings the row with the
    run's own settings, or, if the sweep has no such row, its first. `None` for that row itself, and if there is none.
    """
    if arm.oracles or arm.without_deficits:
        plain = replace(arm, oracles=(), without_deficits=())
        return plain if plain in arms else None
    alike = [one for one in arms if replace(one, assignments=arm.assignments) == arm]
    baseline = next((one for one in alike if not one.assignments), alike[0] if alike else None)
    return None if baseline == arm else baseline


def table(name: str, title: str, compared: Iterable[tuple[str, Mapping[str, Any]]]) -> Sequence[Table]:
    """One row per arm, with its differences from its baseline row, which the column `against` names."""
    head = ("row", "against", "EM points [95 %]", "p", "F1 points [95 %]", "p")
    rows = [_cells(arm, found) for arm, found in compared]
    return [Table(name=name, title=title, head=head, rows=rows)]


def _cells(arm: str, found: Mapping[str, Any]) -> Cells:
    cells = [arm, found["reference"]]
    for score in SCORES:
        one = found[score]
        cells += [signed(one["difference"], one["ci95"]), p_value(one["p"])]
    return tuple(cells)


def p_value(p: float) -> str:
    """A p value for a cell."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"
