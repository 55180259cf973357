"""Prices: DeepSeek's dated tariffs with peak windows, other providers' list prices, reservations."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.llm.messages import Message, Request, Usage
from meta_agent_rag.llm.pricing import max_cost, million_token_prices, price, tariff_book
from meta_agent_rag.llm.providers import providers

FLASH, PRO = "deepseek-v4-flash", "deepseek-v4-pro"
OFF_PEAK = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)  # a Tuesday
MILLION_EACH = Usage(prompt=2_000_000, cache_hit=1_000_000, completion=1_000_000)


def paid(model: str, at: datetime, usage: Usage = MILLION_EACH) -> Decimal | None:
    found = price(usage, model=model, prices=None, at=at)
    return found.usd if found is not None else None


def highest(prompt: int, most: int, model: str, prices: str | None, at: datetime) -> Decimal | None:
    """The reservation for a call whose prompt has that many tokens of a byte each."""
    said = (Message(role="user", content="x" * prompt),)
    request = Request(stage="write", model=model, messages=said, max_tokens=most, temperature=0.0)
    return max_cost(request, model=model, prices=prices, at=at)


def is_peak(at: datetime) -> bool:
    found = price(Usage(prompt=1), model=FLASH, prices=None, at=at)
    assert found is not None
    return found.peak


@pytest.mark.parametrize(
    ("day", "peak"),
    [
        ("2026-09-28", True),  # the Monday before the holidays
        ("2026-10-01", False),  # National Day, a Thursday
        ("2026-11-06", True),  # a Friday
        ("2026-11-07", False),
        ("2026-11-08", False),
        ("2026-11-09", True),
        ("2027-01-01", False),  # New Year, a Friday
    ],
)
def test_weekends_and_chinese_holidays_are_off_peak(day: str, peak: bool) -> None:
    assert is_peak(datetime.fromisoformat(f"{day}T02:00:00+00:00")) is peak


@pytest.mark.parametrize(
    ("model", "prices"), [("no-such-model", None), ("no-such-model", "openai"), ("gpt-4.1", "no-such-provider")]
)
def test_unknown_prices_are_none_and_never_zero(model: str, prices: str | None) -> None:
    assert price(MILLION_EACH, model=model, prices=prices, at=OFF_PEAK) is None
    assert highest(100, 100, model, prices, OFF_PEAK) is None
    assert million_token_prices(model, prices, OFF_PEAK) is None


LISTED = [
    (model, row.prices) for row in providers().values() if row.prices is not None for model in (row.flash, row.pro)
]


moments = st.datetimes(datetime(2026, 7, 1), datetime(2027, 3, 1), timezones=st.just(UTC))
counts = st.integers(0, 500_000)


@given(st.sampled_from([(FLASH, None), (PRO, None), *LISTED]), moments, counts, counts, st.data())
def test_a_reservation_covers_the_cost_of_its_call(
    row: tuple[str, str | None], at: datetime, prompt: int, most: int, data: st.DataObject
) -> None:
    model, prices = row
    used = Usage(prompt=prompt, cache_hit=data.draw(st.integers(0, prompt)), completion=data.draw(st.integers(0, most)))
    actual = price(used, model=model, prices=prices, at=at)
    reserved = highest(prompt, most, model, prices, at)
    assert (actual is None) == (reserved is None)
    if actual is not None and reserved is not None:
        assert reserved >= actual.usd >= 0


@given(st.sampled_from([FLASH, PRO]), moments, st.integers(0, 3_600), counts, counts)
def test_a_reservation_suffices_if_peak_hours_begin_during_the_call(
    model: str, at: datetime, seconds: int, prompt: int, completion: int
) -> None:
    later = at + timedelta(seconds=seconds)
    tariffs = [[row for row in tariff_book().tariffs if row.in_force(model, moment.date())] for moment in (at, later)]
    reserved = highest(prompt, completion, model, None, at)
    actual = paid(model, later, Usage(prompt=prompt, completion=completion))
    if tariffs[0] == tariffs[1] and reserved is not None:
        assert actual is not None
        assert reserved >= actual
