"""Shared by the routes: the current request, the required scopes, and the descriptions of refusals."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPBearer

from ..access.keys import require_scope
from ..gate import Visit
from ..request_record import Client
from ..schemas import ErrorEnvelope

Responses = dict[int | str, dict[str, Any]]
KEYED: list[Any] = [Depends(HTTPBearer(auto_error=False, description="A key from `marag keys create`."))]
_SAID: Mapping[int, str] = {
    400: "The body cannot be read.",
    401: "The key is missing or invalid.",
    403: "The key lacks the scope.",
    404: "Nothing with this name exists.",
    408: "The body came too slowly.",
    409: "The corpus does not accept documents, or the document cannot be deleted now.",
    413: "The body, or a part of it, is too large.",
    415: "Unsupported file format.",
    422: "The request is invalid; the message says what to change.",
    429: "Too many requests per minute, too many wrong keys, or the key's daily cap is reached.",
    503: "The service is overloaded, or a component is down.",
    504: "The deadline passed; nothing half-verified is returned.",
}
ID_PATTERN = "^[0-9a-f]{32}$"
Id = Annotated[str, Path(json_schema_extra={"pattern": ID_PATTERN})]
"""The id of an upload or a record. Its form is documented but not required: any other text is an unknown id."""
Limit = Annotated[int, Query(ge=1, le=1000, description="Number of documents.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="Number of documents to skip.")]
ASKED = (400, 401, 403, 404, 413, 422, 429, 503, 504)
READ = (401, 413, 429, 503, 504)


def refusals(*codes: int) -> Responses:
    """The descriptions of these refusals in the OpenAPI document."""
    return {code: {"model": ErrorEnvelope, "description": _SAID[code]} for code in codes}


def is_id(text: str) -> bool:
    """Can it be the id of an upload or a record? Anything else is unknown, and never looked up."""
    return re.fullmatch("[0-9a-f]{32}", text) is not None


def the_visit(request: Request) -> Visit:
    """The request as known to the gate."""
    visit: Visit = request.state.visit
    return visit


async def asking(visit: Annotated[Visit, Depends(the_visit)]) -> Visit:
    """A request whose key may ask and has not reached its daily cap."""
    client = the_client(visit)
    require_scope(client, "ask")
    await visit.service.require_affordable(client)
    return visit


def ingesting(visit: Annotated[Visit, Depends(the_visit)]) -> Visit:
    """A request whose key may send documents."""
    require_scope(the_client(visit), "ingest")
    return visit


def removing(visit: Annotated[Visit, Depends(the_visit)]) -> Visit:
    """A request whose key may remove documents: an administrator's, or its own documents'."""
    client = the_client(visit)
    require_scope(client, "admin" if "ingest" not in client.scopes else "ingest")
    return visit


def the_client(visit: Visit) -> Client:
    """The client at an address that requires a key."""
    assert visit.record.client is not None
    return visit.record.client


Visiting = Annotated[Visit, Depends(the_visit)]
Asking = Annotated[Visit, Depends(asking)]
Ingesting = Annotated[Visit, Depends(ingesting)]
Removing = Annotated[Visit, Depends(removing)]
