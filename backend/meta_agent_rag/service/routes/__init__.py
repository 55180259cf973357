"""The addresses of the service: everything below `/v1/` wants a key, the rest tells nothing of anybody."""

from fastapi import APIRouter
from starlette.routing import Route, compile_path

from . import ask, audit, documents, openai, operation

_PARTS = (ask.router, openai.router, documents.router, audit.router, operation.router)
_PATTERNS = tuple(
    (compile_path(route.path)[0], route.path) for part in _PARTS for route in part.routes if isinstance(route, Route)
)
router = APIRouter()
for _part in _PARTS:
    router.include_router(_part)


def endpoint_of(path: str) -> str:
    """The address that a path is an instance of, `other` where it is of none: what a client made up is no label.

    >>> endpoint_of("/v1/queries/0a")
    '/v1/queries/{query_id}'
    """
    return next((address for pattern, address in _PATTERNS if pattern.match(path)), "other")
