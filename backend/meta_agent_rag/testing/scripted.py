"""A model that follows a script, with the interface of a real one."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from ..errors import MetaRagError
from ..llm.messages import CURRENT, Message, Reply, Request, Usage
from ..prompts import estimate_tokens

Line: TypeAlias = str | Mapping[str, Any] | MetaRagError
Scripted: TypeAlias = Line | Sequence[Line] | Callable[[Request], Line]
_ROLES: Mapping[str, Any] = {"system": "system", "human": "user", "ai": "assistant"}


class ScriptedModel(BaseChatModel):
    """Replies by stage, as a chat model of LangChain's that stands for the endpoint that the settings choose.

    A stage's script is a text, an object (sent as JSON), an error to raise, a list of these (used in turn, the last
    one repeatedly), or a function of the request. A stage without a script gets `universal_reply`.
    `requests` holds all requests.

    >>> model = ScriptedModel({"write": {"quotes": [], "answer": "Paris.", "short_answer": "Paris"}})
    >>> model.asked("write")
    []
    """

    script: Any = Field(default_factory=dict)
    seconds: float = 0.0
    requests: list[Request] = Field(default_factory=list)

    def __init__(self, script: Mapping[str, Scripted] | None = None, seconds: float = 0.0, **fields: Any) -> None:
        super().__init__(script={} if script is None else script, seconds=seconds, **fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def asked(self, stage: str) -> list[Request]:
        """The requests of one stage."""
        return [request for request in self.requests if request.stage == stage]

    async def complete(self, request: Request) -> Reply:
        """Return the next reply for the request's stage, or raise its error."""
        line = self._line(request)
        self.requests.append(request)
        await asyncio.sleep(self.seconds)
        if isinstance(line, MetaRagError):
            raise line
        text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
        prompt_tokens = sum(estimate_tokens(message.content) for message in request.messages)
        return Reply(
            text=text, usage=Usage(prompt=prompt_tokens, completion=estimate_tokens(text)), finish_reason="stop"
        )

    def _line(self, request: Request) -> Line:
        scripted: Scripted = self.script.get(request.stage, universal_reply())
        if callable(scripted):
            return scripted(request)
        if isinstance(scripted, Sequence) and not isinstance(scripted, str):
            return scripted[min(len(self.asked(request.stage)), len(scripted) - 1)]
        return scripted

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self.complete(CURRENT.get() or _request(messages)))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(asyncio.run(self.complete(_request(messages))))


def _request(messages: Sequence[BaseMessage]) -> Request:
    """The request of a caller that has no stages."""
    asked = tuple(Message(role=_ROLES.get(one.type, "user"), content=one.text) for one in messages)
    return Request(stage="", model="scripted", messages=asked, max_tokens=0, temperature=None)


def _result(reply: Reply) -> ChatResult:
    used = reply.usage
    logprobs = {"content": [{"token": token, "logprob": logprob} for token, logprob in reply.tokens or ()]}
    message = AIMessage(
        content=reply.text,
        response_metadata={
            "finish_reason": reply.finish_reason,
            **({"logprobs": logprobs} if reply.tokens is not None else {}),
            **({"model_name": reply.model} if reply.model is not None else {}),
        },
        usage_metadata=None
        if used is None
        else UsageMetadata(
            input_tokens=used.prompt,
            output_tokens=used.completion,
            total_tokens=used.prompt + used.completion,
            input_token_details={"cache_read": used.cache_hit},
            output_token_details={"reasoning": used.reasoning},
        ),
    )
    return ChatResult(generations=[ChatGeneration(message=message)])


def universal_reply(short_answer: str = "scripted", **fields: Any) -> dict[str, Any]:
    """An object that every stage's schema accepts; `fields` override its parts."""
    return {
        "intent": "question",
        "quotes": [],
        "points": [],
        "answer": f"It is {short_answer}.",
        "short_answer": short_answer,
        "steps": ["One step."],
        "rationale": "Nothing is wrong.",
        "deficit": "none",
        "error_type": "none",
        "suggestion": "",
        "suggested_queries": [],
        "thought": "Nothing is missing.",
        "action": "finish",
        "argument": short_answer,
        "sentence": f"So the answer is {short_answer}.",
        "finished": True,
        "needed": False,
        "follow_up": "",
        "intermediate_answer": short_answer,
        "reflection": "Look again.",
        "reason": "It says the same.",
        "correct": True,
        "verdict": "correct",
        "sufficient": True,
        "claims": [],
        "answers_question": True,
        "chains": [{"of": "", "facts": ["What is it?"]}],
        "operator": "last",
        **fields,
    }
