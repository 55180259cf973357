"""Requests and responses of OpenAI's API, limited to the fields of a chat that one answer can serve."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool

from ..schemas import NUMBER, AskResponse, Text


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
    temperature: Annotated[float, Field(strict=True, ge=0, le=2)] | None = Field(None, description="Without effect.")
    top_p: Annotated[float, Field(strict=True, ge=0, le=1)] | None = Field(None, description="Without effect.")
    max_tokens: Annotated[int, Field(ge=1), NUMBER] | None = Field(None, description="Without effect.")
    max_completion_tokens: Annotated[int, Field(ge=1), NUMBER] | None = Field(None, description="Without effect.")
    presence_penalty: _Penalty | None = Field(None, description="Without effect.")
    frequency_penalty: _Penalty | None = Field(None, description="Without effect.")
    seed: Annotated[int, NUMBER] | None = Field(None, description="Without effect.")
    user: str | None = Field(None, description="Without effect.")
    safety_identifier: str | None = Field(None, description="Without effect.")
    metadata: dict[str, str] | None = Field(None, description="Without effect.")
    store: StrictBool | None = Field(None, description="Ignored; GET /v1/queries/{id} returns the record.")
    reasoning_effort: str | None = Field(None, description="Without effect.")
    service_tier: str | None = Field(None, description="Without effect.")
    prompt_cache_key: str | None = Field(None, description="Without effect.")
    verbosity: str | None = Field(None, description="Without effect.")


class CachedTokens(BaseModel):
    """The prompt tokens that the provider's cache served."""

    cached_tokens: int


class Usage(BaseModel):
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


class Choice(BaseModel):
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
    choices: list[Choice]
    usage: Usage
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
