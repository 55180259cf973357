"""The addresses of the service."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.security import HTTPBearer
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import StreamingResponse

from ..errors import RequestError
from .ask import ask
from .audit.reading import as_json
from .gate import Visit
from .keys import require_scope
from .schemas import AskRequest, AskResponse, ErrorEnvelope, Health, QueryRecord, Readiness
from .stream import EVENT_STREAM, events

_BEARER = HTTPBearer(auto_error=False, description="A key from `marag keys create`.")
_HEAD = ("query_id", "answer_id", "request_id", "at", "endpoint", "status", "success", "error")
_REFUSALS: Mapping[int | str, dict[str, Any]] = {
    401: {"model": ErrorEnvelope, "description": "No key, or one that is not valid."},
    403: {"model": ErrorEnvelope, "description": "The key lacks the scope."},
    413: {"model": ErrorEnvelope, "description": "The body, or the context, is too large."},
    422: {"model": ErrorEnvelope, "description": "The request is wrong; the message says what to change."},
    429: {"model": ErrorEnvelope, "description": "Too many questions in a minute, or the key's day is spent."},
    503: {"model": ErrorEnvelope, "description": "Too much under way, or something that is needed is down."},
    504: {"model": ErrorEnvelope, "description": "The deadline passed; nothing half-verified is returned."},
}
_BAD_REQUEST: Mapping[int | str, dict[str, Any]] = {
    400: {"model": ErrorEnvelope, "description": "The body is not UTF-8."}
}
router = APIRouter()
"""Everything below `/v1/` wants a key; the rest tells nothing of anybody."""


def the_visit(request: Request) -> Visit:
    """The request as the gate knows it."""
    visit: Visit = request.state.visit
    return visit


async def asking(visit: Annotated[Visit, Depends(the_visit)]) -> Visit:
    """A request whose key may ask, and has not spent its day."""
    assert visit.inquiry.client is not None
    require_scope(visit.inquiry.client, "ask")
    await visit.service.require_affordable(visit.inquiry.client)
    return visit


Visiting = Annotated[Visit, Depends(the_visit)]
Asking = Annotated[Visit, Depends(asking)]
_KEYED: list[Any] = [Depends(_BEARER)]


@router.post(
    "/v1/ask", response_model=AskResponse, responses={**_REFUSALS, **_BAD_REQUEST}, dependencies=_KEYED, tags=["ask"]
)
async def post_ask(asked: AskRequest, visit: Asking) -> AskResponse:
    """Answer a question from documents: checked, cited, or refused with what to try, within the deadline."""
    return await ask(visit.service, asked, visit.inquiry)


@router.post(
    "/v1/ask/stream",
    response_class=StreamingResponse,
    responses={
        200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}, "description": "Server-sent events."},
        **_REFUSALS,
        **_BAD_REQUEST,
    },
    dependencies=_KEYED,
    tags=["ask"],
)
async def post_ask_stream(asked: AskRequest, visit: Asking) -> Response:
    """The same, told while it happens: `stage` events, then `text` (verified), `answer` or `error`, and `done`."""
    visit.streams = True
    return StreamingResponse(events(asked, visit), media_type=EVENT_STREAM, headers={"x-accel-buffering": "no"})


@router.get(
    "/v1/queries/{query_id}",
    response_model=QueryRecord,
    responses={**{code: _REFUSALS[code] for code in (401, 429, 503)}, 404: {"model": ErrorEnvelope}},
    dependencies=_KEYED,
    tags=["audit"],
)
async def get_query(query_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")], visit: Visiting) -> QueryRecord:
    """The record of one of this key's own questions."""
    client = visit.inquiry.client
    assert client is not None
    try:
        row = await visit.service.audit.read(query_id, client.id)
    except (SQLAlchemyError, OSError):
        raise RequestError(503, "unavailable", "Records cannot be read at the moment; try again later.") from None
    if row is None:
        raise RequestError(404, "not_found", f"This key has no record {query_id!r}; check the id.")
    told = as_json(row)
    return QueryRecord(**{name: told.pop(name) for name in _HEAD}, record=told)


@router.get("/healthz", response_model=Health, tags=["operation"])
async def healthz() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}}, tags=["operation"])
async def readyz(visit: Visiting, response: Response) -> Readiness:
    """Whether questions are answered, and what is degraded."""
    service = visit.service
    degraded = service.degraded()
    down = {"dense", "lexical"} <= set(degraded)
    response.status_code = 503 if down else 200
    return Readiness(
        status="degraded" if degraded else "ready",
        corpora=list(service.retrievers),
        degraded=degraded,
        audit_waiting=len(service.audit.pending),
    )
