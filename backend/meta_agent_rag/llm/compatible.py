"""`ChatOpenAI` for every OpenAI-compatible endpoint; imported at the first call, since it takes seconds."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import httpx2
import openai
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI

_MOST_TOKENS = 100_000_000
"""More tokens than any window holds: a higher count is invalid."""
_KEPT = ("reasoning_content", "reasoning", "refusal")
_HEADERS = frozenset(
    (
        *("host", "user-agent", "authorization", "accept", "accept-encoding"),
        *("content-type", "content-length", "transfer-encoding"),
    )
)


class PlainTransport(httpx2.AsyncHTTPTransport):
    """Sends the headers that a call needs and those named in `own`.

    OpenAI's client would add the organisation, project and further headers of its user's account there.
    """

    def __init__(self, own: Iterable[str] = (), **options: Any) -> None:
        super().__init__(**options)
        self._sent = _HEADERS | {name.lower() for name in own}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        given = request.headers
        request.headers = httpx2.Headers({name: given[name] for name in given if name in self._sent})
        try:
            return await super().handle_async_request(request)
        finally:
            request.headers = given  # the client looks for its own when it reads the response


class BoundedStream(httpx2.AsyncByteStream):
    """The bytes of a response, up to `most`; beyond, the connection is treated as broken."""

    def __init__(self, whole: Any, most: int) -> None:
        self._whole = whole
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for part in self._whole:
            length += len(part)
            if length > self._most:
                raise httpx2.RemoteProtocolError(f"The reply is longer than {self._most} bytes.")
            yield part

    async def aclose(self) -> None:
        """Close the connection."""
        await self._whole.aclose()


class CompatibleChat(ChatOpenAI):
    """Keeps what compatible servers report beyond OpenAI's fields: DeepSeek's cache hits, and hidden reasoning.

    Invalid token counts make the usage unknown, because costs are computed from it.
    """

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        whole = response.model_dump(warnings=False) if isinstance(response, openai.BaseModel) else response
        if isinstance(whole, dict):
            whole["usage"] = _counted(whole.get("usage"))
            for choice in whole.get("choices") or ():
                choice["message"]["role"] = "assistant"  # some servers leave it out
        result = super()._create_chat_result(whole, generation_info)
        for generation, choice in zip(result.generations, whole["choices"], strict=True):
            _keep(generation.message, choice["message"])
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        chunk["usage"] = _counted(chunk.get("usage"))
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if made is not None and chunk.get("choices"):
            _keep(made.message, chunk["choices"][0].get("delta") or {})
        return made


def _keep(message: BaseMessage, sent: Mapping[str, Any]) -> None:
    message.additional_kwargs.update({name: sent[name] for name in _KEPT if sent.get(name)})


def _counted(usage: Any) -> dict[str, Any] | None:
    """Usage with DeepSeek's cache hits where OpenAI reports them; `None` if a count is missing or invalid."""
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens") or 0)
    if prompt is None or completion is None:
        return None
    hit = usage.get("prompt_cache_hit_tokens")
    if hit is None:
        hit = _detail(usage, "prompt_tokens_details", "cached_tokens")
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": min(_count(hit) or 0, prompt)},
        "completion_tokens_details": {"reasoning_tokens": _count(reasoning) or 0},
    }


def _detail(usage: Mapping[str, Any], part: str, name: str) -> Any:
    details = usage.get(part)
    return details.get(name) if isinstance(details, Mapping) else None


def _count(value: Any) -> int | None:
    """A token count, `None` if invalid."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and 0 <= value <= _MOST_TOKENS else None
