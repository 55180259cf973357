"""Record spans with the OpenTelemetry SDK; shared by the tests of telemetry."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

EXPORTER = InMemorySpanExporter()


@contextmanager
def recorded() -> Iterator[InMemorySpanExporter]:
    """Collect the spans that end in the block. A process has one tracer provider, hence one exporter."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        trace.set_tracer_provider(provider)
    EXPORTER.clear()
    yield EXPORTER
    EXPORTER.clear()


def paths(exporter: InMemorySpanExporter) -> list[str]:
    """Each span's path from the root, `a > b > c`, in starting order."""
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    by_id = {span.context.span_id: span for span in spans if span.context}

    def path(span: ReadableSpan) -> str:
        above = by_id.get(span.parent.span_id) if span.parent else None
        return span.name if above is None else f"{path(above)} > {span.name}"

    return [path(span) for span in spans]


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """The spans whose name is `name`, or begins with it and a space."""
    return [span for span in exporter.get_finished_spans() if span.name == name or span.name.startswith(f"{name} ")]


def exported_text(exporter: InMemorySpanExporter) -> str:
    """The contents of all spans as one text."""
    return "\n".join(span.to_json() for span in exporter.get_finished_spans())
