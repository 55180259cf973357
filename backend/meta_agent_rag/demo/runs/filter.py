"""Selects the answers of a run to display."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .files import Row, Run

NOT_REPAIRED = "not repaired"
OUTCOMES = ("fixed", "broken", "still right", "still wrong", NOT_REPAIRED, "error")
"""How an answer changed between its first draft and the end, by exact match."""

ANY = ""
SHOWN = 200
"""The number of answers listed at once."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The conditions for an answer; an empty one matches all."""

    method: str = ANY
    outcome: str = ANY
    deficit: str = ANY
    hops: str = ANY

    def takes(self, row: Row) -> bool:
        """Does the answer meet all conditions?"""
        return (
            self.method in {ANY, row["method"]}
            and self.outcome in {ANY, outcome(row)}
            and (self.deficit == ANY or self.deficit in deficits(row))
            and self.hops in {ANY, str(row.get("hops"))}
        )


def outcome(row: Row) -> str:
    """The outcome of an answer, one of `OUTCOMES`: `fixed` if the first draft was wrong and the answer is right."""
    if row.get("error"):
        return "error"
    rounds = row.get("rounds") or []
    if len(rounds) < 2:
        return NOT_REPAIRED
    first, last = _right(rounds[0]), _right(row)
    if first == last:
        return "still right" if last else "still wrong"
    return "fixed" if last else "broken"


def deficits(row: Row) -> tuple[str, ...]:
    """The deficits that were found or repaired, without duplicates."""
    found = (
        (round_.get(part) or {}).get("deficit")
        for round_ in row.get("rounds") or []
        for part in ("plan", "diagnosis")
    )  # fmt: skip
    return tuple(dict.fromkeys(name for name in found if name))


def methods(run: Run) -> tuple[str, ...]:
    """The methods of a run; those that repaired something come first."""
    named = tuple(dict.fromkeys(row["method"] for row in run.rows))
    repairing = {row["method"] for row in run.rows if row.get("fired")}
    return tuple(sorted(named, key=lambda name: (name not in repairing, named.index(name))))


def answer_to(run: Run, question_id: str, method: str) -> Row | None:
    """The answer to a question by a method; if none is given, by the first of `methods` that has one."""
    by_method = {row["method"]: row for row in run.rows if row["id"] == question_id}
    wanted = (method,) if method else methods(run)
    return next((by_method[name] for name in wanted if name in by_method), None)


def choices(run: Run) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The choices of each part of a filter, as (label, value); the first matches all."""
    rows = run.rows
    counted = [(f"{name} ({sum(outcome(row) == name for row in rows)})", name) for name in OUTCOMES]
    hops = sorted({row["hops"] for row in rows if isinstance(row.get("hops"), int)})
    found = sorted({name for row in rows for name in deficits(row)})
    return {
        "outcome": [("any", ANY), *counted],
        "deficit": [("any", ANY), *((name.replace("_", " "), name) for name in found)],
        "hops": [("any", ANY), *((str(count), str(count)) for count in hops)],
        "method": [("all methods", ANY), *((name, name) for name in methods(run))],
    }


def listed(run: Run, wanted: Filter) -> list[tuple[str, str]]:
    """The answers that match a filter as (label, index in the run), at most `SHOWN`.

    Those that a repair fixed come first, then those with the most repairs.
    """
    found = [(place, row) for place, row in enumerate(run.rows) if wanted.takes(row)]
    found.sort(key=lambda pair: (outcome(pair[1]) != "fixed", -len(pair[1].get("rounds") or [])))
    return [(_label(row, wanted), str(place)) for place, row in found[:SHOWN]]


def counted(run: Run, wanted: Filter) -> int:
    """The number of answers that match a filter."""
    return sum(wanted.takes(row) for row in run.rows)


def _label(row: Row, wanted: Filter) -> str:
    rounds = len(row.get("rounds") or [])
    parts = [
        *([] if wanted.method else [row["method"]]),
        outcome(row),
        f"{rounds} round{'' if rounds == 1 else 's'}",
        "" if row.get("f1") is None else f"F1 {100 * row['f1']:.0f}",
    ]
    return f"{row.get('question', '')} — {' · '.join(part for part in parts if part)}"


def _right(scored: Mapping[str, Any]) -> bool:
    return (scored.get("em") or 0.0) >= 1.0
