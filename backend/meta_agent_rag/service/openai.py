"""OpenAI's API: its chat completions as questions of /v1/ask, limited to the fields that one answer can serve."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool

from ..chat.history import History
from ..errors import RequestError
from ..llm.ledger import total
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import without_mentions
from .answers import ask, documents_of, sentences
from .resources import RequestContext
from .schemas import NUMBER, QUESTION_CHARACTERS, AskRequest, AskResponse, Text

_STARTED = int(time.time())


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextPart(_Sent):
    """A part of a message's text."""

    type: Literal["text"]
    text: Text


class ChatMessage(_Sent):
    """One message. System messages are accepted but have no effect: the service uses its own instructions."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(min_length=1, max_length=100)]
    name: str | None = None
    refusal: str | None = None

    def text(self) -> str:
        """The whole text."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class StreamOptions(_Sent):
    """Optional additions to a stream."""

    include_usage: StrictBool = False
    include_obfuscation: StrictBool | None = None


class ResponseFormat(_Sent):
    """Text is the only format."""

    type: Literal["text"]


def _from_a_user(messages: "list[ChatMessage]") -> "list[ChatMessage]":
    if messages[-1].role != "user":
        raise ValueError("the last message is not the user's; end with the question")
    return messages


_IGNORED: Any = Field(None, description="Without effect.")
_Penalty: TypeAlias = Annotated[float, Field(strict=True, ge=-2, le=2)]


class ChatRequest(_Sent):
    """A conversation whose last message is the question.

    The service decides on sampling and length, so those fields have no effect.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "sample",
                    "messages": [{"role": "user", "content": "Where was the director of The Salt Road born?"}],
                }
            ]
        }
    )

    model: Annotated[Text, Field(min_length=1, max_length=64)] = Field(description="A corpus; GET /v1/models lists it.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=200), AfterValidator(_from_a_user)] = Field(
        description="The last message must be the user's, of 1 to 1,000 characters."
    )
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = Field(None, description="Only with `stream`.")
    n: Annotated[int, Field(ge=1, le=1), NUMBER] | None = Field(None, description="Must be 1: there is one answer.")
    response_format: ResponseFormat | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    logprobs: Literal[False] | None = None
    tool_choice: Literal["none"] | None = None
    temperature: Annotated[float, Field(strict=True, ge=0, le=2)] | None = _IGNORED
    top_p: Annotated[float, Field(strict=True, ge=0, le=1)] | None = _IGNORED
    max_tokens: Annotated[int, Field(ge=1), NUMBER] | None = _IGNORED
    max_completion_tokens: Annotated[int, Field(ge=1), NUMBER] | None = _IGNORED
    presence_penalty: _Penalty | None = _IGNORED
    frequency_penalty: _Penalty | None = _IGNORED
    seed: Annotated[int, NUMBER] | None = _IGNORED
    user: str | None = _IGNORED
    safety_identifier: str | None = _IGNORED
    metadata: dict[str, str] | None = _IGNORED
    store: StrictBool | None = Field(None, description="Ignored; GET /v1/queries/{id} returns the record.")
    reasoning_effort: str | None = _IGNORED
    service_tier: str | None = _IGNORED
    prompt_cache_key: str | None = _IGNORED
    verbosity: str | None = _IGNORED


class CachedTokens(BaseModel):
    """The prompt tokens that the provider's cache served."""

    cached_tokens: int


class CompletionUsage(BaseModel):
    """Tokens of all model calls that one answer took."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class Grounding(AskResponse):
    """The basis of the answer: the response of /v1/ask without the text."""

    model_config = ConfigDict(json_schema_extra={})

    answer: str = Field("", exclude=True)

    @classmethod
    def of(cls, response: AskResponse) -> "Grounding":
        """The same response."""
        return cls(**dict(response))


class AnswerMessage(BaseModel):
    """The answer, with its citations written out."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class CompletionChoice(BaseModel):
    """The one choice."""

    index: Literal[0] = 0
    message: AnswerMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class ChatCompletion(BaseModel):
    """A completion; `grounding` is an extension of OpenAI's format."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "chatcmpl-0198c0de5c7e7d0f9a3c4b1e2f6a7b8c",
                    "object": "chat.completion",
                    "created": 1785000000,
                    "model": "sample",
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": "She was born in Oslo [Mira Holt]."},
                            "finish_reason": "stop",
                        }
                    ],
                    "usage": {
                        "prompt_tokens": 1450,
                        "completion_tokens": 120,
                        "total_tokens": 1570,
                        "prompt_tokens_details": {"cached_tokens": 1024},
                    },
                }
            ]
        }
    )

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    grounding: Grounding | None = Field(None, description="Citations, confidence, query id and the rest of /v1/ask.")


class Model(BaseModel):
    """A corpus, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "meta-agent-rag"


class Models(BaseModel):
    """All models, the default first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "object": "list",
                    "data": [
                        {"id": "sample", "object": "model", "created": 1785000000, "owned_by": "meta-agent-rag"},
                    ],
                }
            ]
        }
    )

    object: Literal["list"] = "list"
    data: list[Model]


class Fault(BaseModel):
    """Why a request was refused."""

    message: str
    type: str
    param: str | None
    code: str | None


class FaultEnvelope(BaseModel):
    """The body of every refusal at these addresses."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "message": "The model 'x' does not exist; choose from: sample.",
                        "type": "invalid_request_error",
                        "param": "model",
                        "code": "model_not_found",
                    }
                }
            ]
        }
    )

    error: Fault


def models(names: Sequence[str]) -> Models:
    """Corpora as models."""
    return Models(data=[Model(id=name, created=_STARTED) for name in names])


async def complete(chat: ChatRequest, context: RequestContext) -> ChatCompletion:
    """Answer the last message. Raises the errors of `ask`, and `RequestError` for an invalid question."""
    if chat.stream_options is not None and not chat.stream:
        raise _refused(
            "stream_options", "The field 'stream_options' requires 'stream'; set it, or leave stream_options out."
        )
    question = chat.messages[-1].text().strip()
    if not 0 < len(question) <= QUESTION_CHARACTERS:
        words = f"The last message has {len(question)} characters; use 1 to {QUESTION_CHARACTERS}."
        raise _refused("messages", words)
    asked = AskRequest(question=question, corpus=chat.model)
    response = await ask(asked, context, history=await _history(chat, context))
    return _completion(chat.model, response, context)


async def _history(chat: ChatRequest, context: RequestContext) -> History:
    earlier, served = chat.messages[:-1], context.service.retrievers
    corpus = context.client.corpus(chat.model, served)
    mentioned = any("@" in message.text() for message in earlier)
    return history_of(earlier, await documents_of(context.service, corpus) if mentioned else ())


def history_of(messages: list[ChatMessage], documents: Sequence[DocumentRecord] = ()) -> History:
    """The earlier questions with their answers, without names of documents; unanswered ones are left out."""
    history, question = History(), ""
    for message in messages:
        text = message.text().strip()
        if message.role == "user":
            question = without_mentions(text, documents)
        elif message.role == "assistant" and question and text:
            history = history.with_exchange(question=question, answer=text, standalone=question)
            question = ""
    return history


def _completion(model: str, response: AskResponse, context: RequestContext) -> ChatCompletion:
    spent = total(call.row for call in context.calls)
    return ChatCompletion(
        id=f"chatcmpl-{response.query_id}",
        created=int(context.at.timestamp()),
        model=model,
        choices=[CompletionChoice(message=AnswerMessage(content=response.answer))],
        usage=CompletionUsage(
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            total_tokens=spent.prompt_tokens + spent.completion_tokens,
            prompt_tokens_details=CachedTokens(cached_tokens=spent.cache_hit_tokens),
        ),
        grounding=Grounding.of(response),
    )


async def chunks(done: ChatCompletion, *, with_usage: bool) -> AsyncIterator[str]:
    """A completion as a stream, started after the text is verified, so that failures have their own status."""
    for chunk in _chunks(done, with_usage):
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _chunks(done: ChatCompletion, with_usage: bool) -> Iterator[dict[str, Any]]:
    base = {"id": done.id, "object": "chat.completion.chunk", "created": done.created, "model": done.model}
    usage = {"usage": None} if with_usage else {}
    deltas = [{"content": sentence} for sentence in sentences(done.choices[0].message.content)]
    for delta in [{"role": "assistant", "content": ""}, *deltas]:
        yield {**base, "choices": [_choice(delta, None)], **usage}
    grounding = done.grounding.model_dump(mode="json") if done.grounding is not None else None
    yield {**base, "choices": [_choice({}, "stop")], **usage, "grounding": grounding}
    if with_usage:
        yield {**base, "choices": [], "usage": done.usage.model_dump(mode="json")}


def _choice(delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _refused(param: str, words: str) -> RequestError:
    return RequestError(422, "invalid_request", words, param=param)
