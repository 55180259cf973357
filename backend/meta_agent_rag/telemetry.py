"""Spans: every name that the package uses with OpenTelemetry, and functions to open spans.

Names that begin with `gen_ai.` follow the semantic conventions for generative AI (in development, so kept
in this one place); other names begin with `marag.`. Without OpenTelemetry's SDK nothing is recorded; its
API is imported with the first span. No span contains a question, a prompt, a reply or an error's text unless
TELEMETRY_CONTENT is set.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

SCOPE = "meta_agent_rag"

OPERATION = "gen_ai.operation.name"
WORKFLOW = "gen_ai.workflow.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
TEMPERATURE = "gen_ai.request.temperature"
OUTPUT_TYPE = "gen_ai.output.type"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
DATA_SOURCE = "gen_ai.data_source.id"
TOP_K = "gen_ai.request.top_k"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
QUERY = "gen_ai.retrieval.query.text"
ERROR_TYPE = "error.type"

NODE = "marag.node"
STAGE = "marag.stage"
TIER = "marag.tier"
ROUND = "marag.round"
ROUNDS = "marag.rounds"
STOP_REASON = "marag.stop_reason"
QUESTION_ID = "marag.question_id"
QUERIES = "marag.queries"
FOUND = "marag.passages.found"
COST = "marag.cost_usd"
USAGE_COST = "gen_ai.usage.cost"  # no convention, but what Langfuse reads

_PROVIDERS = {"gemini": "gcp.gemini"}
"""Names of providers that differ in the conventions."""

Kind: TypeAlias = Literal["internal", "client", "server"]
Value: TypeAlias = str | int | float | bool | Sequence[str]


class NoSpan:
    """The span used if OpenTelemetry is not installed: it records nothing."""

    def is_recording(self) -> bool:
        """Never."""
        return False

    def set_attribute(self, key: str, value: Value, /) -> None:
        """Drop an attribute."""

    def set_attributes(self, attributes: Mapping[str, Value], /) -> None:
        """Drop attributes."""


@cache
def _tracer() -> "Tracer | None":
    try:
        from opentelemetry.trace import get_tracer
    except ModuleNotFoundError:
        return None
    return get_tracer(SCOPE)


@contextmanager
def span(name: str, attributes: Mapping[str, Value], *, kind: Kind = "internal") -> Iterator["Span | NoSpan"]:
    """A span around a piece of work, nested in the current task's open span; errors are recorded by type.

    An error's text is omitted because it may contain user text. Without the extra `telemetry` nothing is recorded.
    """
    tracer = _tracer()
    if tracer is None:
        yield NoSpan()
        return
    from opentelemetry.trace import SpanKind, StatusCode

    with tracer.start_as_current_span(
        name, kind=SpanKind[kind.upper()], attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            opened.set_attribute(ERROR_TYPE, type(error).__name__)
            opened.set_status(StatusCode.ERROR)
            raise


@contextmanager
def retrieval(source: str, *, k: int, queries: int, text: Sequence[str] = ()) -> Iterator["Span | NoSpan"]:
    """A span around a search in a data source for `queries` questions at once; `text` are the questions, if allowed."""
    about: dict[str, Value] = {OPERATION: "retrieval", DATA_SOURCE: source, TOP_K: k, QUERIES: queries}
    if text:
        about[QUERY] = "\n".join(text)
    with span(f"retrieval {source}", about, kind="client") as opened:
        yield opened


def messages(parts: Sequence[tuple[str, str]]) -> str:
    """(role, text) pairs in the conventions' format for messages on a span."""
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in parts], ensure_ascii=False
    )


def provider(name: str) -> str:
    """The conventions' name of a provider."""
    return _PROVIDERS.get(name, name)
