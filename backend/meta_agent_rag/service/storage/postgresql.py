"""Connections to PostgreSQL that are given up at once when nobody waits for them any more."""

import asyncio
from traceback import clear_frames
from typing import Any, Self, TypeVar

from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.waiting import wait_async

Result = TypeVar("Result")
_LOOK_SECONDS = 0.1


class PromptConnection(AsyncConnection[Any]):
    """A connection that closes when what it waits for is cancelled.

    psycopg would ask the server first to end the query, and wait for that: 10 s where the server hangs.
    """

    @classmethod
    async def connect(cls, *args: Any, **options: Any) -> Self:
        """Connect, as psycopg does; what does not come about leaves no open socket."""
        try:
            return await super().connect(*args, **options)
        except BaseException as error:
            clear_frames(error.__traceback__)  # they hold the half-made connection until the garbage is collected
            raise

    async def wait(self, gen: PQGen[Result], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> Result:  # noqa: ASYNC109  # as psycopg's
        """Wait until the server has done a thing, as psycopg does."""
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise
