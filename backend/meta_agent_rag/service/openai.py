"""OpenAI's API: its chat completions as questions of /v1/ask."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool

from ..chat.history import History
from ..llm.ledger import total
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import without_mentions
from .answers import ask
from .request import RequestContext
from .schemas import QUESTION_CHARACTERS, AskRequest, written


class TextPart(BaseModel):
    """A part of a message's text."""

    type: Literal["text"]
    text: str


def _as_parts(content: object) -> object:
    # a message that only called tools has none
    return [{"type": "text", "text": content or ""}] if isinstance(content, str | None) else content


class ChatMessage(BaseModel):
    """One message. System messages are accepted but have no effect: the service uses its own instructions."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[
        Annotated[list[TextPart], Field(min_length=1, max_length=100)],
        BeforeValidator(_as_parts, json_schema_input_type=str | list[TextPart]),
    ]

    def text(self) -> str:
        """The whole text."""
        return "".join(part.text for part in self.content).strip()


def _from_a_user(messages: list[ChatMessage]) -> list[ChatMessage]:
    if messages[-1].role != "user":
        raise ValueError("the last message is not the user's; end with the question")
    if not 0 < (length := len(messages[-1].text())) <= QUESTION_CHARACTERS:
        raise ValueError(f"the last message has {length} characters; use 1 to {QUESTION_CHARACTERS}")
    written(messages[-1].text())
    return messages


class ChatRequest(BaseModel):
    """A conversation whose last message is the question.

    The service decides on sampling, length and format: fields that are not listed here have no effect.
    """

    model: Annotated[str, Field(min_length=1, max_length=64)] = Field(description="A corpus; GET /v1/models lists it.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=200), AfterValidator(_from_a_user)] = Field(
        description="The last message must be the user's, of 1 to 1,000 characters."
    )
    stream: StrictBool | None = None
    n: Literal[1] | None = Field(None, description="Must be 1: there is one answer.")
    tools: Annotated[list[Any], Field(max_length=0)] | None = Field(None, description="There are none.")


async def complete(chat: ChatRequest, context: RequestContext) -> dict[str, Any]:
    """Answer the last message: a completion, with the fields of /v1/ask as `grounding`. Raises the errors of `ask`."""
    context.asked = AskRequest(question=chat.messages[-1].text())  # recorded even if it is refused
    corpus, earlier = context.client.corpus(chat.model, context.service.retrievers), chat.messages[:-1]
    catalogue = context.service.catalogue(corpus)
    history = history_of(earlier, () if catalogue is None else await asyncio.to_thread(catalogue.documents))
    asked = context.asked.model_copy(update={"corpus": corpus})
    response = await ask(asked, context, history=history)
    spent = total(call.row for call in context.calls)
    message = {"role": "assistant", "content": response.answer, "refusal": None}
    return {
        "id": f"chatcmpl-{response.query_id}",
        "object": "chat.completion",
        "created": int(context.at.timestamp()),
        "model": chat.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {
            "prompt_tokens": spent.prompt_tokens,
            "completion_tokens": spent.completion_tokens,
            "total_tokens": spent.prompt_tokens + spent.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": spent.cache_hit_tokens},
        },
        "grounding": response.model_dump(mode="json", exclude={"answer"}),
    }


def history_of(messages: Sequence[ChatMessage], documents: Sequence[DocumentRecord] = ()) -> History:
    """The earlier questions with their answers, without names of documents; unanswered ones are left out."""
    history, question = History(), ""
    for message in messages:
        text = message.text()
        if message.role == "user":
            question = without_mentions(text, documents)
        elif message.role == "assistant" and question and text:
            history = history.with_exchange(question=question, answer=text, standalone=question)
            question = ""
    return history


async def chunks(done: dict[str, Any]) -> AsyncIterator[str]:
    """A completion as a stream, started after the text is verified, so that failures have their own status."""
    base = {"id": done["id"], "object": "chat.completion.chunk", "created": done["created"], "model": done["model"]}
    for delta in ({"role": "assistant", "content": done["choices"][0]["message"]["content"]}, {}):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None if delta else "stop"}
        last = {} if delta else {"grounding": done["grounding"], "usage": done["usage"]}
        yield f"data: {json.dumps({**base, 'choices': [choice], **last})}\n\n"
    yield "data: [DONE]\n\n"
