"""A call in progress: its request and endpoint, its maximum cost, and the message for a truncated reply."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, get_args

from ..errors import WithheldError
from ..settings import Settings, Tier
from .chat import Connection
from .ledger import LedgerRow
from .messages import Message, Reply, Request, Sampling
from .pricing import Price, max_cost, price, priced_model
from .providers import Endpoint
from .stages import Stage

_LOG = logging.getLogger(__name__)
CUT = "length"
"""The finish reason of a reply that reached its token limit."""
PLAIN = Sampling()
_DRAWS_A_RUN = 1000


def new_request(
    stage: Stage,
    endpoint: Endpoint,
    settings: Settings,
    messages: tuple[Message, ...],
    wanted: Mapping[str, Any] | None,
    *,
    sampling: Sampling = PLAIN,
    draw: int = 0,
    more: int = 0,
) -> Request:
    """The request of a stage to its endpoint: `draw` is that of the run, `more` raises the token limit."""
    provider = endpoint.provider
    temperature = settings.writer_temperature if sampling.temperature is None else sampling.temperature
    return Request(
        stage=stage.name,
        model=endpoint.model,
        messages=messages,
        max_tokens=stage.max_tokens + endpoint.thinking_room(settings) + more,
        temperature=None if endpoint.thinking else temperature,
        json_schema=wanted,
        extra_body={**(provider.thinking_on if endpoint.thinking else provider.thinking_off), **endpoint.body},
        draw=draw * _DRAWS_A_RUN + sampling.draw,
        logprobs=sampling.logprobs,
        stop=sampling.stop,
    )


def unannounced_tokens(endpoint: Endpoint, settings: Settings) -> int:
    """The token allowance for hidden reasoning of a model that is not known to think."""
    return replace(endpoint, thinking=True).thinking_room(settings)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request with its endpoint and its ledger row."""

    request: Request
    row: LedgerRow
    endpoint: Endpoint
    connection: Connection
    settings: Settings

    def price(self, reply: Reply) -> Price | None:
        """The cost of the reply; `None` without a known price or without usage."""
        if reply.usage is None:
            return None
        model, prices = priced_model(self.settings, self.endpoint, at=self.row.at)
        return price(reply.usage, model=model, prices=prices, at=self.row.at)

    def highest(self, reply: Reply | None = None) -> Decimal | None:
        """The maximum cost; a known reply bounds it if no reasoning can be hidden."""
        model, prices = priced_model(self.settings, self.endpoint, at=self.row.at)
        visible = self.endpoint.provider.thinking_off and not self.endpoint.thinking
        seen = reply.text if reply is not None and visible else None
        return max_cost(self.request, seen, model=model, prices=prices, at=self.row.at)

    def reasoned_through(self, reply: Reply) -> bool:
        """Was the reply cut by unannounced hidden reasoning, so that a higher limit would help?"""
        return is_cut(reply) and not self.endpoint.thinking and _reasoned(reply)

    @property
    def unannounced_tokens(self) -> int:
        """The token allowance for such reasoning."""
        return unannounced_tokens(self.endpoint, self.settings)

    def cut_words(self, reply: Reply) -> str:
        """Describe where a reply was cut, and which setting raises the limit."""
        hidden = reply.usage.reasoning if reply.usage is not None else 0
        spent = f", {hidden} of them for hidden reasoning" if hidden else ""
        return f"the reply was cut at its limit of {self.request.max_tokens} tokens{spent}; {self._remedy(reply)}"

    def _remedy(self, reply: Reply) -> str:
        if self.endpoint.thinking:
            return f"raise THINKING_TOKENS (now {self.settings.thinking_tokens})"
        if not _reasoned(reply):
            stage = self.request.stage
            return f"raise it with STAGE_TOKENS={stage}={2 * self.request.max_tokens}"
        if self.endpoint.name in get_args(Tier):
            return f"the model reasons before it replies: set {self.endpoint.name.upper()}_THINKING=true"
        return f"the model reasons before it replies: set `thinking: true` for {self.endpoint.name!r} in MODEL_ROLES"


class Tape(Protocol):
    """Records every call, or replays an earlier run instead of calling the model."""

    def play(self, row: LedgerRow, request: Request) -> tuple[LedgerRow, Reply | Exception] | None:
        """The recorded row of a call, and its reply or error; `None` if nothing is replayed."""

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Record a call that was made, or served by the cache."""


_WITHHELD = {
    "refusal": "refused to answer; rephrase the question, or use another model",
    "content_filter": "was stopped by its provider's content filter; rephrase the question, or use another model",
    "reasoning": "reasoned and sent no reply; switch its thinking off, or use another model",
    "nothing": "sent an empty reply; try again, or use another model",
}


def withheld(request: Request, why: str) -> WithheldError:
    """The error for a reply without an answer: a refusal, a filter's, reasoning alone, or nothing."""
    return WithheldError(f"In stage {request.stage!r}, the model {request.model!r} {_WITHHELD[why]}.")


def warn_of_cut(call: Call, reply: Reply, reported: set[tuple[str, str]]) -> None:
    """Log a stage's first truncated reply by an endpoint, and the setting to change; `reported` has earlier ones."""
    key = call.request.stage, call.endpoint.name
    if is_cut(reply) and key not in reported:
        reported.add(key)
        _LOG.warning("In stage %r %s.", call.request.stage, call.cut_words(reply))


def is_cut(reply: Reply) -> bool:
    """Was a reply cut at its token limit?"""
    return reply.finish_reason == CUT


def _reasoned(reply: Reply) -> bool:
    """Did a cut reply spend its tokens on reasoning? Indicated by the server's count, the text, or an empty text."""
    counted = reply.usage is not None and reply.usage.reasoning > 0
    return counted or "<think>" in reply.text or not reply.text
