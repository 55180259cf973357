"""Questions."""

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse

from ..answering.ask import ask
from ..answering.stream import EVENT_STREAM, EVENTS, events
from ..schemas import AskRequest, AskResponse
from .visiting import ASKED, KEYED, Asking, refusals

router = APIRouter(tags=["ask"], dependencies=KEYED)


@router.post("/v1/ask", response_model=AskResponse, responses=refusals(*ASKED))
async def post_ask(asked: AskRequest, visit: Asking) -> AskResponse:
    """Answer a question from documents: checked, cited, or refused with what to try, within the deadline."""
    return await ask(visit.service, asked, visit.record)


@router.post(
    "/v1/ask/stream",
    response_class=StreamingResponse,
    responses={
        200: {"content": {EVENT_STREAM: dict(EVENTS)}, "description": "Server-sent events."},
        **refusals(*ASKED),
    },
)
async def post_ask_stream(asked: AskRequest, visit: Asking) -> Response:
    """The same as a stream: `stage` events, then `text` (verified), `answer` or `error`, and `done`."""
    visit.streams = True
    return StreamingResponse(events(asked, visit), media_type=EVENT_STREAM, headers={"x-accel-buffering": "no"})
