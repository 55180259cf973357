"""Any OpenAI-compatible endpoint, through the openai SDK.

The SDK's generic `post` is used: the typed `create` takes as long to validate a prompt built here as
to send it, and its wrappers drop what DeepSeek adds to `usage`.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any

from ..errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    LostConnectionError,
    MetaRagError,
    ModelError,
    RefusedError,
    TransientError,
    UnreachableError,
)
from .exchange import OnText, Reply, Request, Usage
from .pacing import pause
from .providers import Endpoint
from .serving.identity import reported
from .serving.streaming import ASKED_FOR, gathered

if TYPE_CHECKING:
    import openai


_LOG = logging.getLogger(__name__)
_MOST_TOKENS = 100_000_000
"""More tokens than any window holds: a higher count is invalid."""
_LISTING_SECONDS = 10.0
_PASSING = frozenset({408, 409, 429})
_SERVER_FAULT = 500
_NO_CONNECTION = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "LocalProtocolError")
"""Errors of the HTTP client before a byte of the call is sent; by name, since the SDK bundles a copy of it."""
_LOST_LATER = frozenset({"ServerDisconnectedError", "ClientOSError", "ClientConnectionResetError"})
"""Errors of an established connection, which the SDK's client reports as `ConnectTimeout`."""
_NEEDED = frozenset({"model", "messages"})
_UNSUPPORTED = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed)|extra input"
)


class ChatTransport:
    """Serves calls from an HTTP endpoint.

    If nothing can have been billed (no connection, 408, 409, 429, 5xx), the call is repeated here, and
    Retry-After is honoured. A parameter that the endpoint rejects by name is omitted from then on.
    """

    def __init__(self, endpoint: Endpoint, *, max_retries: int, name: str | None = None) -> None:
        self._served = endpoint
        self._max_retries = max_retries
        self._name = name or endpoint.base_url or ""
        self._opening = asyncio.Lock()
        self._client: openai.AsyncOpenAI | None = None
        self._left_out: set[str] = set()
        self._streams = True

    @property
    def endpoint(self) -> str:
        """The base URL, unless another name was given."""
        return self._name

    @property
    def _where(self) -> str:
        return f"{self._served.provider.label} at {self._served.base_url}"

    async def complete(self, request: Request) -> Reply:
        """Send one call. Raises a `ModelError` with the remedy."""
        return await self._complete(request, None)

    async def stream(self, request: Request, on_text: OnText) -> Reply:
        """Like `complete`; meanwhile `on_text` receives the reply's text so far, if the endpoint streams."""
        return await self._complete(request, lambda text: on_text(request, text))

    async def _complete(self, request: Request, on_text: Callable[[str], None] | None) -> Reply:
        import aiohttp
        import openai

        client = self._client or await self._opened()
        where = self._where
        body = self._body(request)
        if on_text is not None and self._streams:
            body |= ASKED_FOR
        made = 0
        while True:
            sent = {name: value for name, value in body.items() if name not in self._left_out}
            try:
                if on_text is None or not (self._streams and sent.keys() >= ASKED_FOR.keys()):
                    completion = await client.post("/chat/completions", cast_to=object, body=_whole(sent))
                else:
                    completion = await self._streamed(client, sent, on_text)
            except openai.APIError as error:
                refused = _refused_parameter(error, sent.keys() - _NEEDED - {self._served.provider.limit})
                if refused is None:
                    if made >= self._max_retries or not _is_unbilled(error):
                        raise translated(error, where=where, model=request.model) from None
                    response = getattr(error, "response", None)
                    await asyncio.sleep(pause(made, None if response is None else response.headers))
                    made += 1
                    continue
                if refused not in self._left_out:
                    _LOG.warning("%s does not accept the parameter %r; it is omitted.", where, refused)
                self._left_out.add(refused)
            except (ValueError, RecursionError, aiohttp.ClientError):  # the SDK knows httpx's errors alone
                raise TransientError(f"{where} sent a reply that cannot be read; try again.") from None
            else:
                return _reply(completion, where)

    async def _streamed(
        self, client: "openai.AsyncOpenAI", sent: Mapping[str, Any], on_text: Callable[[str], None]
    ) -> object:
        """A streamed completion; later calls are not streamed if the endpoint sends no stream, or no usage with it."""
        import openai

        async with await client.post(
            "/chat/completions", cast_to=object, body=sent, stream=True, stream_cls=openai.AsyncStream[object]
        ) as chunks:
            if not chunks.response.headers.get("content-type", "").startswith("text/event-stream"):
                self._streams = False
                return json.loads(await chunks.response.aread())
            completion = await gathered(chunks, on_text)
        self._streams = completion["usage"] is not None  # costs are computed from it
        return completion

    async def reported(self, model: str) -> Mapping[str, Any] | None:
        """The server's report on a model, see `serving.identity`; `None` if it does not respond."""
        import aiohttp
        import openai

        client = self._client or await self._opened()
        try:
            async with asyncio.timeout(_LISTING_SECONDS):
                return await reported(client, model)
        except openai.APIStatusError as error:
            return None if error.status_code in _PASSING or error.status_code >= _SERVER_FAULT else {}
        except (openai.APIConnectionError, TimeoutError):
            return None
        except (openai.APIError, ValueError, RecursionError, aiohttp.ClientError):
            return {}  # it responds, but does not list models

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _opened(self) -> "openai.AsyncOpenAI":
        async with self._opening:  # only once, even for concurrent first calls
            if self._client is None:
                self._client = await asyncio.to_thread(self._build)
            return self._client

    def _build(self) -> "openai.AsyncOpenAI":
        import openai

        return openai.AsyncOpenAI(
            base_url=self._served.base_url,
            api_key=self._served.api_key.get_secret_value() if self._served.api_key else "none",
            max_retries=0,  # its own retries would repeat possibly billed calls outside the budget
            timeout=None,  # the caller sets a total deadline per call; keep-alives defeat a read timeout
            default_headers={name: value.get_secret_value() for name, value in self._served.headers.items()},
            http_client=openai.DefaultAioHttpClient(),  # for many concurrent calls httpx's own pool takes twice as long
        )

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            self._served.provider.limit: request.max_tokens,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.draw and self._served.provider.seeds:
            body["seed"] = request.draw
        if request.logprobs:
            body["logprobs"] = True
        if request.stop:
            body["stop"] = list(request.stop)
        if request.json_schema is not None:
            body["response_format"] = self._response_format(request.json_schema)
        return {**body, **request.extra_body}

    def _response_format(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._served.provider.json_mode == "json_object":
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def _whole(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The request for a reply in one piece."""
    return {name: value for name, value in sent.items() if name not in ASKED_FOR}


def _reply(completion: object, where: str) -> Reply:
    try:
        choice: Mapping[str, Any] = completion["choices"][0]  # type: ignore[index]  # checked by this try block
        text = _text(choice["message"].get("content"))
        usage = read_usage(completion.get("usage"))  # type: ignore[attr-defined]
        tokens = _tokens(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise TransientError(
            f"{where} sent a reply that is not a chat completion; check the address (LLM_BASE_URL)."
        ) from None
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate can be neither stored nor sent again
    return Reply(text=text, usage=usage, finish_reason=choice.get("finish_reason"), tokens=tokens)


def _text(content: Any) -> str:
    """A reply's text, joined if it comes in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")


def _tokens(reported: Any) -> tuple[tuple[str, float], ...] | None:
    """Tokens with their log-probabilities, if the server sent them."""
    content = reported.get("content") if isinstance(reported, Mapping) else None
    try:
        return tuple((str(token["token"]), float(token["logprob"])) for token in content) if content else None
    except (KeyError, TypeError, ValueError):
        return None


def read_usage(reported: Any) -> Usage | None:
    """Token usage as reported by a server: DeepSeek's hit and miss fields, or OpenAI's details.

    Invalid counts make the usage unknown, because costs are computed from it.
    """
    if not isinstance(reported, Mapping):
        return None
    prompt, completion = _count(reported.get("prompt_tokens")), _count(reported.get("completion_tokens") or 0)
    if prompt is None or completion is None:
        return None
    hit = reported.get("prompt_cache_hit_tokens")
    if hit is None:
        hit = _detail(reported, "prompt_tokens_details", "cached_tokens")
    return Usage(
        prompt=prompt,
        cache_hit=min(_count(hit) or 0, prompt),
        completion=completion,
        reasoning=_count(_detail(reported, "completion_tokens_details", "reasoning_tokens")) or 0,
    )


def _detail(reported: Mapping[str, Any], part: str, name: str) -> Any:
    details = reported.get(part)
    return details.get(name) if isinstance(details, Mapping) else None


def _count(value: Any) -> int | None:
    """A token count, `None` if invalid."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and 0 <= value <= _MOST_TOKENS else None


def translated(error: "openai.APIError", *, where: str, model: str) -> MetaRagError:
    """An error of the SDK as one of this package, with the remedy."""
    import openai

    if type(error.__cause__).__name__ == "DecodingError":
        return TransientError(f"{where} sent a reply that cannot be read: {error.__cause__}; try again.")
    if isinstance(error, openai.APIConnectionError):
        lost = UnreachableError if _never_sent(error) else LostConnectionError
        return lost(
            f"{where} does not respond; check that it is running and that the address is right (`marag doctor`)."
        )
    if not isinstance(error, openai.APIStatusError):
        return TransientError(f"{where} sent a reply that cannot be read: {error.message}; try again.")
    if error.status_code in (400, 413) and _is_too_long(error):
        return ContextWindowError(
            f"The prompt exceeds the context window of {model!r} at {where}; lower EVIDENCE_TOKENS."
        )
    kind, words = _STATUS.get(error.status_code, (RefusedError, "{where} rejected the call with {status}: {said}"))
    return kind(words.format(where=where, model=model, status=error.status_code, said=_words(error)))


def _is_unbilled(error: "openai.APIError") -> bool:
    """Did a call fail in a way that may be temporary and that no provider bills?"""
    status = getattr(error, "status_code", None)
    return _never_sent(error) if status is None else status in _PASSING or status >= _SERVER_FAULT


def _never_sent(error: BaseException) -> bool:
    cause = error.__cause__
    if type(cause).__name__ not in _NO_CONNECTION:
        return False
    return type(getattr(cause, "__cause__", None)).__name__ not in _LOST_LATER


_KEY_WORDS = "{where} rejected the key ({status}); check the key (`marag doctor` names its variable)."
_STATUS: Mapping[int, tuple[type[ModelError], str]] = {
    401: (AuthenticationError, _KEY_WORDS),
    403: (AuthenticationError, _KEY_WORDS),
    402: (
        BalanceError,
        "{where} reports that the account has no balance left (402); top it up, then resume (`marag balance`).",
    ),
    404: (
        RefusedError,
        "{where} does not know {model!r} or the path (404); check FLASH_MODEL, PRO_MODEL and the address.",
    ),
}


def _refused_parameter(error: "openai.APIError", optional: Set[str]) -> str | None:
    """The optional parameter that a 400 or 422 reports as unsupported."""
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    words = _words(error).lower()
    if not _UNSUPPORTED.search(words):
        return None
    named = [name for name in optional if name == getattr(error, "param", None) or re.search(rf"\b{name}\b", words)]
    return max(named, key=len, default=None)


def _is_too_long(error: Any) -> bool:
    marks = {str(error.code), str(error.type)}
    # DeepSeek and vLLM send a general code, with the reason only in the text
    said = "maximum context length" in _words(error)
    return said or bool(marks & {"context_length_exceeded", "exceed_context_size_error"})


def _words(error: Any) -> str:
    body = error.body
    words = body.get("message") if isinstance(body, dict) else None
    return str(words or error.message)[:300]
