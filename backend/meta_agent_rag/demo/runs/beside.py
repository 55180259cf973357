"""Two methods' answers to the same questions side by side, from one run or two, and the paired difference, as HTML."""

from collections.abc import Mapping, Sequence
from html import escape

from ...errors import InputError
from ...statistics.paired import paired_difference, permutation_p, verdict
from ...wording import counted
from .files import Row, Run
from .html import quiet, scrolling

SHOWN = 200
"""The number of questions listed at once; the difference covers all."""

Pair = tuple[Row, Row]


def pairs(one: Run, method: str, other: Run, other_method: str) -> tuple[Pair, ...]:
    """The answers to their common questions; those that differ most in F1 first, then those with other wording.

    Raises `InputError` if they have no question in common, or if an id names different questions.
    """
    ours, theirs = _answers(one, method), _answers(other, other_method)
    shared = [(row, theirs[id_]) for id_, row in ours.items() if id_ in theirs]
    if not shared:
        raise InputError(
            f"{method!r} of {one.name!r} and {other_method!r} of {other.name!r} have no question in common; "
            "choose two runs over the same questions."
        )
    for ours_, theirs_ in shared:
        if ours_["question"] != theirs_["question"]:
            raise InputError(f"The id {ours_['id']!r} names different questions; choose two runs over the same data.")
    return tuple(sorted(shared, key=lambda pair: (-abs(_f1(pair[1]) - _f1(pair[0])), _said(pair[0]) == _said(pair[1]))))


def beside(found: Sequence[Pair], free: tuple[bool, bool] = (False, False)) -> str:
    """The difference in a sentence, and a table with a row per question; a failed answer scores 0.

    `free` tells for both sides whether a missing cost means that the model runs on this machine.
    """
    ours, theirs = ([_percent(row) for row in side] for side in zip(*found, strict=True))
    difference = paired_difference(ours, theirs)
    p = permutation_p(ours, theirs)
    known = verdict(difference, p) != "unknown"
    sentence = (
        f"Over {counted(len(found), 'question')}: F1 {_mean(ours):.1f} (A) and {_mean(theirs):.1f} (B). B minus A is "
        f"{difference.mean:+.1f} points, 95 % interval {difference.low:+.1f} to {difference.high:+.1f}, p = {p:.3f}: "
        f"{'a significant difference' if known else 'not statistically significant'}."
    )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("question", "answer A", "answer B", "F1 A", "F1 B", "calls A", "calls B", "cost A", "cost B")
    )
    lines = "".join(_line(pair, free) for pair in found[:SHOWN])
    hidden = quiet(f"The first {SHOWN} of {len(found)} are shown.") if len(found) > SHOWN else ""
    shown = scrolling(f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>", "Answers side by side")
    return f'<p class="m-verdict">{escape(sentence)}</p>{hidden}<div class="m-beside">{shown}</div>'


def _line(pair: Pair, free: tuple[bool, bool]) -> str:
    values = [text(row) for text in (_said, _score, _calls) for row in pair]
    values += [_cost(row, free=here) for row, here in zip(pair, free, strict=True)]
    cells = "".join(f"<td>{escape(value)}</td>" for value in values)
    differs = ' class="m-differs"' if _f1(pair[0]) != _f1(pair[1]) else ""
    return f'<tr{differs}><th scope="row">{escape(str(pair[0]["question"]))}</th>{cells}</tr>'


def _answers(run: Run, method: str) -> Mapping[str, Row]:
    return {row["id"]: row for row in run.rows if row["method"] == method}


def _f1(row: Row) -> float:
    return 0.0 if row.get("error") else float(row.get("f1") or 0.0)


def _percent(row: Row) -> float:
    return 100.0 * _f1(row)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _said(row: Row) -> str:
    return "failed" if row.get("error") else str(row.get("prediction") or "")


def _score(row: Row) -> str:
    return f"{_percent(row):.0f}"


def _calls(row: Row) -> str:
    calls = row.get("llm_calls")
    return "unknown" if calls is None else str(calls)


def _cost(row: Row, *, free: bool) -> str:
    cost = row.get("cost_usd")
    return f"${float(cost):.5f}" if cost is not None else "free" if free else "unknown"
