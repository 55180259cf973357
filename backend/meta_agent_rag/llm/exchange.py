"""What goes to a model and what comes back, whoever serves it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call, complete: all of it is in the cache key."""

    stage: str
    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None
    json_schema: Mapping[str, Any] | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


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
    """A model's reply. `usage` is `None` where the server did not report it."""

    text: str
    usage: Usage | None
    finish_reason: str | None = None


class Transport(Protocol):
    """Whatever serves a call: an HTTP endpoint, the embedded server, or a script in a test."""

    @property
    def endpoint(self) -> str:
        """Stable name of what answers: part of the cache key, without secrets."""
        ...

    async def complete(self, request: Request) -> Reply:
        """Serve one call, or raise a `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Release connections and processes."""
        ...
