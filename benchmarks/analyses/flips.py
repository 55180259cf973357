"""The flip ledger: what each repair did to the answer, and whether firing pays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from meta_agent_rag.text.normalise import normalised

from ..plots import Plot, legend, stacked_bars
from ..statistics import binomial_interval
from ..tables import Cells, Table, number, with_interval
from .analysis import Analysis, Figures, Material, Row, share

KINDS = ("fixed", "broken", "changed", "unchanged")
_LISTED = 50
"""Maximum number of broken questions listed."""


@dataclass(frozen=True, kw_only=True)
class Flip:
    """One step from a draft to the next: the resulting round, the deficit to repair, and the effect."""

    round: int
    deficit: str
    kind: str
    was_right: bool


def flip(before: Row, after: Row, *, deficit: str) -> Flip:
    """The effect of a step: exact match gained (`fixed`) or lost (`broken`), or neither, with a new or the same answer.

    Answers are the same if they are equal after normalisation.
    """
    was, is_ = before["em"] >= 1.0, after["em"] >= 1.0
    if was != is_:
        kind = "fixed" if is_ else "broken"
    else:
        same = normalised(before["draft"]["short_answer"]) == normalised(after["draft"]["short_answer"])
        kind = "unchanged" if same else "changed"
    return Flip(round=after["index"], deficit=deficit, kind=kind, was_right=was)


def steps(row: Row) -> list[Flip]:
    """Every step of a question, from each round to the next, by the deficit of the plan that led to it."""
    rounds = row["rounds"]
    return [
        flip(before, after, deficit=after["plan"]["deficit"])
        for before, after in pairwise(rounds)
        if after["plan"] is not None
    ]


def counts(flips: Iterable[Flip]) -> dict[str, Any]:
    """The ledger of some flips.

    `error_introduction_rate` is broken / right before, `fix_rate` fixed / wrong before. `break_even` is the share
    of right drafts above which firing no longer pays, fix_rate / (fix_rate + error_introduction_rate): with a share p
    of right drafts, repairs gain (1 - p) fix_rate and lose p error_introduction_rate. Rates are 0..1, `None`
    if there was nothing to fix or to break.
    """
    found = list(flips)
    by_kind = {kind: sum(one.kind == kind for one in found) for kind in KINDS}
    right = sum(one.was_right for one in found)
    wrong = len(found) - right
    introduced, fixed = (
        by_kind["broken"] / right if right else None,
        by_kind["fixed"] / wrong if wrong else None,
    )
    moved = None if introduced is None or fixed is None else introduced + fixed
    return {
        "n": len(found),
        **by_kind,
        "right_before": right,
        "wrong_before": wrong,
        "error_introduction_rate": share(by_kind["broken"], right),
        "fix_rate": share(by_kind["fixed"], wrong),
        "right_before_rate": share(right, len(found)),
        "break_even": round(fixed / moved, 4) if moved and fixed is not None else None,
    }


def rate(part: int, whole: int) -> dict[str, Any]:
    """A share in 0..1 with its 95 % Clopper-Pearson interval; both `None` if the total is 0."""
    interval = [round(end, 4) for end in binomial_interval(part, whole)] if whole else None
    return {"n": whole, "count": part, "rate": share(part, whole), "ci95": interval}


def kept(rows: Iterable[Row]) -> dict[str, Any]:
    """From first drafts to returned answers, regardless of the rounds between.

    `error_introduction` is the share of right first drafts that were lost, `repair` the share of wrong ones that
    were fixed.
    """
    ends = [(row["rounds"][0]["em"] >= 1.0, row["rounds"][row["chosen"]]["em"] >= 1.0) for row in rows]
    right, wrong = [end for was, end in ends if was], [end for was, end in ends if not was]
    return {"error_introduction": rate(right.count(False), len(right)), "repair": rate(wrong.count(True), len(wrong))}


def broken(row: Row) -> dict[str, Any] | None:
    """How a right first draft was lost; `None` for any other question."""
    first, returned = row["rounds"][0], row["rounds"][row["chosen"]]
    if not first["em"] >= 1.0 > returned["em"]:
        return None
    plans = (round_["plan"] for round_ in row["rounds"][1 : returned["index"] + 1])
    return {
        "id": row["id"],
        "question": row["question"],
        "gold": row["gold"],
        "first": first["draft"]["short_answer"],
        "returned": returned["draft"]["short_answer"],
        "deficits": [plan["deficit"] for plan in plans if plan is not None],
    }


def whole_loop(answered: Sequence[Row]) -> dict[str, Any]:
    """What the loop did to all first drafts, fired or not, and to those that each deficit fired on first."""
    by_deficit: dict[str, list[Row]] = {}
    for row in answered:
        if len(row["rounds"]) > 1 and row["rounds"][1]["plan"] is not None:
            by_deficit.setdefault(row["rounds"][1]["plan"]["deficit"], []).append(row)
    return {
        "all": kept(answered),
        "by_first_deficit": {name: kept(rows) for name, rows in sorted(by_deficit.items())},
        "broken": [lost for row in answered if (lost := broken(row)) is not None][:_LISTED],
    }


def measure(material: Material) -> dict[str, Figures]:
    """Flips by round and deficit, by each alone, in total, and from the first draft to the returned answer.

    `loop` is the balance over all first drafts, including those accepted immediately.
    """
    measured: dict[str, Figures] = {}
    for arm in material.looping():
        answered = material.answered(arm)
        fired = [row for row in answered if len(row["rounds"]) > 1]
        found = [one for row in fired for one in steps(row)]
        if not found:
            continue
        deficits = sorted({one.deficit for one in found})
        rounds = sorted({one.round for one in found})
        cells = sorted({(one.round, one.deficit) for one in found})
        measured[arm.name] = {
            "by_round_and_deficit": [
                {"round": index, "deficit": name}
                | counts(one for one in found if (one.round, one.deficit) == (index, name))
                for index, name in cells
            ],
            "by_round": [{"round": index} | counts(one for one in found if one.round == index) for index in rounds],
            "by_deficit": {name: counts(one for one in found if one.deficit == name) for name in deficits},
            "all": counts(found),
            "returned": counts(flip(row["rounds"][0], row["rounds"][row["chosen"]], deficit="") for row in fired),
            "loop": whole_loop(answered),
        }
    return measured


def tables(figures: Figures) -> Sequence[Table]:
    """The ledger by round and deficit, the balance of firing, what the loop lost and fixed, and the broken answers."""
    ledger = [
        (method, str(cell["round"]), cell["deficit"], str(cell["n"]), *(str(cell[kind]) for kind in KINDS))
        for method, found in figures.items()
        for cell in found["by_round_and_deficit"]
    ]
    balance = [
        _balance(method, step, found[key])
        for method, found in figures.items()
        for step, key in (("every repair", "all"), ("first draft to returned answer", "returned"))
    ]
    return (
        Table(
            name="flips",
            title="Flips by round and deficit",
            head=("method", "round", "deficit", "repairs", *KINDS),
            rows=ledger,
        ),
        Table(
            name="flips-balance",
            title="Does firing pay?",
            head=("method", "step", "n", *KINDS, "breaks right", "fixes wrong", "right before", "break-even"),
            rows=balance,
        ),
        *_loop_tables(figures),
    )


def _loop_tables(figures: Figures) -> list[Table]:
    rates = [
        (method, fired_on, *_rate(found["error_introduction"]), *_rate(found["repair"]))
        for method, one in figures.items()
        for fired_on, found in (("all first drafts", one["loop"]["all"]), *one["loop"]["by_first_deficit"].items())
    ]
    lost = [
        (method, one["id"], one["question"], one["gold"], one["first"], one["returned"], ", ".join(one["deficits"]))
        for method, found in figures.items()
        for one in found["loop"]["broken"]
    ]
    head = ("method", "first fired on", "right first", "lost", "lost, % [95 %]")
    rated = Table(
        name="flips-loop",
        title="Right answers lost and wrong ones fixed by the loop, from first drafts to returned answers",
        head=(*head, "wrong first", "repaired", "repaired, % [95 %]"),
        rows=rates,
    )
    listed = Table(
        name="broken",
        title="Right first drafts that were not returned",
        head=("method", "id", "question", "gold", "first draft", "returned", "deficits"),
        rows=lost[:_LISTED],
        note=f"The first {_LISTED}." if len(lost) >= _LISTED else "",
    )
    return [rated, listed] if lost else [rated]


def _rate(found: Mapping[str, Any]) -> Cells:
    if found["rate"] is None:
        return (str(found["n"]), str(found["count"]), number(None))
    percent = with_interval(100.0 * found["rate"], [100.0 * end for end in found["ci95"]])
    return (str(found["n"]), str(found["count"]), percent)


def _balance(method: str, step: str, found: Mapping[str, Any]) -> Cells:
    rates = ("error_introduction_rate", "fix_rate", "right_before_rate", "break_even")
    percent = (None if found[rate] is None else 100.0 * found[rate] for rate in rates)
    return (method, step, str(found["n"]), *(str(found[kind]) for kind in KINDS), *(number(one) for one in percent))


def plots(figures: Figures) -> Sequence[Plot]:
    """Stacked bars: the repairs that led to each round, by their effect."""
    bars = [(method, cell) for method, found in figures.items() for cell in found["by_round"]]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        names = [f"{method}, round {cell['round']}" for method, cell in bars]
        stacked_bars(axes, names, {kind: [cell[kind] for _, cell in bars] for kind in KINDS})
        axes.set_ylabel("repairs")
        legend(axes)

    if not bars:
        return []
    title = "What repairs did to the answer, by round"
    return [Plot(name="flips", title=title, draw=draw, width=min(16.0, max(7.0, 0.45 * len(bars) + 3.0)))]


ANALYSIS = Analysis(
    name="flips",
    title="Flips: what repairs did",
    about=(
        "Over answered questions.",
        "Fixed: the exact match was gained; broken: lost; changed: another answer, as right or as wrong as before.",
        "`breaks right` is the error-introduction rate: the percentage of right drafts that a repair broke.",
        "`fixes wrong` is the fix rate: the percentage of wrong drafts that a repair fixed.",
        "If more than the break-even percentage of drafts are right before it, firing costs more than it gains.",
        "For the loop as a whole, right first drafts that were accepted immediately count too;",
        "a deficit covers the questions on which it was diagnosed first. Intervals: 95 %, Clopper-Pearson.",
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    order=10,
)
