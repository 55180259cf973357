"""Requests to a model and its replies, independent of the provider."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

Role = Literal["system", "user", "assistant"]


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


OnText: TypeAlias = Callable[[Request, str], None]
"""Receives a call and the text of its reply so far, whenever more of it has arrived."""


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


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A model's reply. `usage` and `tokens` are `None` if the server did not report them.

    `tokens` are (text, log-probability) in the order of the reply, if requested.
    """

    text: str
    usage: Usage | None
    finish_reason: str | None = None
    tokens: tuple[tuple[str, float], ...] | None = None


class Transport(Protocol):
    """Anything that serves a call: an HTTP endpoint, the embedded server, or a script in a test."""

    @property
    def endpoint(self) -> str:
        """The stable name of the serving endpoint: part of the cache key, without secrets."""
        ...

    async def complete(self, request: Request) -> Reply:
        """Serve one call, or raise a `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Release connections and processes."""
        ...


@runtime_checkable
class Streaming(Transport, Protocol):
    """A transport that can report a reply while it is written."""

    async def stream(self, request: Request, on_text: OnText) -> Reply:
        """Like `complete`; `on_text` receives the text so far. If a call is repeated, the text starts again."""
        ...
