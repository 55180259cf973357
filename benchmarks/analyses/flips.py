"""The flip ledger: what each repair did to the answer, and whether firing pays."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from meta_agent_rag.text.normalise import normalised

from ..statistics import binomial_interval
from ..tables import Cells, Table, percent
from .analysis import Analysis, Figures, Material, Row, share

T = TypeVar("T")
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
    return [
        flip(before, after, deficit=after["plan"]["deficit"])
        for before, after in pairwise(row["rounds"])
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
    introduced, fixed = by_kind["broken"] / max(right, 1), by_kind["fixed"] / max(wrong, 1)
    return {
        "n": len(found),
        **by_kind,
        "right_before": right,
        "wrong_before": wrong,
        "error_introduction_rate": share(by_kind["broken"], right),
        "fix_rate": share(by_kind["fixed"], wrong),
        "right_before_rate": share(right, len(found)),
        "break_even": share(fixed, fixed + introduced) if right and wrong else None,
    }


def kept(rows: Iterable[Row]) -> dict[str, Any]:
    """From first drafts to returned answers, regardless of the rounds between.

    `error_introduction` is the share of right first drafts that were lost, `repair` the share of wrong ones that
    were fixed, each in 0..1 with its 95 % Clopper-Pearson interval; `None` without such drafts.
    """
    ends = [(row["rounds"][0]["em"] >= 1.0, row["rounds"][row["chosen"]]["em"] >= 1.0) for row in rows]
    found = {}
    for name, right in (("error_introduction", True), ("repair", False)):
        turned = [end is not right for was, end in ends if was is right]
        count, n = sum(turned), len(turned)
        interval = [round(end, 4) for end in binomial_interval(count, n)] if n else None
        found[name] = {"n": n, "count": count, "rate": share(count, n), "ci95": interval}
    return found


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


def measure(material: Material) -> dict[str, Figures]:
    """Flips by round and deficit, by each alone, in total, and from the first draft to the returned answer.

    `loop` is the balance over all first drafts, including those accepted immediately, and by the deficit that was
    fired on first.
    """
    measured: dict[str, Figures] = {}
    for arm in material.looping():
        answered = material.answered(arm)
        fired = [row for row in answered if len(row["rounds"]) > 1]
        found = [one for row in fired for one in steps(row)]
        if not found:
            continue
        by_round, by_deficit, by_both = (
            _grouped(found, key)
            for key in (lambda one: one.round, lambda one: one.deficit, lambda one: (one.round, one.deficit))
        )
        firsts = _grouped(
            [row for row in fired if row["rounds"][1]["plan"] is not None],
            lambda row: row["rounds"][1]["plan"]["deficit"],
        )
        measured[arm.name] = {
            "by_round_and_deficit": [
                {"round": index, "deficit": name, **counts(own)} for (index, name), own in by_both.items()
            ],
            "by_round": [{"round": index, **counts(own)} for index, own in by_round.items()],
            "by_deficit": {name: counts(own) for name, own in by_deficit.items()},
            "all": counts(found),
            "returned": counts(flip(row["rounds"][0], row["rounds"][row["chosen"]], deficit="") for row in fired),
            "loop": {
                "all": kept(answered),
                "by_first_deficit": {name: kept(rows) for name, rows in firsts.items()},
                "broken": [lost for row in answered if (lost := broken(row)) is not None][:_LISTED],
            },
        }
    return measured


def _grouped(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """The items by key, in the order of keys."""
    groups: dict[Any, list[T]] = {}
    for one in items:
        groups.setdefault(key(one), []).append(one)
    return dict(sorted(groups.items()))


def tables(figures: Figures) -> Sequence[Table]:
    """The ledger by round and deficit, and the balance of firing."""
    ledger: list[Cells] = []
    balance: list[Cells] = []
    for method, found in figures.items():
        ledger += [
            (method, str(cell["round"]), cell["deficit"], str(cell["n"]), *(str(cell[kind]) for kind in KINDS))
            for cell in found["by_round_and_deficit"]
        ]
        for step, key in (("every repair", "all"), ("first draft to returned answer", "returned")):
            one = found[key]
            shares = (one[name] for name in ("error_introduction_rate", "fix_rate", "right_before_rate", "break_even"))
            balance.append((method, step, str(one["n"]), *(str(one[kind]) for kind in KINDS), *map(percent, shares)))
    return [
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
    ]


ANALYSIS = Analysis(
    name="flips",
    title="Flips: what repairs did",
    about=(
        "Over answered questions.",
        "Fixed: the exact match was gained; broken: lost; changed: another answer, as right or as wrong as before.",
        "`breaks right` is the error-introduction rate: the percentage of right drafts that a repair broke.",
        "`fixes wrong` is the fix rate: the percentage of wrong drafts that a repair fixed.",
        "If more than the break-even percentage of drafts are right before it, firing costs more than it gains.",
    ),
    measure=measure,
    tables=tables,
    order=10,
)
