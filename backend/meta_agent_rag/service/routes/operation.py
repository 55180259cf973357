"""Addresses for the operator of the service."""

from typing import Literal

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from ..access.keys import require_scope
from .visiting import KEYED, READ, Visiting, refusals, the_client

router = APIRouter(tags=["operation"])


class Health(BaseModel):
    """The process is running."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Whether questions can be answered, and what is degraded."""

    status: Literal["ready", "degraded", "unready"]
    corpora: list[str]
    degraded: list[str] = Field(
        description="`audit`: records are waiting on this machine; `dense`, `lexical`: an index is down; `disk`, "
        "`database`: it cannot be written."
    )
    audit_waiting: int = Field(description="Records not yet written to the database.")


@router.get("/healthz", response_model=Health)
async def healthz() -> Health:
    """The process is running."""
    return Health()


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
async def readyz(visit: Visiting, response: Response) -> Readiness:
    """Whether questions can be answered, and what is degraded."""
    service = visit.service
    unwritable, faults = await service.unwritable(), service.degraded()
    down = bool(unwritable) or {"dense", "lexical"} <= set(faults)
    degraded = sorted([*faults, *unwritable])
    response.status_code = 503 if down else 200
    return Readiness(
        status="unready" if down else "degraded" if degraded else "ready",
        corpora=list(service.retrievers),
        degraded=degraded,
        audit_waiting=len(service.audit.pending),
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus's text format."},
        **refusals(*READ, 403),
    },
    dependencies=KEYED,
)
async def get_metrics(visit: Visiting) -> Response:
    """Metrics of this process, for a key with the scope `admin`, or for everyone with SERVICE_OPEN_METRICS."""
    service = visit.service
    if not service.settings.service_open_metrics:
        require_scope(the_client(visit), "admin")
    return Response(service.metrics.text(audit_waiting=len(service.audit.pending)), media_type=CONTENT_TYPE_LATEST)
