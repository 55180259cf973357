"""A chat completion as a question of /v1/ask: its last message, interpreted in the context of the earlier ones."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from ...chat.history import History
from ...errors import RequestError
from ...llm.ledger import total
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.corpus.naming import without_mentions
from ..answering.ask import ask, corpus_of, documents_of
from ..answering.stream import sentences
from ..gate import Visit
from ..schemas import QUESTION_CHARACTERS, AskRequest, AskResponse
from .wire import (
    AnswerMessage,
    CachedTokens,
    ChatCompletion,
    ChatMessage,
    ChatRequest,
    Choice,
    Grounding,
    Model,
    Models,
    Usage,
)

_STARTED = int(time.time())


def models(names: Sequence[str]) -> Models:
    """Corpora as models."""
    return Models(data=[Model(id=name, created=_STARTED) for name in names])


async def complete(chat: ChatRequest, visit: Visit) -> ChatCompletion:
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
    response = await ask(visit.service, asked, visit.record, history=await _history(chat, visit))
    return _completion(chat.model, response, visit)


async def _history(chat: ChatRequest, visit: Visit) -> History:
    earlier, corpus = chat.messages[:-1], corpus_of(visit.service, visit.record, chat.model)
    mentioned = any("@" in message.text() for message in earlier)
    return history_of(earlier, await documents_of(visit.service, corpus) if mentioned else ())


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


def _completion(model: str, response: AskResponse, visit: Visit) -> ChatCompletion:
    spent = total(call.row for call in visit.record.calls)
    return ChatCompletion(
        id=f"chatcmpl-{response.query_id}",
        created=int(visit.record.at.timestamp()),
        model=model,
        choices=[Choice(message=AnswerMessage(content=response.answer))],
        usage=Usage(
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
