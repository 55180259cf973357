"""The application: routes behind the gate, over a service that is opened once."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match

from ..errors import MetaRagError
from .gate import Gate, as_response
from .opening import Service
from .routes import endpoint_of, router

_LOG = logging.getLogger(__name__)
Opening = Callable[[], AbstractAsyncContextManager[Service]]


def create_app(opening: Opening) -> FastAPI:
    """The application; `opening` yields the service and keeps it open while the application runs.

    >>> app = create_app(lambda: open_service(settings, ["sample"]))  # doctest: +SKIP
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opening() as service:
            app.state.service = service
            _LOG.info(
                "Serving %s; the time limit for a request is %g s.",
                ", ".join(map(repr, service.retrievers)) or "no corpus",
                service.budgets.total,
            )
            yield

    app = FastAPI(
        title="Meta-Agent-RAG",
        summary="Answers from documents, checked before they are shown.",
        version=_version(),
        lifespan=lifespan,
        docs_url=None,  # its page loads third-party scripts
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the client's own Host
        # creates spans for requests, but records no logs, which would contain the bodies
        telemetry={"metrics": False, "logs": False, "operation_spans": False, "auto_configure": False},
    )
    app.include_router(router)
    app.add_middleware(Gate, endpoint_of=endpoint_of)
    for kind in (MetaRagError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refused)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # Starlette names the methods of the first route alone
        error.headers = {"allow": ", ".join(_methods(request))}
    return as_response(request.state.visit, error)


def _methods(request: Request) -> list[str]:
    """The methods of all routes with the address of a request."""
    routes = (route for route in router.routes if isinstance(route, APIRoute))
    fitting = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in fitting for method in route.methods or ()})


def _version() -> str:
    from importlib.metadata import version

    return version("meta-agent-rag")
