"""Rows of a run against each other, question by question: the main method against every other one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from meta_agent_rag.statistics import mcnemar_exact, paired_difference, permutation_p, verdict

from ..run.arms import Arm
from ..tables import Cells, Table, signed
from .analysis import Analysis, Figures, Material

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
    """The row that an arm is compared with, of the same method.

    For an oracle or an ablation it is the row with the same settings without it; for swept settings the row with the
    run's own settings, or, if the sweep has no such row, its first. `None` for that row itself, and if there is none.
    """
    if arm.oracles or arm.without_deficits:
        plain = replace(arm, oracles=(), without_deficits=())
        return plain if plain in arms else None
    alike = [one for one in arms if replace(one, assignments=arm.assignments) == arm]
    baseline = next((one for one in alike if not one.assignments), alike[0] if alike else None)
    return None if baseline == arm else baseline


def paired_table(name: str, title: str, compared: Iterable[tuple[str, Mapping[str, Any]]]) -> Sequence[Table]:
    """One row per arm, with its differences from its baseline row, which the column `against` names."""
    head = ("row", "against", "EM points [95 %]", "EM p", "F1 points [95 %]", "F1 p")
    rows: list[Cells] = []
    for arm, found in compared:
        cells = [arm, str(found["reference"])]
        for one in (found[score] for score in SCORES):
            p = "<0.001" if one["p"] < 0.001 else f"{one['p']:.3f}"
            cells += [signed(one["difference"], one["ci95"]), p]
        rows.append(tuple(cells))
    return [Table(name=name, title=title, head=head, rows=rows)]


def measure(material: Material) -> Figures:
    """Differences of one method from every other one under the same settings; empty if it is the only one.

    It is the first method that runs the loop, or else the first method, also if `all` methods run. In a sweep,
    the figures are those of the first values, and `further` holds those of the others.
    """
    groups: dict[tuple[str, ...], list[Arm]] = {}
    for arm in material.arms:
        if not arm.oracles and not arm.without_deficits:
            groups.setdefault(arm.assignments, []).append(arm)
    found = [_compared(material, group) for group in groups.values() if len(group) > 1]
    compared = [one for one in found if one["against"]]
    if not compared:
        return {}
    return {**compared[0], "further": compared[1:]} if len(compared) > 1 else compared[0]


def _compared(material: Material, group: Sequence[Arm]) -> dict[str, Any]:
    chosen = next((arm for arm in group if arm.method.loop), group[0])
    others = [arm for arm in group if arm != chosen]
    differences = {other.name: against(material, chosen, other) for other in others}
    return {"method": chosen.name, "against": {name: found for name, found in differences.items() if found}}


def tables(figures: Figures) -> Sequence[Table]:
    """One row for each of the other methods."""
    groups = [figures, *figures.get("further", ())]
    compared = ((str(group["method"]), found) for group in groups for found in group["against"].values())
    title = f"{figures['method']} against the other methods"
    return paired_table("comparison", f"{title}, for every swept value" if len(groups) > 1 else title, compared)


ANALYSIS = Analysis(
    name="comparison",
    title="Against the other methods",
    about=(
        "Paired differences on the same questions, with 95 % bootstrap intervals, over those that both answered.",
        "Methods are compared only under the same settings.",
        "p: McNemar's exact test for EM, a sign-flip permutation test for F1, not corrected for the number of rows.",
    ),
    measure=measure,
    tables=tables,
    across=True,
    order=5,
)
