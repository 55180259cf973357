"""The flip ledger of a dozen questions, counted by hand."""

from typing import Any

import pytest

from benchmarks.analyses.flips import ANALYSIS, counts, steps
from tests.benchmark_rows import arm, failed, material, round_of, row


def walk(identity: str, *drafts: tuple[str, float, str | None], chosen: int = -1) -> dict[str, Any]:
    """A question by its drafts: short answer, exact match, deficit that led to it."""
    rounds = [round_of(index, short, em, deficit=why) for index, (short, em, why) in enumerate(drafts)]
    return row(identity, rounds, chosen=chosen)


REASON, RETRIEVE = "reasoning_error", "insufficient_knowledge"
ROWS = [
    walk("01 right at once", ("Oslo", 1.0, None)),
    walk("02 wrong at once", ("Rome", 0.0, None)),
    walk("03 fixed", ("Rome", 0.0, None), ("Oslo", 1.0, REASON)),
    walk("04 fixed by searching", ("Rome", 0.0, None), ("Oslo", 1.0, RETRIEVE)),
    walk("05 broken", ("Oslo", 1.0, None), ("Rome", 0.0, REASON)),
    walk("06 broken, first one returned", ("Oslo", 1.0, None), ("Rome", 0.0, REASON), chosen=0),
    walk("07 another wrong one", ("Rome", 0.0, None), ("Paris", 0.0, RETRIEVE)),
    walk("08 the same wrong one", ("the Rome", 0.0, None), ("Rome", 0.0, RETRIEVE)),
    walk("09 the same right one", ("Oslo", 1.0, None), ("Oslo.", 1.0, REASON)),
    walk("10 fixed at the second try", ("Rome", 0.0, None), ("Paris", 0.0, REASON), ("Oslo", 1.0, RETRIEVE)),
    walk("11 fixed, then broken", ("Rome", 0.0, None), ("Oslo", 1.0, REASON), ("Paris", 0.0, REASON)),
    failed("12 failed"),
]


def ledger() -> Any:
    return ANALYSIS.measure(material([arm("metarag")], ROWS, n=12))["metarag"]


def kinds(found: dict[str, Any]) -> tuple[int, int, int, int]:
    return found["fixed"], found["broken"], found["changed"], found["unchanged"]


def test_every_step_by_round_and_deficit() -> None:
    cells = {(cell["round"], cell["deficit"]): kinds(cell) for cell in ledger()["by_round_and_deficit"]}
    assert cells == {
        (1, RETRIEVE): (1, 0, 1, 1),
        (1, REASON): (2, 2, 1, 1),
        (2, RETRIEVE): (1, 0, 0, 0),
        (2, REASON): (0, 1, 0, 0),
    }


def test_sums_by_round_and_by_deficit() -> None:
    found = ledger()
    assert {cell["round"]: kinds(cell) for cell in found["by_round"]} == {1: (3, 2, 2, 2), 2: (1, 1, 0, 0)}
    assert {name: kinds(cell) for name, cell in found["by_deficit"].items()} == {
        RETRIEVE: (2, 0, 1, 1),
        REASON: (2, 3, 1, 1),
    }
    assert kinds(found["all"]) == (4, 3, 2, 2)


def test_rates_and_break_even_of_all_repairs() -> None:
    found = ledger()["all"]
    # before its repair right: 05, 06, 09 and the second of 11; wrong: the other seven steps
    assert (found["n"], found["right_before"], found["wrong_before"]) == (11, 4, 7)
    assert found["error_introduction_rate"] == pytest.approx(3 / 4)
    assert found["fix_rate"] == pytest.approx(4 / 7, abs=1e-4)
    assert found["break_even"] == pytest.approx((4 / 7) / (4 / 7 + 3 / 4), abs=1e-4)


def test_at_the_break_even_share_a_repair_wins_what_it_loses() -> None:
    found = ledger()["all"]
    share = found["break_even"]
    won, lost = (1 - share) * found["fix_rate"], share * found["error_introduction_rate"]
    assert won == pytest.approx(lost, abs=1e-3)


def test_from_the_first_draft_to_the_returned_answer() -> None:
    found = ledger()["returned"]
    # 03, 04, 10 fixed; 05 broken; 07 and 11 another wrong one; 06, 08 and 09 as before
    assert kinds(found) == (3, 1, 2, 3)
    assert (found["right_before"], found["wrong_before"]) == (3, 6)


def test_no_rate_where_nothing_could_be_fixed_or_broken() -> None:
    (only,) = steps(walk("q", ("Rome", 0.0, None), ("Oslo", 1.0, REASON)))
    found = counts([only])
    assert found["error_introduction_rate"] is None
    assert found["break_even"] is None
    assert counts([])["fix_rate"] is None


def test_a_method_that_never_fired_has_no_ledger() -> None:
    assert ANALYSIS.measure(material([arm("metarag")], ROWS[:2], n=2)) == {}


def test_tables_hold_every_repair_once() -> None:
    cells, balance = ANALYSIS.tables({"metarag": ledger()})
    assert sum(int(line[3]) for line in cells.rows) == 11
    assert [line[1] for line in balance.rows] == ["every repair", "first draft to returned answer"]
