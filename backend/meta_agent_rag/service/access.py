"""Who may do what, and how often: keys, and questions per minute. Keys are shown once, and stored as a digest."""

import hashlib
import math
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from ..errors import InputError, RequestError, SettingsError, UnknownNameError
from ..settings import Settings
from .database import KEYS, looked_up

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.strategies import MovingWindowRateLimiter

SCOPES = ("ask", "ingest", "admin")
_NAME = re.compile(r"[\w.@-][\w .@-]{0,99}")
_KNOWN_SECONDS = 2.0
_KNOWN_SECONDS_WITHOUT_DATABASE = 300.0


@dataclass(frozen=True, kw_only=True)
class Client:
    """The holder of a key, as stored, and its permissions. Times are UTC; `daily_usd` caps the cost in a UTC day.

    `corpora` are the ones that the key may use; `None` means every corpus that the service was started with.
    """

    id: str
    name: str
    digest: str
    scopes: Sequence[str]
    created: datetime
    daily_usd: float | None = None
    corpora: Sequence[str] | None = None
    expires: datetime | None = None
    revoked: datetime | None = None

    @property
    def state(self) -> str:
        """`valid`, `expired` or `revoked`, now."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= datetime.now(UTC) else "valid"

    def require(self, scope: str) -> None:
        """Raise `RequestError` with 403 if the key lacks a scope."""
        if scope not in self.scopes:
            words = f"The key {self.name!r} lacks the scope {scope!r}; use one that has it."
            raise RequestError(403, "forbidden", words)

    def allowed(self, served: Iterable[str]) -> list[str]:
        """The served corpora that this key may use, the default first."""
        return [name for name in served if self.corpora is None or name in self.corpora]

    def corpus(self, name: str | None, served: Iterable[str]) -> str:
        """The named corpus, or the default one. Raises `RequestError` if it is not served to this key."""
        allowed = self.allowed(served)
        if not allowed:
            raise RequestError(403, "forbidden", f"The key {self.name!r} may use none of the served corpora.")
        if name is not None and name not in allowed:
            known = ", ".join(allowed)
            raise RequestError(404, "unknown_corpus", f"The corpus {name!r} is not served; choose from: {known}.")
        return name or allowed[0]


@dataclass(kw_only=True)
class Keys:
    """The keys in the database. Look-ups are cached for 2 s, so a revoked key stops working within that time.

    A look-up times out after `look_up_seconds`, whether the database is unavailable or hangs.
    """

    engine: AsyncEngine
    look_up_seconds: float = 2.0
    _known: dict[str, tuple[float, Client]] = field(default_factory=dict, repr=False)

    async def create(
        self,
        name: str,
        scopes: Sequence[str] = ("ask",),
        *,
        days: int | None = None,
        daily_usd: float | None = None,
        corpora: Sequence[str] | None = None,
    ) -> tuple[str, Client]:
        """A new key: its token, which is shown only once, and its record. Raises `InputError`."""
        if not _NAME.fullmatch(name):
            raise InputError(f"A key cannot be named {name!r}; use 1 to 100 letters, digits, blanks and '.@_-'.")
        for scope in scopes:
            if scope not in SCOPES:
                raise UnknownNameError("scope", scope, list(SCOPES))
        if days is not None and not 1 <= days <= 36_500:
            raise InputError(f"A key cannot be valid for {days!r} days; give 1 to 36500, or nothing for no expiry.")
        if daily_usd is not None and not 0 < daily_usd < math.inf:
            raise InputError(f"A key's daily cap cannot be {daily_usd!r} dollars; give a number above 0.")
        id_, now = secrets.token_hex(6), datetime.now(UTC)
        token = f"marag_{id_}_{secrets.token_urlsafe(32)}"
        client = Client(
            id=id_,
            name=name,
            digest=_digest(token),
            scopes=[scope for scope in SCOPES if scope in scopes],
            created=now,
            daily_usd=daily_usd,
            corpora=None if corpora is None else list(dict.fromkeys(corpora)),
            expires=None if days is None else now + timedelta(days=days),
        )
        async with self.engine.begin() as connection:
            await connection.execute(insert(KEYS).values(**vars(client)))
        return token, client

    async def all(self) -> list[Client]:
        """All keys ever created, oldest first."""
        async with self.engine.connect() as connection:
            rows = await connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id))
            return [Client(**row._mapping) for row in rows]

    async def revoke(self, id_: str) -> Client:
        """Revoke a key. Raises `UnknownNameError`."""
        revoking = update(KEYS).where(KEYS.c.id == id_, KEYS.c.revoked.is_(None)).values(revoked=datetime.now(UTC))
        async with self.engine.begin() as connection:
            await connection.execute(revoking)
        self._known.clear()
        known = {client.id: client for client in await self.all()}
        if id_ not in known:
            raise UnknownNameError("key", id_, list(known))
        return known[id_]

    async def client(self, token: str) -> Client:
        """The client that holds this token. Raises `RequestError` with 401, or 503 if the keys cannot be read."""
        digest, now = _digest(token), time.monotonic()
        at, client = self._known.get(digest, (-math.inf, None))
        if now - at >= _KNOWN_SECONDS:
            try:
                client = await looked_up(self._selected(digest), self.look_up_seconds)
                if client is not None:  # guessed keys must not fill the memory
                    self._known[digest] = (now, client)
            except RequestError:
                if now - at >= _KNOWN_SECONDS_WITHOUT_DATABASE:
                    raise
        if client is None:
            raise RequestError(401, "invalid_key", "The key is unknown; ask the operator of the service for one.")
        if client.state != "valid":
            raise RequestError(401, "invalid_key", f"The key is {client.state}; ask the operator for another one.")
        return client

    async def _selected(self, digest: str) -> Client | None:
        async with self.engine.connect() as connection:
            row = (await connection.execute(select(KEYS).where(KEYS.c.digest == digest))).first()
        return None if row is None else Client(**row._mapping)


def _digest(token: str) -> str:
    """A plain digest suffices, since 32 random bytes cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """Never more than the limit in any minute, for each client; shared by workers if Redis is used."""

    limiter: "MovingWindowRateLimiter"
    item: "RateLimitItem"

    async def admit(self, client_id: str, kind: str) -> tuple[dict[str, str], RequestError | None]:
        """Count one request if the sliding minute has room: its state as response headers, and the refusal if not.

        Each `kind` is counted on its own. Raises `RequestError` (503) if Redis is unavailable.
        """
        from limits.errors import StorageError as WindowsError

        try:
            admitted = await self.limiter.hit(self.item, client_id, kind)
            reset, remaining = await self.limiter.get_window_stats(self.item, client_id, kind)
        except WindowsError:
            raise RequestError(503, "unavailable", "Rates cannot be counted at the moment; try again later.") from None
        limit = self.item.amount
        wait = max(1, math.ceil(reset - time.time())) if remaining < limit else 0
        counts = {"limit": limit, "remaining": remaining, "reset": wait}
        words = f"The key may ask {limit} questions a minute; wait {wait} s."
        refusal = None if admitted else RequestError(429, "rate_limited", words, retry_after=wait)
        return {f"x-ratelimit-{name}": str(count) for name, count in counts.items()}, refusal


@asynccontextmanager
async def open_limits(settings: Settings) -> AsyncIterator[RateLimits]:
    """Rate limits in memory, or in Redis. Raises `SettingsError` for REDIS_URL."""
    from limits import RateLimitItemPerMinute
    from limits.aio.storage import MemoryStorage
    from limits.aio.strategies import MovingWindowRateLimiter
    from limits.errors import ConfigurationError
    from limits.storage import storage_from_string

    item = RateLimitItemPerMinute(settings.service_rate_per_minute)
    if settings.redis_url is None:
        yield RateLimits(limiter=MovingWindowRateLimiter(MemoryStorage()), item=item)
        return
    try:
        from redis.asyncio import ConnectionPool

        url = settings.redis_url.get_secret_value()
        pool = ConnectionPool.from_url(url, socket_timeout=2.0, socket_connect_timeout=2.0)
        options: dict[str, Any] = {"connection_pool": pool}  # missing from the function's stub
        redis = storage_from_string(f"async+{url}", implementation="redispy", wrap_exceptions=True, **options)
    except (ConfigurationError, ValueError, ModuleNotFoundError) as error:
        # the error text may contain the URL, and with it a password
        raise SettingsError(
            f"REDIS_URL cannot be used ({type(error).__name__}); write it as redis://HOST:6379, and install `redis`."
        ) from None
    try:
        yield RateLimits(limiter=MovingWindowRateLimiter(redis), item=item)
    finally:
        await pool.aclose()
