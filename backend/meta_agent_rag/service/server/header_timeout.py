"""HTTP with limits before a request: the number of connections, and the time for its headers.

The body is limited by the deadline of its request; uvicorn itself limits nothing before that, and its process could
run out of descriptors.
"""

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass, field

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""The time for the headers of a request, from the connection or their first byte, and for data after a response."""


_LOG = logging.getLogger(__name__)
_LOG_SECONDS = 60.0


@dataclass(kw_only=True)
class ConnectionLimit:
    """The open connections by address: a quarter of the descriptors for all, half of that for one address."""

    _open: Counter[str] = field(default_factory=Counter, repr=False)
    _logged: float = float("-inf")

    def take(self, address: str) -> bool:
        """Count a connection, unless there are too many."""
        most = _descriptors() // 4
        if self._open.total() >= most or self._open[address] >= most // 2:
            self.log_once("Connections from %s are closed: too many are open (limit %d).", address, most // 2)
            return False
        self._open[address] += 1
        return True

    def release(self, address: str) -> None:
        """A counted connection has ended."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def log_once(self, words: str, *values: object) -> None:
        """Log a warning, at most once a minute."""
        if time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            _LOG.warning(words, *values)

    def without_tracebacks(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """A handler for errors of the loop: asyncio reports every connection for which no descriptor is left."""
        if isinstance(context.get("exception"), OSError) and "socket.accept" in str(context.get("message")):
            self.log_once("A connection cannot be accepted (%s).", context["exception"])
        else:
            loop.default_exception_handler(context)


def _descriptors() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 4096
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for the arrival of a request."""

    head_seconds = HEAD_SECONDS
    connections_limit = ConnectionLimit()
    _address: str | None = None
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """A client has connected and not sent anything yet."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if self.connections_limit.take(address):
            self._address = address
            self._watch()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Data arrived: part of the headers, of a body, or unsolicited."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._unwatch()
        if self._address is not None:
            self.connections_limit.release(self._address)
            self._address = None
        super().connection_lost(exc)

    def _watch(self) -> None:
        served = self.cycle is not None and not self.cycle.response_complete
        if served or self.transport.is_closing():
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self.transport.close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
