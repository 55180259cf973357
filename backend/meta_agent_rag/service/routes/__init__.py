"""The addresses of the service: all of `/v1/` requires a key, the rest reveals nothing about clients."""

from fastapi import APIRouter
from starlette.routing import Route, compile_path

from . import ask, audit, corpora, documents, openai, operation, summaries

_PARTS = (ask.router, openai.router, summaries.router, corpora.router, documents.router, audit.router, operation.router)
_PATTERNS = tuple(
    (compile_path(route.path)[0], route.path) for part in _PARTS for route in part.routes if isinstance(route, Route)
)
router = APIRouter()
for _part in _PARTS:
    router.include_router(_part)


def endpoint_of(path: str) -> str:
    """The route that a path matches, or `other`: paths made up by a client must not become labels.

    >>> endpoint_of("/v1/queries/0a")
    '/v1/queries/{query_id}'
    """
    return next((address for pattern, address in _PATTERNS if pattern.match(path)), "other")
