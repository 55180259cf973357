"""Changes many audit rows in portions, each under its own lock, so that others wait only briefly."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Executable
from sqlalchemy.ext.asyncio import AsyncEngine

_AIM_SECONDS = 0.02
_FEWEST, _MOST = 10, 500
_PAUSE_SECONDS = 0.005


@dataclass(kw_only=True)
class Portions:
    """`size` is the number of rows to change next, adapted to the last duration; `longest` the longest lock, in s."""

    size: int = 50
    longest: float = 0.0

    async def change(self, engine: AsyncEngine, statements: Sequence[Executable]) -> None:
        """Run statements in one transaction; others get a turn before this returns. Raises `SQLAlchemyError`."""
        async with engine.execution_options(immediate=True).connect() as connection:
            async with connection.begin():
                began = time.monotonic()
                for statement in statements:
                    await connection.execute(statement)
            took = time.monotonic() - began
        self.longest = max(self.longest, took)
        wanted = int(self.size * min(2.0, _AIM_SECONDS / max(took, 1e-6)))
        self.size = min(_MOST, max(_FEWEST, wanted))
        await asyncio.sleep(_PAUSE_SECONDS)
