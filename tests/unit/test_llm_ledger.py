"""The ledger: rows can be read back, and sums never hide unknown values."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.cli.shared.display import spending
from meta_agent_rag.llm.ledger import Ledger, LedgerRow, Totals, read_ledger, total

AT = datetime(2026, 11, 3, 12, 0, 0, 123456, tzinfo=UTC)


def row(**fields: object) -> LedgerRow:
    given_fields: dict[str, object] = {
        "at": AT,
        "stage": "write",
        "tier": "flash",
        "provider": "deepseek",
        "model": "deepseek-v4-flash",
        "request": "0" * 64,
        "cost_usd": Decimal("0.001"),
        "paid_usd": Decimal("0.001"),
        **fields,
    }
    return LedgerRow(**given_fields)  # type: ignore[arg-type]  # shorthand for tests


money = st.none() | st.decimals(0, 1_000, places=10)
texts = st.text(max_size=20)
times = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=8))]))
rows = st.builds(row, at=times, stage=texts, question_id=texts, cost_usd=money, paid_usd=money, error=st.none() | texts)


@given(st.lists(rows, max_size=5))
def test_written_rows_are_read_back(written: list[LedgerRow]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        ledger = Ledger(path=path)
        for one in written:
            ledger.add(one)
        assert list(read_ledger(path)) == written  # before it is closed as well
        ledger.close()
        assert list(read_ledger(path)) == written


def test_totals_by_hand() -> None:
    served = row(prompt_tokens=100, cache_hit_tokens=60, completion_tokens=10, reasoning_tokens=4)
    cached = row(prompt_tokens=100, cache_hit_tokens=0, completion_tokens=10, cached=True, paid_usd=Decimal(0))
    failed = row(error="timeout", cost_usd=None, paid_usd=None)
    assert total([served, cached, failed]) == Totals(
        calls=3,
        cached_calls=1,
        failed_calls=1,
        prompt_tokens=200,
        cache_hit_tokens=60,
        completion_tokens=20,
        reasoning_tokens=4,
        cost_usd=Decimal("0.002"),
        paid_usd=Decimal("0.001"),
    )
    assert total([served, cached]).cache_hit_share == 0.3


def test_failed_calls_that_may_have_been_billed_count_as_paid() -> None:
    sums = total([row(), row(error="timeout", cost_usd=None), row(error="RefusedError", cost_usd=None, paid_usd=None)])
    assert (sums.cost_usd, sums.paid_usd, sums.failed_usd) == (Decimal("0.001"), Decimal("0.002"), Decimal("0.001"))
    words = "3 calls, 0 + 0 tokens, 0.001000 USD, and at most 0.001000 USD for failed calls"
    assert spending(sums) == words
    assert total([row(cost_usd=None, paid_usd=None), row(error="timeout")]).paid_usd is None
