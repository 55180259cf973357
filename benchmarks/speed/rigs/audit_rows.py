"""Generated audit records in the service's format, in any number, for measurements."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from meta_agent_rag.service.audit.rows import as_row
from meta_agent_rag.service.request_record import Client, RequestRecord
from meta_agent_rag.service.storage.tables import AUDIT

_PAGE = 500
_PROMPT = "The mill at Corran was designed by Edda Voss, as the report of 1871 has it. " * 20
_EMPTY = as_row(
    RequestRecord(
        request_id="speed",
        endpoint="/v1/ask",
        client=Client(id="speed", name="speed", scopes=frozenset({"ask"})),
        question="Who designed the mill that the report mentions?",
        source_mode="full-corpus",
    ),
    200,
)
_CALLS = [
    {
        "stage": stage,
        "model": "speed",
        "round": 0,
        "cached": False,
        "seconds": 0.2,
        "prompt_tokens": 400,
        "completion_tokens": 40,
        "cost_usd": 0.0001,
        "error": None,
        "messages": [{"role": "user", "content": _PROMPT}],
        "reply": '{"short_answer": "Edda Voss"}',
    }
    for stage in ("write", "second_answer")
]


def record(number: int, at: datetime, client_id: str = "speed") -> dict[str, Any]:
    """The record of one answer, about 4 KB, as a row of the table."""
    own = {"query_id": f"{number:032x}", "answer_id": f"{number:032x}", "at": at, "client_id": client_id}
    return {**_EMPTY, **own, "model_calls": _CALLS, "answer": "Edda Voss designed it [1]."}


async def fill(engine: AsyncEngine, records: Sequence[tuple[int, datetime]], client_id: str = "speed") -> None:
    """Insert records by number and moment."""
    for start in range(0, len(records), _PAGE):
        rows = [record(number, at, client_id) for number, at in records[start : start + _PAGE]]
        async with engine.begin() as connection:
            await connection.execute(insert(AUDIT), rows)
