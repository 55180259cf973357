"""Requests to a model and its replies, independent of the provider."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
CUT = "length"
"""The finish reason of a reply that reached its token limit."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """A caller's options beyond those of its stage.

    `temperature` replaces the setting's; `draw` numbers independent samples of one prompt, which are
    cached separately; `logprobs` requests each token's log-probability, if the endpoint supports
    it; the reply ends before any of `stop`.
    """

    temperature: float | None = None
    draw: int = 0
    logprobs: bool = False
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """One complete call; all of it is part of the cache key."""

    stage: str
    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None
    json_schema: Mapping[str, Any] | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    draw: int = 0
    logprobs: bool = False
    stop: tuple[str, ...] = ()


CURRENT: ContextVar[Request | None] = ContextVar("CURRENT", default=None)
"""The request behind the call of a chat model, for a model that answers by stage."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one call. `prompt` includes `cache_hit`, `completion` includes `reasoning`."""

    prompt: int = 0
    cache_hit: int = 0
    completion: int = 0
    reasoning: int = 0

    @property
    def cache_miss(self) -> int:
        """Prompt tokens that the provider's prefix cache did not serve."""
        return max(self.prompt - self.cache_hit, 0)

    def columns(self) -> dict[str, Any]:
        """The token columns of a ledger row."""
        return {f"{name}_tokens": number for name, number in (*vars(self).items(), ("cache_miss", self.cache_miss))}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A model's reply. `usage` and `tokens` are `None` if the server did not report them.

    `tokens` are (text, log-probability) in the order of the reply, if requested. `model` is the name by which the
    model that answered calls itself. `withheld` says why there is no text, if the model says so: it refused, a
    filter stopped it, or it only reasoned.
    """

    text: str
    usage: Usage | None
    finish_reason: str | None = None
    tokens: tuple[tuple[str, float], ...] | None = None
    model: str | None = None
    withheld: Literal["refusal", "content_filter", "reasoning"] | None = None

    @property
    def is_cut(self) -> bool:
        """Whether it reached its token limit."""
        return self.finish_reason == CUT
