"""Chat models: one of LangChain's for each endpoint, called with a request of ours."""

import asyncio
import importlib
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import SecretStr, ValidationError

from ..errors import SettingsError
from ..text.normalise import encodable
from ..wording import first_fault
from .faults import FORMAT, failed_generation, fault, refused_parameter
from .messages import CURRENT, Reply, Request, Usage
from .providers import Endpoint

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable, RunnableConfig

_LOG = logging.getLogger(__name__)
_LIMITS = ("max_tokens", "num_predict", "max_output_tokens")
"""The fields in which LangChain's classes hold the limit of a reply."""
_FINISHED = {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "safety": "content_filter",
    "prohibited_content": "content_filter",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
"""The reasons of other providers by OpenAI's names."""


@dataclass(kw_only=True)
class Connection:
    """A chat model, opened at the first call, and the stable identity of what serves it: part of the cache key.

    The identity is unsure from the `time.monotonic` timestamp `ask_again`. A parameter that the model rejects by name
    is omitted from then on.
    """

    endpoint: Endpoint
    identity: str
    ask_again: float = math.inf
    model: "BaseChatModel | None" = None
    _left_out: set[str] = field(default_factory=set)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def chat(self) -> "BaseChatModel":
        """The chat model; imported and opened in a thread on first use."""
        async with self._opening:
            if self.model is None:
                self.model = await asyncio.to_thread(opened, self.endpoint)
            return self.model

    async def aclose(self) -> None:
        """Close the model if it was opened here."""
        if self.model is not None:
            await close(self.model)

    async def complete(self, request: Request, config: "RunnableConfig") -> Reply:
        """Send one call. Raises a `ModelError`."""
        model = await self.chat()
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        token = CURRENT.set(request)
        try:
            while True:
                in_body = "extra_body" in type(model).model_fields and not _by_responses(model)
                call = self._in_body(model, request) if in_body else self._in_fields(model, request)
                try:
                    came = await call.model.ainvoke(messages, config, **call.options)
                    return _reply(came["raw"] if call.structured else came, request)
                except Exception as error:
                    if (text := failed_generation(error)) is not None:
                        return Reply(text=text, usage=None)
                    unstructured = isinstance(error, NotImplementedError) and call.structured
                    name = FORMAT if unstructured else refused_parameter(error, call.optional)
                    if name is None:
                        raise fault(error, self.endpoint) from error
                    _LOG.warning("%s does not accept the parameter %r; it is omitted.", self.endpoint.where, name)
                    self._left_out.add(name)
        finally:
            CURRENT.reset(token)

    def _wanted(self, request: Request) -> dict[str, Any]:
        parameters = {
            "temperature": request.temperature,
            "seed": request.draw or None,
            "logprobs": request.logprobs or None,
            "stop": list(request.stop) or None,
        }
        return {name: one for name, one in parameters.items() if one is not None and name not in self._left_out}

    def _in_body(self, model: "BaseChatModel", request: Request) -> "_PreparedCall":
        """The call in the body of OpenAI's protocol."""
        provider, schema = self.endpoint.provider, request.json_schema
        # a call's body replaces the object's; in `response_format` proper, the client would raise for a cut reply
        body = {**(getattr(model, "extra_body", None) or {}), **self._wanted(request), **request.extra_body}
        body[provider.limit] = request.max_tokens
        if schema is not None:
            reply = {"name": "reply", "strict": True, "schema": schema}
            of_a_schema = {"json_schema": reply} if provider.json_mode == "json_schema" else {}
            body[FORMAT] = {"type": provider.json_mode, **of_a_schema}
        if not provider.seeds:
            body.pop("seed", None)
        body = {name: value for name, value in body.items() if name not in self._left_out}
        return _PreparedCall(model, {"extra_body": body}, frozenset(body) - {provider.limit})

    def _in_fields(self, model: "BaseChatModel", request: Request) -> "_PreparedCall":
        """The call by the fields of the model's class."""
        from langchain_core.language_models import BaseChatModel

        known, schema = type(model).model_fields, request.json_schema
        limit = next((name for name in _LIMITS if name in known), None)
        update = {name: value for name, value in self._wanted(request).items() if name in known and name != "stop"}
        thinking = getattr(model, "thinking", None)
        budget = thinking.get("budget_tokens", 0) if isinstance(thinking, Mapping) else 0
        if budget:  # Anthropic's, which counts in the limit and excludes a temperature
            update.pop("temperature", None)
        if limit is not None:
            update[limit] = request.max_tokens + budget
        runs: Any = model.model_copy(update=update) if update else model
        # a structured output of the class's own, rather than LangChain's general one by tools
        own = type(model).with_structured_output is not BaseChatModel.with_structured_output
        structured = schema is not None and own and FORMAT not in self._left_out
        if structured:
            try:
                runs = runs.with_structured_output(schema, method="json_schema", include_raw=True)
            except (NotImplementedError, TypeError, ValueError):  # by another method alone
                structured = False
        options = {"stop": list(request.stop)} if request.stop and not structured else {}
        optional = frozenset({*update} - {limit}) | ({FORMAT} if structured else set())
        return _PreparedCall(runs, options, optional, structured)


class _PreparedCall(NamedTuple):
    """A call that is ready to run: `structured` through LangChain's parser, of which the raw reply is taken."""

    model: "Runnable[Any, Any]"
    options: Mapping[str, Any]
    optional: frozenset[str]
    structured: bool = False


def _by_responses(model: "BaseChatModel") -> bool:
    """Whether a model of OpenAI's class uses the Responses API, whose body is another."""
    chooses = getattr(model, "_use_responses_api", None)
    return callable(chooses) and bool(chooses({}))


def _reply(message: "AIMessage", request: Request) -> Reply:
    about = message.response_metadata
    text = str(message.text)
    if message.tool_calls and (request.json_schema is not None or not text):  # structured output by a tool
        text = json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)
    broken_off = about.get("incomplete_details") or {}
    reasons = (about.get("finish_reason"), about.get("stop_reason"), about.get("done_reason"), broken_off.get("reason"))
    reason = next(filter(None, reasons), None)
    finish_reason = None if reason is None else _FINISHED.get(str(reason).lower(), str(reason).lower())
    kept = message.additional_kwargs
    reasoned = bool(kept.get("reasoning_content") or kept.get("reasoning")) or any(
        isinstance(block, dict) and block.get("type") in ("thinking", "reasoning") for block in message.content
    )
    refused = kept.get("refusal") or finish_reason == "refusal"
    filtered = finish_reason == "content_filter"
    withheld = "refusal" if refused else "content_filter" if filtered else "reasoning" if reasoned else None
    return Reply(
        text=encodable(text or str(kept.get("refusal") or "")),
        usage=_usage(message),
        finish_reason=finish_reason,
        tokens=_tokens(about.get("logprobs")),
        model=_own_name(about.get("model_name") or about.get("model")),
        withheld=cast("Any", withheld if refused or filtered or not text else None),
    )


def _own_name(reported: str | None) -> str | None:
    """A model's own name; of a file, which llama.cpp's server reports with its folder, the file's."""
    return PurePath(reported).name if reported and reported.startswith("/") else reported


def _usage(message: "AIMessage") -> Usage | None:
    """The tokens of a call, as every integration reports them; `None` if it reports none, or invalid ones."""
    used = message.usage_metadata
    if used is None or min(used["input_tokens"], used["output_tokens"]) < 0:
        return None
    return Usage(
        prompt=used["input_tokens"],
        cache_hit=min(used.get("input_token_details", {}).get("cache_read", 0) or 0, used["input_tokens"]),
        completion=used["output_tokens"],
        reasoning=used.get("output_token_details", {}).get("reasoning", 0) or 0,
    )


def _tokens(reported: Any) -> tuple[tuple[str, float], ...] | None:
    """Tokens with their log-probabilities, if the server sent them."""
    content = reported.get("content") if isinstance(reported, Mapping) else None
    try:
        return tuple((str(token["token"]), float(token["logprob"])) for token in content) if content else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def opened(endpoint: Endpoint) -> "BaseChatModel":
    """The chat model of an endpoint, without retries of its own. Raises `SettingsError` if it cannot be opened."""
    if endpoint.is_langchain:
        name = endpoint.provider.chat or ""
        kind = getattr(importlib.import_module(endpoint.provider.module or ""), name)
        key = {} if endpoint.api_key is None else {"api_key": endpoint.api_key}
        try:
            return without_retries(kind(model=endpoint.model, **key))
        except (ValidationError, ValueError) as error:
            why = first_fault(error) if isinstance(error, ValidationError) else " ".join(str(error).split())
            raise SettingsError(f"{name} cannot be opened for {endpoint.model!r}: {why}.") from None
    import httpx2

    from .compatible import CompatibleChat, PlainTransport

    limits = httpx2.Limits(max_keepalive_connections=100)
    if endpoint.provider.name == "openai":
        transport = httpx2.AsyncHTTPTransport(limits=limits)
    else:
        transport = PlainTransport(endpoint.headers, limits=limits)
    return CompatibleChat(
        model=endpoint.model,
        base_url=endpoint.base_url,
        # without a key of its own, the client would take OPENAI_API_KEY, and send it to a foreign server
        api_key=endpoint.api_key or SecretStr("none"),
        default_headers={name: value.get_secret_value() for name, value in endpoint.headers.items()},
        # redirects are not followed: they would take the prompt and the key to another host
        http_async_client=httpx2.AsyncClient(transport=transport, timeout=None),
        http_socket_options=(),
        max_retries=0,
        timeout=None,
        stream_usage=True,  # also where LangGraph makes a call stream
        stream_chunk_timeout=None,
        use_responses_api=False,
        openai_proxy=None,
    )


async def close(model: "BaseChatModel") -> None:
    """Close the connections of a model that `opened` made."""
    if (client := getattr(model, "http_async_client", None)) is not None:
        await client.aclose()


def without_retries(model: "BaseChatModel") -> "BaseChatModel":
    """A copy that makes one attempt a call, so that every attempt is reserved and recorded; or the model itself."""
    if "max_retries" not in type(model).model_fields:
        return model
    update: dict[str, Any] = {"max_retries": 0}
    if (client := getattr(model, "root_async_client", None)) is not None:  # OpenAI's, which is made with the object
        client = client.with_options(max_retries=0)
        update |= {"root_async_client": client, "async_client": client.chat.completions}
    copy = model.model_copy(update=update)
    copy.__dict__.pop("_async_client", None)  # Anthropic's, made at the first call
    return copy
