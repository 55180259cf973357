"""A model that follows a script, with the interface of a real one."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..errors import MetaRagError
from ..llm.transport import Reply, Request, Usage
from ..prompts.tokens import estimate_tokens

Line: TypeAlias = str | Mapping[str, Any] | MetaRagError
Scripted: TypeAlias = Line | Sequence[Line] | Callable[[Request], Line]


@dataclass
class ScriptedModel:
    """Replies by stage, as a `Transport`.

    A stage's script is a text, an object (sent as JSON), an error to raise, a list of these (used in turn, the last
    one repeatedly), or a function of the request. A stage without a script gets `universal_reply`.
    `requests` holds all requests.

    >>> model = ScriptedModel({"write": {"quotes": [], "answer": "Paris.", "short_answer": "Paris"}})
    >>> model.endpoint
    'scripted'
    """

    script: Mapping[str, Scripted] = field(default_factory=dict)
    seconds: float = 0.0
    endpoint: str = "scripted"
    requests: list[Request] = field(default_factory=list)
    closed: bool = False

    async def complete(self, request: Request) -> Reply:
        """Return the next reply for the request's stage."""
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

    async def aclose(self) -> None:
        """Release nothing, but remember that it was called."""
        self.closed = True

    def asked(self, stage: str) -> list[Request]:
        """The requests of one stage."""
        return [request for request in self.requests if request.stage == stage]

    def _line(self, request: Request) -> Line:
        scripted = self.script.get(request.stage, universal_reply())
        if callable(scripted):
            return scripted(request)
        if isinstance(scripted, Sequence) and not isinstance(scripted, str):
            return scripted[min(len(self.asked(request.stage)), len(scripted) - 1)]
        return scripted


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
        "claims": [],
        "answers_question": True,
        "chains": [{"of": "", "facts": ["What is it?"]}],
        "operator": "last",
        **fields,
    }
