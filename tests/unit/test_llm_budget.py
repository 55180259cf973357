"""The cost limit holds in whatever order calls start and end."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.errors import CostLimitError
from meta_agent_rag.llm.budget import Budget, unsettled

amounts = st.decimals(0, 1, places=8)


def test_reservations_and_settlements_by_hand() -> None:
    budget = Budget(limit_usd=Decimal("1.00"))
    first = budget.reserve(Decimal("0.60"), model="m")
    second = budget.reserve(Decimal("0.40"), model="m")
    assert (first, second) == (Decimal("0.60"), Decimal("0.40"))
    with pytest.raises(CostLimitError):
        budget.reserve(Decimal("0.01"), model="m")
    budget.settle(first, Decimal("0.10"))
    assert (budget.paid_usd, budget.reserved_usd) == (Decimal("0.10"), Decimal("0.40"))
    assert budget.reserve(Decimal("0.50"), model="m") == Decimal("0.50")


def test_unsettled_reservations_after_a_kill_count_as_paid(tmp_path: Path) -> None:
    journal = tmp_path / "reservations.jsonl"
    budget = Budget.under(1.0, journal=journal)
    budget.settle(budget.reserve(Decimal("0.25"), model="m"), Decimal("0.1"))
    budget.reserve(Decimal("0.25"), model="m")
    assert budget.journal is not None
    budget.journal.close()  # as a kill does
    with journal.open("ab") as file:
        file.write(b'{"reserved_usd": "0.')
    assert unsettled(journal) == Decimal("0.25"), "a torn reservation was never used"
    resumed = Budget.under(1.0, paid_usd=Decimal("0.1") + unsettled(journal), journal=journal)
    resumed.settle(resumed.reserve(Decimal("0.65"), model="m"), Decimal("0.65"))
    with pytest.raises(CostLimitError):
        resumed.reserve(Decimal("0.01"), model="m")
    resumed.close()
    assert unsettled(journal) == Decimal("0.25")


@given(amounts.filter(lambda limit: limit > 0), st.data())
def test_the_limit_is_never_exceeded(limit: Decimal, data: st.DataObject) -> None:
    budget = Budget(limit_usd=limit)
    under_way: list[Decimal] = []
    billed = Decimal(0)
    for _ in range(data.draw(st.integers(0, 30), label="steps")):
        settling: bool = data.draw(st.booleans(), label="settle")
        if under_way and settling:
            reserved = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
            actual = data.draw(st.none() | st.decimals(0, reserved, places=8), label="actual")
            budget.settle(reserved, actual)
            billed += reserved if actual is None else actual
        else:
            highest = data.draw(amounts, label="highest")
            fits = budget.paid_usd + sum(under_way) + highest <= limit
            try:
                under_way.append(budget.reserve(highest, model="m"))
            except CostLimitError:
                assert not fits
            else:
                assert fits
        assert budget.paid_usd + budget.reserved_usd <= limit
        assert budget.reserved_usd == sum(under_way)
        assert budget.paid_usd == billed
