"""HTTP for clients that keep their time: who sends the head of a request too slowly is cut off.

The body has the deadline of its request; of the time before it, uvicorn itself knows no limit.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""For the head of a request, from the connection or its first byte on; and for what comes after a response."""


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's protocol with a limit on waiting for a request."""

    head_seconds = HEAD_SECONDS
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """A client has connected and sent nothing yet."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Something came: a part of a head, of a body, or of what nobody asked for."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
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
