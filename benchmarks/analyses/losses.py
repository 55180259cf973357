"""Right answers that the loop lost, with the rule that lost each one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from meta_agent_rag.agent.routes import DRAFT

from ..calibration.fit import RIGHT
from ..tables import Table
from .analysis import Analysis, Figures, Material, Row

ONE_PASS = "standard_rag"
_LISTED = 50


def is_right(scored: Mapping[str, Any]) -> bool:
    """Is a row or a round right, by its F1, or by EM if it has no F1?"""
    score = scored.get("f1")
    return float(scored["em"] if score is None else score) >= RIGHT


def rule(row: Row) -> str:
    """The rule of the loop by which a row came to return something other than a right answer, in words.

    If the first draft was wrong already, it is what kept the draft or replaced it by another wrong one.
    """
    rounds = row["rounds"]
    first, returned = rounds[0], rounds[row["chosen"]]
    vote = returned.get("vote") or first.get("vote")
    prefix = "" if is_right(first) else "first draft wrong; "
    if returned is first or returned["index"] == first["index"]:
        kept = f"kept with {_support(vote, first):.2f} of the vote" if vote else "kept"
        return f"{prefix}{kept}"
    if vote is None or returned["draft"].get("route") == DRAFT:
        plan = returned["plan"]
        return f"{prefix}rewritten for {plan['deficit']}" if plan else f"{prefix}rewritten"
    elected = next(one for one in vote["ballots"] if one["route"] == vote["route"])
    if elected["outranks"]:
        return f"{prefix}outranked by a comparison in code"
    if _ballot(vote, first).get("of_kind") is False:
        return f"{prefix}not counted: taken for the wrong kind of answer or an earlier fact"
    return f"{prefix}outvoted {vote['share']:.2f} to {_support(vote, first):.2f}"


def routes(row: Row) -> str:
    """The routes that gave the elected answer, in the order in which they were called."""
    vote = row["rounds"][row["chosen"]].get("vote") or row["rounds"][0].get("vote")
    if vote is None:
        return "-"
    named = [ballot["route"] for ballot in vote["ballots"] if ballot["short_answer"] == vote["elected"]]
    return ", ".join(dict.fromkeys(named)) or vote["route"]


def _ballot(vote: Mapping[str, Any], first: Mapping[str, Any]) -> Mapping[str, Any]:
    own = first["draft"]["short_answer"]
    return next((one for one in vote["ballots"] if one["short_answer"] == own), vote["ballots"][0])


def _support(vote: Mapping[str, Any], first: Mapping[str, Any]) -> float:
    place = vote["ballots"].index(_ballot(vote, first))
    return float(vote["support"][place])


def lost(rows: Iterable[Row], one_pass: Mapping[str, Row]) -> list[dict[str, Any]]:
    """The wrong rows whose first draft or one-pass answer was right, by question, with the rule."""
    found = []
    for row in rows:
        was = [name for name, right in _were_right(row, one_pass.get(row["id"])).items() if right]
        if was and not is_right(row):
            found.append({"id": row["id"], "was_right": was, "rule": rule(row), "elected_by": routes(row)})
    return found


def _were_right(row: Row, alone: Row | None) -> dict[str, bool]:
    return {"first draft": is_right(row["rounds"][0]), "one pass": alone is not None and is_right(alone)}


def measure(material: Material) -> dict[str, Figures]:
    """The lost answers of each row that runs the loop; one-pass answers count if the run has them."""
    alone = next((arm for arm in material.arms if arm.name == ONE_PASS), None)
    one_pass = {row["id"]: row for row in material.answered(alone)} if alone is not None else {}
    found = {arm.name: lost(material.answered(arm), one_pass) for arm in material.looping()}
    return {name: {"lost": rows[:_LISTED], "n": len(rows)} for name, rows in found.items() if rows}


def tables(figures: Figures) -> Sequence[Table]:
    """The lost answers, one per line."""
    rows = [
        (method, one["id"], " and ".join(one["was_right"]), one["rule"], one["elected_by"])
        for method, found in figures.items()
        for one in found["lost"]
    ]
    if not rows:
        return ()
    head = ("method", "question", "right before", "rule", "elected by")
    shortened = any(found["n"] > _LISTED for found in figures.values())
    note = f"The first {_LISTED} of each method." if shortened else ""
    title = "Right answers lost, and the rule that lost each"
    return (Table(name="losses", title=title, head=head, rows=rows, note=note),)


ANALYSIS = Analysis(
    name="losses",
    title="Right answers lost",
    about=(
        "Questions whose first draft, or whose answer by `standard_rag` in the same run, was right (F1 >= 0.5), and "
        "whose returned answer is not.",
        "`outvoted` gives the support of the elected answer and of the first draft, as shares of the vote.",
    ),
    measure=measure,
    tables=tables,
    order=11,
)
