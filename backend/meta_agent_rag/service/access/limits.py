"""Limits of a key: questions per sliding minute, concurrent requests, and daily cost."""

import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import RequestError, SettingsError
from ...settings import Settings

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.strategies import MovingWindowRateLimiter

_REDIS_SECONDS = 2.0
_TIMEOUTS = ("socket_timeout", "socket_connect_timeout")


@dataclass(frozen=True, kw_only=True)
class RateWindow:
    """The remaining requests of a sliding minute; `reset` is the seconds until the oldest one leaves it."""

    limit: int
    remaining: int
    reset: int
    admitted: bool

    def headers(self) -> dict[str, str]:
        """The state of the window as response headers."""
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-reset": str(self.reset),
        }


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """Never more than the limit in any minute, for each client; shared by all workers if Redis is used."""

    limiter: "MovingWindowRateLimiter"
    item: "RateLimitItem"
    shared: bool

    async def admit(self, client_id: str, kind: str) -> RateWindow:
        """Count one request if the window has room. Raises `RequestError` (503) if Redis is unavailable."""
        from limits.errors import StorageError

        try:
            admitted = await self.limiter.hit(self.item, client_id, kind)
            reset, remaining = await self.limiter.get_window_stats(self.item, client_id, kind)
        except StorageError:
            raise RequestError(503, "unavailable", "Rates cannot be counted at the moment; try again later.") from None
        seconds = max(1, math.ceil(reset - time.time())) if remaining < self.item.amount else 0
        return RateWindow(limit=self.item.amount, remaining=remaining, reset=seconds, admitted=admitted)

    async def recall(self, client_id: str, kind: str, count: int) -> None:
        """Count the requests that an earlier process admitted in the last minute, as if they had just arrived."""
        if not self.shared:
            for _ in range(min(count, self.item.amount)):
                await self.limiter.hit(self.item, client_id, kind)


def require_admitted(window: RateWindow) -> None:
    """Raise `RequestError` with 429 if there was no room."""
    if not window.admitted:
        raise RequestError(
            429,
            "rate_limited",
            f"The key may ask {window.limit} questions a minute; wait {window.reset} s.",
            retry_after=window.reset,
        )


@asynccontextmanager
async def open_limits(settings: Settings) -> AsyncIterator[RateLimits]:
    """Rate limits in memory, or in Redis. Raises `SettingsError` for REDIS_URL."""
    from limits import RateLimitItemPerMinute
    from limits.aio.strategies import MovingWindowRateLimiter
    from limits.errors import ConfigurationError
    from limits.storage import storage_from_string
    from redis.asyncio import ConnectionPool

    from .monotonic_windows import MonotonicWindows

    item = RateLimitItemPerMinute(settings.service_rate_per_minute)
    if settings.redis_url is None:
        yield RateLimits(limiter=MovingWindowRateLimiter(MonotonicWindows()), item=item, shared=False)
        return
    url = settings.redis_url.get_secret_value()
    try:
        pool = ConnectionPool.from_url(url, **dict.fromkeys(_TIMEOUTS, _REDIS_SECONDS))
        shared: dict[str, Any] = {"connection_pool": pool}  # missing from the function's stub
        redis = storage_from_string(f"async+{url}", implementation="redispy", wrap_exceptions=True, **shared)
    except (ConfigurationError, ValueError) as error:
        # the error text may contain the URL, and with it a password
        raise SettingsError(
            f"REDIS_URL cannot be used ({type(error).__name__}); write it as redis://HOST:6379, and install `redis`."
        ) from None
    try:
        yield RateLimits(limiter=MovingWindowRateLimiter(redis), item=item, shared=True)
    finally:
        await pool.aclose()


@dataclass(kw_only=True)
class ConcurrencyLimit:
    """Limits concurrent requests; one beyond the limit is rejected immediately."""

    limit: int
    taken: int = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take a slot. Raises `RequestError` with 503 if all are taken."""
        if self.taken >= self.limit:
            raise RequestError(503, "overloaded", "The service is at its limit; try again in a second.", retry_after=1)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
