"""Any OpenAI-compatible endpoint: the protocol of chat completions."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import TransientError
from ..text.normalise import encodable
from .endpoints.faults import is_passing, refused_parameter, translated
from .endpoints.http import HttpClient, HttpError, read
from .endpoints.identity import reported
from .endpoints.streaming import ASKED_FOR, ListenerError, events, gathered
from .pacing import pause, requested_pause, time_left
from .providers import Endpoint
from .transport import OnText, Reply, Request, Usage

_LOG = logging.getLogger(__name__)
_MOST_TOKENS = 100_000_000
"""More tokens than any window holds: a higher count is invalid."""
_LISTING_SECONDS = 10.0
_NEEDED = frozenset({"model", "messages"})


class ChatTransport:
    """Serves calls from an HTTP endpoint.

    If nothing can have been billed (no connection, 408, 409, 429, 5xx), the call is repeated here, and
    Retry-After is honoured if the call's time allows. A parameter that the endpoint rejects by name is omitted from
    then on.
    """

    def __init__(self, endpoint: Endpoint, *, max_retries: int, name: str | None = None) -> None:
        self._served = endpoint
        self._max_retries = max_retries
        self._name = name or endpoint.base_url or ""
        self._client = HttpClient(endpoint.base_url or "", api_key=endpoint.api_key, headers=endpoint.headers)
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
        where = self._where
        body = self._body(request)
        if on_text is not None and self._streams:
            body |= ASKED_FOR
        made = 0
        while True:
            sent = {name: value for name, value in body.items() if name not in self._left_out}
            try:
                if on_text is None or not (self._streams and sent.keys() >= ASKED_FOR.keys()):
                    completion = await self._client.post("/chat/completions", _whole(sent))
                else:
                    completion = await self._streamed(sent, on_text)
            except HttpError as error:
                refused = refused_parameter(error, sent.keys() - _NEEDED - {self._served.provider.limit})
                if refused is None:
                    wished = requested_pause(error.headers)
                    late = wished is not None and wished > time_left()
                    if late or made >= self._max_retries or not is_passing(error):
                        reports = self._served.provider.reports_balance
                        raise translated(
                            error, where=where, model=request.model, late=late, reports_balance=reports
                        ) from None
                    await asyncio.sleep(pause(made) if wished is None else wished)
                    made += 1
                    continue
                if refused not in self._left_out:
                    _LOG.warning("%s does not accept the parameter %r; it is omitted.", where, refused)
                self._left_out.add(refused)
            else:
                return _reply(completion, where)

    async def _streamed(self, sent: Mapping[str, Any], on_text: Callable[[str], None]) -> object:
        """A streamed completion; later calls are not streamed if the endpoint sends no stream, or no usage with it."""
        try:
            async with self._client.streamed("/chat/completions", sent) as response:
                if response.content_type != "text/event-stream":
                    self._streams = False
                    return await read(response)
                completion = await gathered(events(response.content.iter_any()), on_text)
        except ListenerError as failed:
            raise failed.error from None
        self._streams = completion["usage"] is not None  # costs are computed from it
        return completion

    async def reported(self, model: str) -> Mapping[str, Any] | None:
        """The server's report on a model, see `endpoints.identity`; `None` if it does not respond."""
        try:
            async with asyncio.timeout(_LISTING_SECONDS):
                return await reported(self._client, model)
        except HttpError as error:
            lost = error.status is None and not error.broken
            return None if lost or is_passing(error) else {}  # else it responds, but does not list models
        except TimeoutError:
            return None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

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
    return Reply(text=encodable(text), usage=usage, finish_reason=choice.get("finish_reason"), tokens=tokens)


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
    except (KeyError, TypeError, ValueError, OverflowError):
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
