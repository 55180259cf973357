"""HTTP with a time limit on request headers: a client that sends them too slowly is disconnected.

The body is limited by the deadline of its request; uvicorn itself sets no limit for the time before it.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""The time for the headers of a request, from the connection or their first byte, and for data after a response."""


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for the arrival of a request."""

    head_seconds = HEAD_SECONDS
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """A client has connected and not sent anything yet."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Data arrived: part of the headers, of a body, or unsolicited."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._unwatch()
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
