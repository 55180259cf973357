"""The cost of a call: DeepSeek's dated, peak-aware tariffs from data, others' from genai-prices.

An unknown price is `None`, never 0.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, Field

from ..settings import Settings
from .messages import Request, Usage
from .providers import Endpoint
from .stages import CHAT, Use, endpoints_in_use

NO_CHARGE = "free"  # instead of a provider's name in genai-prices: a server that charges nothing
_MILLION = Decimal(1_000_000)
_MINUTES = range(-10, 71, 10)
"""The period around sending in which a call may be billed: clocks differ, and it may be queued."""


class Peak(BaseModel, frozen=True, extra="forbid"):
    """When prices are multiplied; windows are [start, end) in UTC."""

    windows_utc: tuple[tuple[time, time], ...]
    weekdays: frozenset[int]
    except_holidays_of: str
    factor: Decimal

    def covers(self, at: datetime) -> bool:
        """Whether `at` is within a peak window of a working day."""
        moment = at.astimezone(UTC)
        in_window = any(start <= moment.time() < end for start, end in self.windows_utc)
        return (
            in_window
            and moment.weekday() in self.weekdays
            and moment.date() not in _holidays(self.except_holidays_of, moment.year)
        )


class Tariff(BaseModel, frozen=True, extra="forbid"):
    """Prices of some models over some days, in USD per million tokens."""

    models: tuple[str, ...]
    since: date | None = Field(None, alias="from")
    until: date | None = None
    cache_hit: Decimal
    cache_miss: Decimal
    completion: Decimal
    peak: str | None = None

    def in_force(self, model: str, day: date) -> bool:
        """Whether this row prices `model` on that day."""
        return model in self.models and (self.since or date.min) <= day <= (self.until or date.max)


class TariffBook(BaseModel, frozen=True, extra="forbid"):
    """All of `tariffs.yaml`."""

    peaks: Mapping[str, Peak]
    tariffs: tuple[Tariff, ...]


@dataclass(frozen=True, kw_only=True)
class Price:
    """Cost of one call in USD, and whether peak prices applied."""

    usd: Decimal
    peak: bool = False


@cache
def tariff_book() -> TariffBook:
    """The dated tariffs in the package."""
    return TariffBook.model_validate(
        yaml.safe_load(files(__package__).joinpath("tariffs.yaml").read_text(encoding="utf-8"))
    )


@cache
def _holidays(country: str, year: int) -> frozenset[date]:
    import holidays

    return frozenset(holidays.country_holidays(country, years=year))


def price(
    usage: Usage, *, model: str, prices: str | None, at: datetime, book: TariffBook | None = None
) -> Price | None:
    """Cost of a call that used `usage` tokens of `model` at the time `at`.

    `prices` is the provider's name in genai-prices, or `free`. `None` for models of the embedded provider and
    unknown ones.
    """
    if prices == NO_CHARGE:
        return Price(usd=Decimal(0))
    book = book or tariff_book()
    tariff = next((row for row in book.tariffs if row.in_force(model, at.astimezone(UTC).date())), None)
    if tariff is not None:
        peak = book.peaks[tariff.peak] if tariff.peak else None
        at_peak = peak is not None and peak.covers(at)
        factor = peak.factor if peak is not None and at_peak else Decimal(1)
        tokens_usd = (
            usage.cache_hit * tariff.cache_hit
            + usage.cache_miss * tariff.cache_miss
            + usage.completion * tariff.completion
        )
        return Price(usd=tokens_usd * factor / _MILLION, peak=at_peak)
    if any(model in row.models for row in book.tariffs) or prices is None:
        return None
    import genai_prices

    listed_usage = genai_prices.Usage(
        input_tokens=usage.prompt, cache_read_tokens=usage.cache_hit, output_tokens=usage.completion
    )
    try:
        listed = genai_prices.calc_price(
            listed_usage,
            model,
            provider_id=prices,
            genai_request_timestamp=at,
        )
    except LookupError:
        return None
    return Price(usd=listed.total_price)


@lru_cache(maxsize=64)
def _near(model: str, at: datetime) -> tuple[datetime, ...]:
    """One time for each price that may apply to a call sent within ten minutes of `at`."""
    moments: dict[tuple[Tariff, bool], datetime] = {}
    for moment in (at + timedelta(minutes=minutes) for minutes in _MINUTES):
        for row in tariff_book().tariffs:
            if row.in_force(model, moment.astimezone(UTC).date()):
                at_peak = row.peak is not None and tariff_book().peaks[row.peak].covers(moment)
                moments.setdefault((row, at_peak), moment)
    return tuple(moments.values())


def million_token_prices(model: str, prices: str | None, at: datetime) -> dict[str, Decimal] | None:
    """The price of a million cached, uncached and completion tokens at a time, in USD; `None` if unknown."""
    kinds = {
        "cache hit": Usage(prompt=1_000_000, cache_hit=1_000_000),
        "cache miss": Usage(prompt=1_000_000),
        "completion": Usage(completion=1_000_000),
    }
    found = {kind: price(usage, model=model, prices=prices, at=at) for kind, usage in kinds.items()}
    return {kind: cost.usd for kind, cost in found.items() if cost is not None} or None


_FRAME_TOKENS = 64


def unpriced_models(settings: Settings, uses: Collection[Use] = CHAT, *, at: datetime) -> tuple[str, ...]:
    """The models of these uses without a known price; the embedded one is free and needs none."""
    return unpriced(endpoints_in_use(settings, uses).values(), at=at)


def unpriced(endpoints: Iterable[Endpoint], *, at: datetime) -> tuple[str, ...]:
    """The models of these endpoints without a known price."""
    priced = [(one.model, one.provider.prices) for one in endpoints if not one.is_embedded]
    return tuple(name for name, prices in dict.fromkeys(priced) if million_token_prices(name, prices, at) is None)


def max_cost(
    request: Request, reply: str | None = None, *, model: str, prices: str | None, at: datetime
) -> Decimal | None:
    """The maximum cost of a call sent at `at` or, given its `reply`, of the completed call; `None` if it has no price.

    Nothing is cached, and peak prices apply if peak hours are near, so that a reservation of this amount enforces a
    cost limit even if the call is queued.
    """
    prompt = _most_tokens(message.content for message in request.messages)
    if request.json_schema is not None:  # some endpoints include it in the prompt
        prompt += len(json.dumps(request.json_schema))
    completion = request.max_tokens if reply is None else min(_most_tokens([reply]), request.max_tokens)
    usage = Usage(prompt=prompt, completion=completion)
    found = [price(usage, model=model, prices=prices, at=at)]
    if found[0] is not None:
        near = _near(model, at.replace(minute=at.minute // 10 * 10, second=0, microsecond=0))
        found += [price(usage, model=model, prices=prices, at=moment) for moment in near]
    return max((cost.usd for cost in found if cost is not None), default=None)


def _most_tokens(texts: Iterable[str]) -> int:
    """The byte count: no tokenizer produces more tokens, and for digits or hieroglyphs some produce as many."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + _FRAME_TOKENS
