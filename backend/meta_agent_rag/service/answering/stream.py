"""An answer as server-sent events: the loop's progress, then the verified text, then the whole answer."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ...agent.engine import Step
from ..failures import envelope
from ..gate import Visit, noted
from ..schemas import AskRequest
from .ask import ask

EVENT_STREAM = "text/event-stream"
EVENTS: Mapping[str, Any] = {
    "itemSchema": {
        "type": "object",
        "required": ["data"],
        "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    }
}
"""The description of an event stream in the OpenAPI document."""
_SENTENCES = re.compile(r"\S.*?(?:[.!?](?=\s)\s*|\Z)", re.DOTALL)
_QUIET_SECONDS = 10.0


async def events(asked: AskRequest, visit: Visit) -> AsyncIterator[str]:
    """The events of one question, until `done`. A failure after the headers is an `error` event.

    If the client disconnects, the work is cancelled together with its calls.
    """
    record = visit.record
    pending: asyncio.Queue[str | None] = asyncio.Queue()

    def step(begun: Step) -> None:
        pending.put_nowait(event("stage", {"stage": begun.node, "round": len(begun.rounds)}))

    work = asyncio.create_task(ask(visit.service, asked, record, step))
    work.add_done_callback(lambda _: pending.put_nowait(None))
    try:
        yield event("start", {"query_id": record.query_id, "request_id": record.request_id})
        while (line := await _next(pending)) is not None:
            yield line
        try:
            response = work.result()
            visit.file(200)
        except Exception as error:  # noqa: BLE001  # the headers are sent: the client receives an event
            refused = noted(record, error)
            visit.file(refused.status)
            yield event("error", envelope(refused, record.request_id))
        else:
            for sentence in sentences(response.answer):
                yield event("text", {"text": sentence})
            yield event("answer", response.model_dump(mode="json"))
        yield event("done", {})
    finally:
        if not work.done():
            record.error, record.message = "client_went", "The client disconnected before the end."
            work.cancel()
            await asyncio.wait({work})


def sentences(text: str) -> list[str]:
    """The text in the pieces in which it is sent; joined, they equal the text."""
    return _SENTENCES.findall(text)


async def _next(pending: "asyncio.Queue[str | None]") -> str | None:
    """The next event, or a comment that keeps the connection alive if there is none."""
    try:
        async with asyncio.timeout(_QUIET_SECONDS):
            return await pending.get()
    except TimeoutError:
        return ": waiting\n\n"


def event(name: str, data: Mapping[str, Any]) -> str:
    """One event with its data as one line of JSON."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
