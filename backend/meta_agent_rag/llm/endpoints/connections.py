"""Connections to endpoints: a transport for each, and the name under which its replies are cached."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pydantic import SecretStr

from ...settings import Settings
from ..cache import ResponseCache
from ..chat import ChatTransport
from ..embedded import EmbeddedTransport
from ..providers import Endpoint
from ..transport import Transport
from .identity import identity


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A transport, and the stable identity of the endpoint behind it: part of the cache key, without secrets.

    `former` is the name under which earlier versions cached its replies.
    """

    transport: Transport
    identity: str
    former: str | None = None


class Connections(Protocol):
    """Provides connections to endpoints."""

    async def to(self, endpoint: Endpoint) -> Connection:
        """The connection to an endpoint; raises `SettingsError` if a key or a file is missing."""
        ...

    async def aclose(self) -> None:
        """Close every transport."""
        ...


@dataclass(frozen=True, kw_only=True)
class OneTransport:
    """The same transport for every endpoint: a script, a stub, or a test's own."""

    transport: Transport

    async def to(self, endpoint: Endpoint) -> Connection:
        """The transport with its own name."""
        return Connection(transport=self.transport, identity=self.transport.endpoint)

    async def aclose(self) -> None:
        """Close it."""
        await self.transport.aclose()


_Place: TypeAlias = tuple[str, str | None, SecretStr | None]
"""Endpoints of one transport; one connection name may cover several addresses, in a sweep or for a tier."""


@dataclass(frozen=True, kw_only=True)
class OpenConnections:
    """Connections to real endpoints, each opened at its first call.

    A server at a custom address is asked what it serves, and this is the identity of its replies, so that they are
    found again after it has moved. If it does not respond, the identity that the `cache` remembers for it is used.
    """

    settings: Settings
    cache: ResponseCache | None = None
    _transports: dict[_Place, Transport] = field(default_factory=dict)
    _known: dict[tuple[_Place, str], Connection] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def to(self, endpoint: Endpoint) -> Connection:
        """See `Connections`."""
        key = (endpoint.connection, endpoint.base_url, endpoint.api_key), endpoint.model
        if key not in self._known:
            async with self._opening:  # only once, even for concurrent first calls
                return self._known.get(key) or await self._opened(key, endpoint)
        return self._known[key]

    async def aclose(self) -> None:
        """Close every transport that was opened."""
        for transport in self._transports.values():
            await transport.aclose()

    async def _opened(self, key: tuple[_Place, str], endpoint: Endpoint) -> Connection:
        transport = self._transports.get(key[0]) or self._made(endpoint)
        self._transports[key[0]] = transport
        if not (endpoint.has_own_address and isinstance(transport, ChatTransport)):
            name = identity(endpoint, {}) if isinstance(transport, ChatTransport) else transport.endpoint
            self._known[key] = Connection(transport=transport, identity=name)
            return self._known[key]
        address, former = f"{endpoint.provider.name} {endpoint.base_url} {endpoint.model}", transport.endpoint
        report = await transport.reported(endpoint.model)
        if report is None:  # asked again on the next call, which may reach it
            recalled = self.cache.identified(address) if self.cache is not None else None
            return Connection(transport=transport, identity=recalled or former, former=former)
        found = Connection(transport=transport, identity=identity(endpoint, report), former=former)
        if self.cache is not None:
            self.cache.identify(address, found.identity)
        self._known[key] = found
        return found

    def _made(self, endpoint: Endpoint) -> Transport:
        endpoint.require_key()
        if endpoint.is_embedded:
            return EmbeddedTransport(endpoint, self.settings)
        return ChatTransport(endpoint, max_retries=self.settings.llm_max_retries)
