"""The cost ledger: one row per call, including cached and failed ones."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..journal import Journal, records
from ..settings import Tier
from .providers import EMBEDDED


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One call. Tokens are counts, or `None` if none were reported; `latency_s` is in seconds, money in USD.

    `cost_usd` is the call's price, and `None` if the model has no known price; `paid_usd` is the same, but 0 if the
    response cache served it; if a limit, a cap or reservations are kept, it is the maximum cost for a call with an
    unknown bill. `cached` refers to the response cache; `cache_hit_tokens` to the provider's prefix cache.
    `request` is the key of the request: equal keys are equal calls. `role` is the purpose of the stage and
    `endpoint` the name in MODEL_ROLES of what served it; `answered_by` is the model's own name in its reply, which may
    differ from the requested `model`. `queued_s` is how long the call waited for others before its first
    attempt.
    """

    at: datetime
    stage: str
    tier: Tier
    provider: str
    model: str
    request: str
    role: str = ""
    endpoint: str = ""
    question_id: str = ""
    method: str = ""
    round: int = 0
    attempt: int = 0
    cached: bool = False
    prompt_tokens: int | None = None
    cache_hit_tokens: int | None = None
    cache_miss_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    usage_known: bool = True
    cost_usd: Decimal | None = None
    paid_usd: Decimal | None = None
    peak: bool = False
    latency_s: float = 0.0
    queued_s: float = 0.0
    finish_reason: str | None = None
    answered_by: str | None = None
    error: str | None = None


CANCELLED = "cancelled"
"""The error of a call that was no longer needed."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over rows. `cost_usd` is `None` if any served call has no known price.

    `unmetered_calls` are served calls for which the server reported no tokens. `failed_usd` is the most that failed
    calls may have been billed, where that is known; `paid_usd` includes it.
    `on_this_machine` is true if there are calls, all served by the embedded model.
    """

    calls: int = 0
    cached_calls: int = 0
    failed_calls: int = 0
    unmetered_calls: int = 0
    prompt_tokens: int = 0
    cache_hit_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    paid_usd: Decimal | None = Decimal(0)
    failed_usd: Decimal = Decimal(0)
    on_this_machine: bool = False

    @property
    def cache_hit_share(self) -> float | None:
        """Share of prompt tokens that the provider's prefix cache served, 0..1."""
        return self.cache_hit_tokens / self.prompt_tokens if self.prompt_tokens else None


def total(rows: Iterable[LedgerRow]) -> Totals:
    """Sum up rows; failed calls count as calls, and an unknown cost of theirs does not make a sum unknown."""
    rows = list(rows)
    served = [row for row in rows if row.error is None]
    failed_usd = sum((row.paid_usd or Decimal(0) for row in rows if row.error is not None), Decimal(0))
    paid_usd = _sum_or_none(row.paid_usd for row in served)
    return Totals(
        calls=len(rows),
        cached_calls=sum(row.cached for row in rows),
        failed_calls=sum(row.error is not None for row in rows),
        unmetered_calls=sum(not row.usage_known for row in served),
        prompt_tokens=sum(row.prompt_tokens or 0 for row in rows),
        cache_hit_tokens=sum(row.cache_hit_tokens or 0 for row in rows),
        completion_tokens=sum(row.completion_tokens or 0 for row in rows),
        reasoning_tokens=sum(row.reasoning_tokens or 0 for row in rows),
        cost_usd=_sum_or_none(row.cost_usd for row in served),
        paid_usd=None if paid_usd is None else paid_usd + failed_usd,
        failed_usd=failed_usd,
        on_this_machine=bool(rows) and all(row.provider == EMBEDDED for row in rows),
    )


def lost_calls(rows: Iterable[LedgerRow]) -> int:
    """How many requests got no reply at all: the last attempt at each of them failed."""
    last = {row.request: row.error for row in rows if row.error != CANCELLED}
    return sum(error is not None for error in last.values())


def _sum_or_none(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = list(amounts)
    return None if None in known else sum((one for one in known if one is not None), Decimal(0))


@dataclass
class Ledger:
    """Writes rows to a JSONL file, if given, as they come, and passes them to its listeners.

    It keeps none in memory, because a service makes calls for months.
    """

    path: Path | None = None
    listeners: list[Callable[[LedgerRow], None]] = field(default_factory=list)
    _journal: Journal | None = None

    def add(self, row: LedgerRow) -> None:
        """Record a call."""
        if self.path is not None:
            self._journal = self._journal or Journal(self.path)
            self._journal.append(vars(row))
        for listener in self.listeners:
            listener(row)

    def close(self) -> None:
        """Close the ledger's file."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def read_ledger(path: Path) -> Iterator[LedgerRow]:
    """Rows of an earlier session, one by one; torn lines and invalid records are skipped."""
    for _, record in records(path):
        with suppress(KeyError, TypeError, ValueError, ArithmeticError):
            if record is not None:
                yield ledger_row(record)


def ledger_row(row: dict[str, Any]) -> LedgerRow:
    """A row restored from its JSONL form."""
    money = {name: Decimal(row[name]) if row.get(name) is not None else None for name in ("cost_usd", "paid_usd")}
    return LedgerRow(**{**row, **money, "at": datetime.fromisoformat(row["at"])})
