"""Any OpenAI-compatible endpoint, through langchain-openai."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    MetaRagError,
    ModelError,
    RefusedError,
    UnreachableError,
)
from .exchange import Message, Reply, Request, Usage
from .providers import Choice

if TYPE_CHECKING:
    import openai
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_openai import ChatOpenAI


class ChatTransport:
    """Serves calls from an HTTP endpoint.

    Connection failures, 408, 409, 429 and 5xx are retried by the SDK, which honours Retry-After.
    """

    def __init__(self, choice: Choice, *, max_retries: int, endpoint: str | None = None) -> None:
        self._choice = choice
        self._max_retries = max_retries
        self._endpoint = endpoint or choice.base_url or ""
        self._model: ChatOpenAI | None = None

    @property
    def endpoint(self) -> str:
        """The base URL: replies of one endpoint are not replies of another."""
        return self._endpoint

    async def complete(self, request: Request) -> Reply:
        """Send one call. Raises a `ModelError` with the remedy."""
        import openai

        if self._model is None:
            self._model = await asyncio.to_thread(self._build)
        try:
            message = await self._model.ainvoke(
                _langchain_messages(request.messages),
                model=request.model,
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                extra_body={**request.extra_body, **self._response_format(request)},
            )
        except openai.APIError as error:
            self._raise(error, request)
        return _reply(message)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._model is not None:
            await self._model.root_async_client.close()
            self._model = None

    def _build(self) -> "ChatOpenAI":
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr

        return ChatOpenAI(
            model=self._choice.models["flash"],
            base_url=self._choice.base_url,
            api_key=self._choice.api_key or SecretStr("none"),
            max_retries=self._max_retries,
            timeout=None,  # one total deadline a call is set by the caller; keep-alives defeat a read time-out
        )

    def _response_format(self, request: Request) -> Mapping[str, Any]:
        # in the extra body: as an argument, a reply cut by length raises after its tokens are spent
        if request.json_schema is None:
            return {}
        if self._choice.provider.json_mode == "json_object":
            return {"response_format": {"type": "json_object"}}
        schema = {"name": "reply", "strict": True, "schema": request.json_schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def _raise(self, error: "openai.APIError", request: Request) -> NoReturn:
        raise translated(
            error, where=f"{self._choice.provider.label} at {self._choice.base_url}", model=request.model
        ) from None


def _langchain_messages(messages: tuple[Message, ...]) -> list["BaseMessage"]:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](message.content) for message in messages]


def _reply(message: "AIMessage") -> Reply:
    metadata = message.response_metadata
    return Reply(
        text=str(message.text),
        usage=read_usage(metadata.get("token_usage")),
        finish_reason=metadata.get("finish_reason"),
    )


def read_usage(reported: Mapping[str, Any] | None) -> Usage | None:
    """Tokens as a server reports them: DeepSeek's hit and miss fields, or OpenAI's details."""
    if not reported or reported.get("prompt_tokens") is None:
        return None
    details = reported.get("prompt_tokens_details") or {}
    hit = reported.get("prompt_cache_hit_tokens")
    completion_details = reported.get("completion_tokens_details") or {}
    return Usage(
        prompt=reported["prompt_tokens"],
        cache_hit=hit if hit is not None else details.get("cached_tokens") or 0,
        completion=reported.get("completion_tokens") or 0,
        reasoning=completion_details.get("reasoning_tokens") or 0,
    )


def translated(error: "openai.APIError", *, where: str, model: str) -> MetaRagError:
    """An error of the SDK as one of ours, with the remedy."""
    import openai

    if isinstance(error, openai.APIConnectionError):
        return UnreachableError(
            f"{where} does not answer; check that it runs and that the address is right (`marag doctor`)."
        )
    if not isinstance(error, openai.APIStatusError):
        return RefusedError(f"{where} sent a reply that cannot be read: {error.message}; try again.")
    if error.status_code in (400, 413) and _is_too_long(error):
        return ContextWindowError(f"The prompt is longer than {model!r} at {where} reads; lower EVIDENCE_TOKENS.")
    kind, words = _STATUS.get(error.status_code, (RefusedError, "{where} refused the call with {status}: {said}"))
    return kind(words.format(where=where, model=model, status=error.status_code, said=_words(error)))


_KEY_WORDS = "{where} refused the key ({status}); check the key (`marag doctor` names its variable)."
_STATUS: Mapping[int, tuple[type[ModelError], str]] = {
    401: (AuthenticationError, _KEY_WORDS),
    403: (AuthenticationError, _KEY_WORDS),
    402: (BalanceError, "{where} says that the account is exhausted (402); top it up, then resume (`marag balance`)."),
    404: (
        RefusedError,
        "{where} does not know {model!r} or the path (404); check FLASH_MODEL, PRO_MODEL and the address.",
    ),
}


def _is_too_long(error: Any) -> bool:
    marks = {str(error.code), str(error.type)}
    return bool(marks & {"context_length_exceeded", "exceed_context_size_error"})


def _words(error: Any) -> str:
    body = error.body
    words = body.get("message") if isinstance(body, dict) else None
    return str(words or error.message)[:300]
