"""Who may do what, and how often: keys, and questions per minute.

Keys are shown once, stored as a keyed digest, and compared in constant time.
"""

import hashlib
import hmac
import math
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from ..errors import InputError, RequestError, SettingsError, StorageError, UnknownNameError
from ..settings import Settings
from .database import KEYS, in_utc, within

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.aio.strategies import MovingWindowRateLimiter

SCOPES = ("ask", "ingest", "admin")
LOOK_UP_SECONDS = 2.0
QUESTIONS, READS = "ask", "read"
"""What is counted per minute, each on its own."""
_TOKEN = re.compile(r"marag_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[\w .@-]{1,100}")
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
    scopes: tuple[str, ...]
    created: datetime
    daily_usd: float | None = None
    corpora: tuple[str, ...] | None = None
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
    pepper: bytes
    look_up_seconds: float = LOOK_UP_SECONDS
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
        if not _NAME.fullmatch(name) or not name.strip():
            raise InputError(f"A key cannot be named {name!r}; use 1 to 100 letters, digits, blanks and '.@_-'.")
        for scope in scopes:
            if scope not in SCOPES:
                raise UnknownNameError("scope", scope, list(SCOPES))
        if days is not None and not 1 <= days <= 36_500:
            raise InputError(f"A key cannot be valid for {days!r} days; give 1 to 36500, or nothing for no expiry.")
        if daily_usd is not None and not 0 < daily_usd < float("inf"):
            raise InputError(f"A key's daily cap cannot be {daily_usd!r} dollars; give a number above 0.")
        id_, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), datetime.now(UTC)
        client = Client(
            id=id_,
            name=name.strip(),
            digest=self._digest(id_, secret),
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            created=now,
            daily_usd=daily_usd,
            corpora=None if corpora is None else tuple(dict.fromkeys(corpora)),
            expires=None if days is None else now + timedelta(days=days),
        )
        async with self.engine.begin() as connection:
            await connection.execute(insert(KEYS).values(**vars(client)))
        return f"marag_{id_}_{secret}", client

    async def all(self) -> list[Client]:
        """All keys ever created, oldest first."""
        async with self.engine.connect() as connection:
            rows = await connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id))
            return [_client(row._mapping) for row in rows]

    async def revoke(self, id_: str) -> Client:
        """Revoke a key. Raises `UnknownNameError`."""
        revoking = update(KEYS).where(KEYS.c.id == id_, KEYS.c.revoked.is_(None)).values(revoked=datetime.now(UTC))
        async with self.engine.begin() as connection:
            await connection.execute(revoking)
        self._known.pop(id_, None)
        known = {client.id: client for client in await self.all()}
        if id_ not in known:
            raise UnknownNameError("key", id_, list(known))
        return known[id_]

    async def client(self, token: str) -> Client:
        """The client that holds this token. Raises `RequestError` with 401, or 503 if the keys cannot be read."""
        match = _TOKEN.fullmatch(token)
        id_, secret = (match[1], match[2]) if match else ("", token)
        client = await self._looked_up(id_) if match else None
        # takes as long as for an existing key
        expected = client.digest if client is not None else self._digest("", "")
        if not hmac.compare_digest(self._digest(id_, secret), expected) or client is None:
            raise RequestError(401, "invalid_key", "The key is unknown; ask the operator of the service for one.")
        if client.state != "valid":
            raise RequestError(401, "invalid_key", f"The key is {client.state}; ask the operator for another one.")
        return client

    async def _looked_up(self, id_: str) -> Client | None:
        now = time.monotonic()
        at, known = self._known.get(id_, (-math.inf, None))
        if now - at < _KNOWN_SECONDS:
            return known
        try:
            found = await within(self._selected(id_), self.look_up_seconds)
        except (SQLAlchemyError, OSError):
            if now - at < _KNOWN_SECONDS_WITHOUT_DATABASE:
                return known
            raise RequestError(503, "unavailable", "Keys cannot be read at the moment; try again later.") from None
        if found is not None:  # guessed ids must not fill the memory
            self._known[id_] = (now, found)
        return found

    async def _selected(self, id_: str) -> Client | None:
        async with self.engine.connect() as connection:
            row = (await connection.execute(select(KEYS).where(KEYS.c.id == id_))).first()
        return None if row is None else _client(row._mapping)

    def _digest(self, id_: str, secret: str) -> str:
        return hmac.new(self.pepper, f"{id_}:{secret}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _client(row: Any) -> Client:
    times = {name: row[name] and in_utc(row[name]) for name in ("created", "expires", "revoked")}
    corpora = None if row["corpora"] is None else tuple(row["corpora"])
    return Client(**{**row, **times, "scopes": tuple(row["scopes"]), "corpora": corpora})


def open_keys(engine: AsyncEngine, settings: Settings, *, look_up_seconds: float = LOOK_UP_SECONDS) -> Keys:
    """The keys of a database. Raises `StorageError` if the pepper cannot be stored."""
    return Keys(engine=engine, pepper=_pepper(settings), look_up_seconds=look_up_seconds)


def _pepper(settings: Settings) -> bytes:
    """SERVICE_KEY_PEPPER, or a secret that is generated once and readable only by this user."""
    if settings.service_key_pepper is not None:
        return settings.service_key_pepper.get_secret_value().encode()
    path: Path = settings.marag_data_dir / "service.pepper"
    own = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):
                os.link(own, path)  # atomic; the first one is kept
            own.unlink()
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"The pepper {str(path)!r} cannot be stored ({error}); set SERVICE_KEY_PEPPER.") from None


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """Never more than the limit in any minute, for each client; shared by workers if Redis is used."""

    limiter: "MovingWindowRateLimiter"
    item: "RateLimitItem"

    async def admit(self, client_id: str, kind: str) -> tuple[dict[str, str], RequestError | None]:
        """Count one request if the sliding minute has room: its state as response headers, and the refusal if not.

        Raises `RequestError` (503) if Redis is unavailable.
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
