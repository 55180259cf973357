"""What calls may take: money, which is reserved before a call and settled after it, and time until a deadline."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ..errors import CostLimitError, DeadlineError, UnpricedModelError
from ..journal import Journal, records

_RESERVED, _SETTLED = "reserved_usd", "settled_usd"
PASSED = "The deadline has passed; ask a simpler question or allow more time."


async def in_time(waiting: Awaitable[Any], deadline: float | None) -> None:
    """Await something. `deadline` is a `time.monotonic` timestamp; raises `DeadlineError` once it has passed."""
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            await waiting
    except TimeoutError:
        raise DeadlineError(PASSED) from None


@asynccontextmanager
async def holding(lock: asyncio.Lock | asyncio.Semaphore, deadline: float | None) -> AsyncIterator[None]:
    """Hold a lock or a semaphore, acquired as in `in_time`."""
    await in_time(lock.acquire(), deadline)
    try:
        yield
    finally:
        lock.release()


@dataclass
class Budget:
    """The limit, the amount paid, and the amount reserved for calls in progress, in USD.

    With a `journal`, reservations survive a kill: its unsettled ones (`unsettled`) may have been billed. It is
    also kept without a limit, since the run may continue with one.
    With `counting`, rows contain the maximum cost of a call with an unknown bill even without a limit.
    """

    limit_usd: Decimal | None = None
    paid_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)
    journal: Journal | None = None
    counting: bool = False
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, repr=False)

    @classmethod
    def under(cls, limit_usd: float | None, *, paid_usd: Decimal = Decimal(0), journal: Path | None = None) -> "Budget":
        """A budget with the limit in the settings; without a limit nothing is refused."""
        limit = None if limit_usd is None else Decimal(str(limit_usd))
        return cls(limit_usd=limit, paid_usd=paid_usd, journal=None if journal is None else Journal(journal))

    @property
    def holds(self) -> bool:
        """Whether a call with an unknown bill counts at its maximum cost."""
        return self.counting or self._counts

    async def acquire(self, highest_usd: Decimal | None, *, model: str, deadline: float | None = None) -> Decimal:
        """Reserve, waiting for calls in progress if only their reservations stand in the way.

        `deadline` is a `time.monotonic` timestamp. Raises the errors of `reserve`, and `DeadlineError` after it.
        """
        while True:
            try:
                return self.reserve(highest_usd, model=model)
            except CostLimitError:
                hopeless = highest_usd is None or self.limit_usd is None or self.paid_usd + highest_usd > self.limit_usd
                if hopeless or self.reserved_usd <= 0:
                    raise
            settled = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await in_time(settled, deadline)

    def reserve(self, highest_usd: Decimal | None, *, model: str) -> Decimal:
        """Reserve the maximum cost of a call; returns the sum to settle later.

        Raises `CostLimitError` if that could exceed the limit, and `UnpricedModelError` if a
        limit is set and the model's price is unknown.
        """
        if not self._counts or (highest_usd is None and self.limit_usd is None):
            return Decimal(0)
        if highest_usd is None:
            raise UnpricedModelError(
                f"The model {model!r} has no known price, so a cost limit cannot be enforced; leave the limit out, or "
                "give your own server `prices: free` in MODEL_ROLES."
            )
        if self.limit_usd is not None and self.paid_usd + self.reserved_usd + highest_usd > self.limit_usd:
            raise CostLimitError(
                f"The next call could cost {highest_usd:.6f} USD, and {self.paid_usd:.6f} of the limit of "
                f"{self.limit_usd} USD are spent or reserved for interrupted calls; raise the limit to continue."
            )
        self._note(_RESERVED, highest_usd)
        self.reserved_usd += highest_usd
        return highest_usd

    def settle(self, reserved_usd: Decimal, paid_usd: Decimal | None, *, recorded: bool = True) -> None:
        """Replace a reservation by the amount paid; if that is unknown, the reservation counts as paid.

        A call whose row could not be written (`recorded`) stays in the journal, so that a resumed run counts it.
        """
        if not self._counts:
            return
        self.reserved_usd -= reserved_usd
        self.paid_usd += reserved_usd if paid_usd is None else paid_usd
        for settled in self._waiting:
            if not settled.done():
                settled.set_result(None)
        self._waiting.clear()
        if recorded:
            self._note(_SETTLED, reserved_usd)  # last, so that a failed write leaves nobody waiting

    def close(self) -> None:
        """Release the journal; it is deleted if nothing in it is unsettled."""
        if self.journal is not None:
            self.journal.close()
            if not unsettled(self.journal.path):
                self.journal.path.unlink(missing_ok=True)

    @property
    def _counts(self) -> bool:
        return self.limit_usd is not None or self.journal is not None

    def _note(self, what: str, usd: Decimal) -> None:
        if self.journal is not None and usd:
            self.journal.append({what: usd})


def unsettled(journal: Path) -> Decimal:
    """The maximum cost of calls in progress at a kill, in USD; 0 for a missing file."""
    rows = (row for _, row in records(journal) if row is not None)
    return max(sum((_usd(row, _RESERVED) - _usd(row, _SETTLED) for row in rows), Decimal(0)), Decimal(0))


def _usd(row: Mapping[str, Any], what: str) -> Decimal:
    try:
        usd = Decimal(str(row.get(what, 0)))
    except InvalidOperation:
        return Decimal(0)
    return usd if usd.is_finite() else Decimal(0)
