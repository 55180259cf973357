"""The record of a question."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path
from sqlalchemy.exc import SQLAlchemyError

from ...errors import RequestError
from ..audit.reading import as_json
from ..schemas import QueryRecord
from .visiting import KEYED, READ, Visiting, refusals, the_client

_HEAD = ("query_id", "answer_id", "request_id", "at", "endpoint", "status", "success", "error")
router = APIRouter(tags=["audit"], dependencies=KEYED)


@router.get("/v1/queries/{query_id}", response_model=QueryRecord, responses=refusals(*READ, 404, 422))
async def get_query(query_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")], visit: Visiting) -> QueryRecord:
    """The record of one of this key's own questions."""
    service = visit.service
    try:
        async with asyncio.timeout(service.budgets.database):
            row = await service.audit.read(query_id, the_client(visit).id)
    except (SQLAlchemyError, OSError, TimeoutError):
        raise RequestError(503, "unavailable", "Records cannot be read at the moment; try again later.") from None
    if row is None:
        raise RequestError(404, "not_found", f"This key has no record {query_id!r}; check the id.")
    fields = as_json(row)
    fields.pop("message")  # error texts may contain paths and addresses; they stay in the record and the log
    fields["degraded"] = sorted(fields["degraded"])
    return QueryRecord(**{name: fields.pop(name) for name in _HEAD}, record=fields)
