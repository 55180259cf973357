"""Connections to PostgreSQL that are closed as soon as their query is cancelled."""

import asyncio
from traceback import clear_frames
from typing import Any, Self, TypeVar

from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.waiting import wait_async

Result = TypeVar("Result")
_LOOK_SECONDS = 0.1


class PromptConnection(AsyncConnection[Any]):
    """A connection that closes when its pending operation is cancelled.

    psycopg would first ask the server to end the query, and wait for that: 10 s if the server hangs.
    """

    @classmethod
    async def connect(cls, *args: Any, **options: Any) -> Self:
        """Connect like psycopg; a failed attempt leaves no open socket."""
        try:
            return await super().connect(*args, **options)
        except BaseException as error:
            clear_frames(error.__traceback__)  # they keep the half-open connection until garbage collection
            raise

    async def wait(self, gen: PQGen[Result], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> Result:  # noqa: ASYNC109  # as psycopg's
        """Wait for the server like psycopg."""
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise
