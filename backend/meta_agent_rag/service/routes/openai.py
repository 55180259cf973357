"""The addresses for clients of OpenAI's API."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from starlette.responses import StreamingResponse

from ..answering.stream import EVENT_STREAM, EVENTS
from ..openai.completion import chunks, complete, models
from ..openai.wire import ChatCompletion, ChatRequest, FaultEnvelope, Model, Models
from .visiting import KEYED, Asking, Responses, Visiting, the_client

_REFUSED: Responses = {"default": {"model": FaultEnvelope, "description": "Refused, in the form of OpenAI's API."}}
router = APIRouter(tags=["openai"], dependencies=KEYED, responses=_REFUSED)


@router.get("/v1/models", response_model=Models)
async def get_models(visit: Visiting) -> Models:
    """All served corpora as models."""
    return models(the_client(visit).allowed(visit.service.retrievers))


@router.get("/v1/models/{model}", response_model=Model)
async def get_model(model: Annotated[str, Path(max_length=64)], visit: Visiting) -> Model:
    """One model."""
    return models([the_client(visit).corpus(model, visit.service.retrievers)]).data[0]


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletion,
    responses={
        200: {
            "content": {EVENT_STREAM: dict(EVENTS)},
            "description": "The completion, or with `stream` its chunks and `data: [DONE]`.",
        }
    },
)
async def post_completion(chat: ChatRequest, visit: Asking) -> ChatCompletion | Response:
    """Answer the last message from the documents of the corpus that `model` names, as `/v1/ask` does."""
    done = await complete(chat, visit)
    if not chat.stream:
        return done
    with_usage = chat.stream_options is not None and chat.stream_options.include_usage
    return StreamingResponse(
        chunks(done, with_usage=with_usage), media_type=EVENT_STREAM, headers={"x-accel-buffering": "no"}
    )
