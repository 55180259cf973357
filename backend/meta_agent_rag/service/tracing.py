"""A span around every request, and where spans go."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import telemetry
from ..settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_LOG = logging.getLogger(__name__)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TRACED = "/v1/"
_FLUSH_SECONDS = 2.0


class Traced:
    """An ASGI middleware: a span for each request below `/v1/`, named by its route and never by what it holds."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within its span."""
        if scope["type"] != "http" or not scope["path"].startswith(_TRACED):
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with telemetry.request(method, headers) as span:

            async def told(message: Message) -> None:
                if message["type"] == "http.response.start":
                    _tell(span, method, scope, message["status"])
                await send(message)

            await self.app(scope, receive, told)


def _tell(span: "Span", method: str, scope: Scope, status: int) -> None:
    span.set_attribute(telemetry.STATUS, status)
    if route := getattr(scope.get("route"), "path", None):
        span.set_attribute(telemetry.ROUTE, route)
        span.update_name(f"{method} {route}")
    if status >= 500:
        telemetry.failed(span, str(status))


@contextmanager
def exporting(settings: Settings) -> Iterator[None]:
    """Send spans to OTEL_EXPORTER_OTLP_ENDPOINT, where it is set; what is left at the end is sent within 2 s."""
    provider = tracer_provider(settings)
    if provider is None:
        yield
        return
    from opentelemetry.trace import set_tracer_provider

    set_tracer_provider(provider)
    try:
        yield
    finally:
        last = Thread(target=provider.shutdown, daemon=True)  # a collector that is down must not delay the end
        last.start()
        last.join(_FLUSH_SECONDS)


def tracer_provider(settings: Settings) -> "TracerProvider | None":
    """What takes spans and sends them in batches; `None` where none is wanted, or (which is said) none can be had."""
    if settings.otel_exporter_otlp_endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _LOG.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and the exporter is not installed: no spans are sent; "
            "install meta-agent-rag[telemetry], or unset it."
        )
        return None
    own = Resource({"service.name": "meta-agent-rag"})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    endpoint = settings.otel_exporter_otlp_endpoint.rstrip("/") + "/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return provider
