"""Sends the spans of a command or a service to a collector; see `telemetry` for their contents."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

from .settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_LOG = logging.getLogger(__name__)
_FLUSH_SECONDS = 2.0


@contextmanager
def exporting(settings: Settings) -> Iterator[None]:
    """Send spans to OTEL_EXPORTER_OTLP_ENDPOINT, if set; the remaining ones are sent within 2 s at the end."""
    provider = tracer_provider(settings)
    if provider is None:
        yield
        return
    from opentelemetry.trace import set_tracer_provider

    set_tracer_provider(provider)
    try:
        yield
    finally:
        last = Thread(target=provider.shutdown, daemon=True)  # an unavailable collector must not delay the end
        last.start()
        last.join(_FLUSH_SECONDS)


def tracer_provider(settings: Settings) -> "TracerProvider | None":
    """Collects spans and sends them in batches; `None` if not wanted, or (with a warning) not possible."""
    if settings.otel_exporter_otlp_endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _LOG.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the exporter is not installed: no spans are sent; "
            "install meta-agent-rag[telemetry], or unset it."
        )
        return None
    own = Resource({"service.name": "meta-agent-rag"})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    endpoint = settings.otel_exporter_otlp_endpoint.rstrip("/") + "/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return provider
