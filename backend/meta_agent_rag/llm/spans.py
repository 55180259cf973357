"""The contents of a model call's span: endpoint, request, and measures of the reply."""

from collections.abc import Callable

from .. import telemetry
from ..telemetry import Value
from .ledger import LedgerRow
from .pacing import within
from .pricing import Price
from .transport import OnText, Reply, Request, Streaming, Transport


async def completed(
    transport: Transport,
    row: LedgerRow,
    request: Request,
    *,
    seconds: float,
    content: bool,
    price: Callable[[Reply], Price | None],
    on_text: OnText | None = None,
) -> Reply:
    """The transport's reply, within a span; `content` includes prompt and reply, `price` is the cost.

    `on_text` receives the text while it is written, if the transport can report it.

    Raises the errors of the transport, and `TimeoutError` after N seconds.
    """
    with telemetry.span(f"chat {request.model}", _asked(row, request, content=content), kind="client") as opened:
        async with within(seconds):
            if on_text is not None and isinstance(transport, Streaming):
                reply = await transport.stream(request, on_text)
            else:
                reply = await transport.complete(request)
        if opened.is_recording():
            opened.set_attributes(_replied(reply, content=content))
            if (cost := price(reply)) is not None:
                opened.set_attributes({telemetry.COST: float(cost.usd), telemetry.USAGE_COST: float(cost.usd)})
        return reply


def _asked(row: LedgerRow, request: Request, *, content: bool) -> dict[str, Value]:
    about: dict[str, Value] = {
        telemetry.OPERATION: "chat",
        telemetry.PROVIDER: telemetry.provider(row.provider),
        telemetry.MODEL: request.model,
        telemetry.MAX_TOKENS: request.max_tokens,
        telemetry.OUTPUT_TYPE: "text" if request.json_schema is None else "json",
        telemetry.STAGE: row.stage,
        telemetry.TIER: row.tier,
        telemetry.ROUND: row.round,
    }
    if request.temperature is not None:
        about[telemetry.TEMPERATURE] = request.temperature
    if content:
        about[telemetry.INPUT_MESSAGES] = telemetry.messages([(one.role, one.content) for one in request.messages])
    return about


def _replied(reply: Reply, *, content: bool) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    if reply.finish_reason is not None:
        attributes[telemetry.FINISH_REASONS] = [reply.finish_reason]
    if reply.usage is not None:
        attributes[telemetry.INPUT_TOKENS] = reply.usage.prompt
        attributes[telemetry.CACHED_TOKENS] = reply.usage.cache_hit
        attributes[telemetry.OUTPUT_TOKENS] = reply.usage.completion
        attributes[telemetry.REASONING_TOKENS] = reply.usage.reasoning
    if content:
        attributes[telemetry.OUTPUT_MESSAGES] = telemetry.messages([("assistant", reply.text)])
    return attributes
