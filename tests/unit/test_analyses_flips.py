"""The flip ledger of a dozen questions, counted by hand."""

from typing import Any

import pytest

from benchmarks.analyses.flips import ANALYSIS
from tests.benchmark_rows import arm, failed, material, round_of, row


def walk(identity: str, *drafts: tuple[str, float, str | None], chosen: int = -1) -> dict[str, Any]:
    """A question as its drafts: short answer, exact match, and the deficit that led to each."""
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


def test_every_step_is_listed_by_round_and_deficit() -> None:
    cells = {(cell["round"], cell["deficit"]): kinds(cell) for cell in ledger()["by_round_and_deficit"]}
    assert cells == {
        (1, RETRIEVE): (1, 0, 1, 1),
        (1, REASON): (2, 2, 1, 1),
        (2, RETRIEVE): (1, 0, 0, 0),
        (2, REASON): (0, 1, 0, 0),
    }


def test_rates_and_break_even_over_all_repairs() -> None:
    found = ledger()["all"]
    # right before repair: 05, 06, 09 and the second of 11; wrong: the other seven steps
    assert (found["n"], found["right_before"], found["wrong_before"]) == (11, 4, 7)
    assert found["error_introduction_rate"] == pytest.approx(3 / 4)
    assert found["fix_rate"] == pytest.approx(4 / 7, abs=1e-4)
    assert found["break_even"] == pytest.approx((4 / 7) / (4 / 7 + 3 / 4), abs=1e-4)


def test_losses_and_repairs_of_the_whole_loop() -> None:
    # right at first: 01, 05, 06, 09, of which 05 is lost; wrong at first: seven, of which 03, 04, 10 end right
    found = ledger()["loop"]["all"]
    assert found["error_introduction"] == {"n": 4, "count": 1, "rate": 0.25, "ci95": [0.0063, 0.8059]}
    assert (found["repair"]["count"], found["repair"]["n"]) == (3, 7)
    assert found["error_introduction"]["ci95"][0] == pytest.approx(1 - 0.975 ** (1 / 4), abs=1e-4)


def test_each_question_counts_for_its_first_deficit() -> None:
    found = ledger()["loop"]["by_first_deficit"]
    reported = {name: [(part["count"], part["n"]) for part in one.values()] for name, one in found.items()}
    assert reported == {REASON: [(1, 3), (2, 3)], RETRIEVE: [(0, 0), (1, 3)]}
    assert found[RETRIEVE]["error_introduction"] == {"n": 0, "count": 0, "rate": None, "ci95": None}


def test_broken_questions_are_listed_with_their_drafts() -> None:
    way = walk("q", ("Oslo", 1.0, None), ("Bern", 0.0, RETRIEVE), ("Rome", 0.0, REASON), ("Ulm", 0.0, REASON), chosen=2)
    measured = ANALYSIS.measure(material([arm("metarag")], [*ROWS, way], n=13))
    assert measured["metarag"]["loop"]["broken"] == [
        {
            "id": "05 broken",
            "question": "Question 05 broken?",
            "gold": "Oslo",
            "first": "Oslo",
            "returned": "Rome",
            "deficits": [REASON],
        },
        {
            "id": "q",
            "question": "Question q?",
            "gold": "Oslo",
            "first": "Oslo",
            "returned": "Rome",
            "deficits": [RETRIEVE, REASON],
        },
    ]
    *_, loop = ANALYSIS.tables(measured)
    assert [line[1:5] for line in loop.rows] == [
        ("all first drafts", "5", "2", "40.0 [5.3, 85.3]"),
        (RETRIEVE, "1", "1", "100.0 [2.5, 100.0]"),
        (REASON, "3", "1", "33.3 [0.8, 90.6]"),
    ]
