"""The service's keys: shown once, stored as a keyed digest, compared in constant time."""

import asyncio
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from ...errors import InputError, RequestError, StorageError, UnknownNameError
from ...settings import Settings
from ..request_record import Client
from ..storage.database import in_utc
from ..storage.tables import KEYS

SCOPES = ("ask", "ingest", "admin")
_TOKEN = re.compile(r"marag_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[\w .@-]{1,100}")
_KNOWN_SECONDS = 2.0
_KNOWN_SECONDS_WITHOUT_DATABASE = 300.0
LOOK_UP_SECONDS = 2.0
_PEPPER_FILE = "service.pepper"


@dataclass(frozen=True, kw_only=True)
class KeyRecord:
    """The stored data of a key. Times are UTC; `daily_usd` caps the cost of its questions in a UTC day."""

    id: str
    name: str
    digest: str
    scopes: tuple[str, ...]
    created: datetime
    daily_usd: float | None = None
    corpora: tuple[str, ...] | None = None
    expires: datetime | None = None
    revoked: datetime | None = None

    def state(self, now: datetime) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "valid"


@dataclass(kw_only=True)
class Keys:
    """The keys in the database. Look-ups are cached for 2 s, so a revoked key stops working within that time.

    A look-up times out after `look_up_seconds`, whether the database is unavailable or hangs.
    """

    engine: AsyncEngine
    pepper: bytes
    look_up_seconds: float = LOOK_UP_SECONDS
    _known: dict[str, tuple[float, KeyRecord | None]] = field(default_factory=dict, repr=False)

    async def create(
        self,
        name: str,
        scopes: Sequence[str] = ("ask",),
        *,
        days: int | None = None,
        daily_usd: float | None = None,
        corpora: Sequence[str] | None = None,
    ) -> tuple[str, KeyRecord]:
        """A new key: its token, which is shown only once, and its record. Raises `InputError`."""
        if not _NAME.fullmatch(name) or not name.strip():
            raise InputError(f"A key cannot be named {name!r}; use 1 to 100 letters, digits, blanks and '.@_-'.")
        for scope in scopes:
            if scope not in SCOPES:
                raise UnknownNameError("scope", scope, list(SCOPES))
        if days is not None and not 1 <= days <= 36_500:
            raise InputError(f"A key cannot expire after {days!r} days; give 1 to 36500, or nothing for no expiry.")
        if daily_usd is not None and not 0 < daily_usd < float("inf"):
            raise InputError(f"A key's daily cap cannot be {daily_usd!r} dollars; give a number above 0.")
        id_, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), datetime.now(UTC)
        record = KeyRecord(
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
            await connection.execute(insert(KEYS).values(**vars(record)))
        return f"marag_{id_}_{secret}", record

    async def all(self) -> list[KeyRecord]:
        """All keys ever created, oldest first."""
        async with self.engine.connect() as connection:
            rows = await connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id))
            return [_record(row._mapping) for row in rows]

    async def revoke(self, id_: str) -> KeyRecord:
        """Revoke a key. Raises `UnknownNameError`."""
        async with self.engine.begin() as connection:
            rows = await connection.execute(
                update(KEYS)
                .where(KEYS.c.id == id_, KEYS.c.revoked.is_(None))
                .values(revoked=datetime.now(UTC))
                .returning(KEYS.c.id)
            )
            rows.all()
        self._known.pop(id_, None)
        found = next((record for record in await self.all() if record.id == id_), None)
        if found is None:
            raise UnknownNameError("key", id_, [record.id for record in await self.all()])
        return found

    async def client(self, token: str) -> Client:
        """The client that holds this token. Raises `RequestError` with 401, or 503 if the keys cannot be read."""
        match = _TOKEN.fullmatch(token)
        id_, secret = (match[1], match[2]) if match else ("", token)
        record = await self._looked_up(id_) if match else None
        given = self._digest(id_, secret)
        # takes as long as for an existing key
        right = hmac.compare_digest(given, record.digest if record is not None else self._digest("", ""))
        if record is None or not right:
            raise RequestError(401, "invalid_key", "The key is unknown; ask the operator of the service for one.")
        if (state := record.state(datetime.now(UTC))) != "valid":
            raise RequestError(401, "invalid_key", f"The key is {state}; ask the operator for another one.")
        return Client(
            id=record.id,
            name=record.name,
            scopes=frozenset(record.scopes),
            daily_usd=record.daily_usd,
            corpora=None if record.corpora is None else frozenset(record.corpora),
        )

    async def _looked_up(self, id_: str) -> KeyRecord | None:
        now, known = time.monotonic(), self._known.get(id_)
        if known is not None and now - known[0] < _KNOWN_SECONDS:
            return known[1]
        try:
            async with asyncio.timeout(self.look_up_seconds), self.engine.connect() as connection:
                row = (await connection.execute(select(KEYS).where(KEYS.c.id == id_))).first()
        except (SQLAlchemyError, OSError, TimeoutError):
            if known is not None and now - known[0] < _KNOWN_SECONDS_WITHOUT_DATABASE:
                return known[1]
            raise RequestError(503, "unavailable", "Keys cannot be read at the moment; try again later.") from None
        record = None if row is None else _record(row._mapping)
        if record is not None:  # guessed ids must not fill the memory
            self._known[id_] = (now, record)
        return record

    def _digest(self, id_: str, secret: str) -> str:
        return hmac.new(self.pepper, f"{id_}:{secret}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def require_scope(client: Client, scope: str) -> None:
    """Raise `RequestError` with 403 if the client's key lacks a scope."""
    if scope not in client.scopes:
        raise RequestError(403, "forbidden", f"The key {client.name!r} lacks the scope {scope!r}; use one that has it.")


def open_keys(engine: AsyncEngine, settings: Settings, *, look_up_seconds: float = LOOK_UP_SECONDS) -> Keys:
    """The keys of a database. Raises `StorageError` if the pepper cannot be stored."""
    return Keys(engine=engine, pepper=_pepper(settings), look_up_seconds=look_up_seconds)


def _pepper(settings: Settings) -> bytes:
    """SERVICE_KEY_PEPPER, or a secret that is generated once and readable only by this user."""
    if settings.service_key_pepper is not None:
        return settings.service_key_pepper.get_secret_value().encode()
    path: Path = settings.marag_data_dir / _PEPPER_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        own = path.with_name(f".{_PEPPER_FILE}.{secrets.token_hex(8)}")
        if not path.exists():
            with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            try:
                os.link(own, path)  # atomic; the first one is kept
            except FileExistsError:
                pass
            finally:
                own.unlink()
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"The pepper {str(path)!r} cannot be stored ({error}); set SERVICE_KEY_PEPPER.") from None


def _record(row: Any) -> KeyRecord:
    times = {name: row[name] and in_utc(row[name]) for name in ("created", "expires", "revoked")}
    corpora = None if row["corpora"] is None else tuple(row["corpora"])
    return KeyRecord(**{**dict(row), **times, "scopes": tuple(row["scopes"]), "corpora": corpora})
