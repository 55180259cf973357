"""The record of a question."""

import asyncio

from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError

from ...errors import RequestError
from ..audit.reading import as_json
from ..schemas import QueryRecord
from .visiting import KEYED, READ, Id, Visiting, is_id, refusals, the_client

_HEAD = ("query_id", "answer_id", "request_id", "at", "endpoint", "status", "success", "error")
_MOST_SHOWN = 80
router = APIRouter(tags=["audit"], dependencies=KEYED)


@router.get("/v1/queries/{query_id}", response_model=QueryRecord, responses=refusals(*READ, 404))
async def get_query(query_id: Id, visit: Visiting) -> QueryRecord:
    """The record of one of this key's own questions."""
    service = visit.service
    if not is_id(query_id):
        raise _unknown(query_id)
    try:
        async with asyncio.timeout(service.budgets.database):
            row = await service.audit.read(query_id, the_client(visit).id)
    except (SQLAlchemyError, OSError, TimeoutError):
        raise RequestError(503, "unavailable", "Records cannot be read at the moment; try again later.") from None
    if row is None:
        raise _unknown(query_id)
    fields = as_json(row)
    fields.pop("message")  # error texts may contain paths and addresses; they stay in the record and the log
    fields["degraded"] = sorted(fields["degraded"])
    return QueryRecord(**{name: fields.pop(name) for name in _HEAD}, record=fields)


def _unknown(query_id: str) -> RequestError:
    return RequestError(404, "not_found", f"This key has no record {query_id[:_MOST_SHOWN]!r}; check the id.")
