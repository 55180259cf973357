"""Scripted conversations with the coach; shared by its tests."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from meta_agent_rag.chat.coach.coach import Coach
from meta_agent_rag.chat.coach.hook import Scope
from meta_agent_rag.chat.coach.levels import Socratic
from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.session import ChatSession
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.testing import ScriptedModel
from tests.loop import passage, settings_in
from tests.talk import FakeAnswerer

LESSON = passage("shadow", "The shadow moves since the Earth turns once in 24 hours.")
ASKED = "What turns, the Sun or the Earth?"
EXPLAINED = (
    "A sundial works because the Earth turns once a day, so that the Sun seems to cross the sky and the shadow follows "
    "it over the dial, fifteen degrees an hour, which is why the hour lines lie as they do. I hope that this helps."
)


def reply(text: str, *, right: bool = False, answer: str = "") -> Mapping[str, Any]:
    """A reply of the stage `coach`, with the answer that the learner should find."""
    return {"reply": text, "answer": answer, "acknowledges_right_answer": right}


class OnePassage:
    """A retriever that always finds the same passage and records its queries."""

    def __init__(self, found: Passage = LESSON) -> None:
        self.asked: list[tuple[tuple[str, ...], int]] = []
        self._found = found

    async def retrieve(self, queries: Any, *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        self.asked.append((tuple(queries), k))
        return Retrieval(found=(Found(passage=self._found, score=1.0),))


@asynccontextmanager
async def coaching(
    folder: Path,
    model: ScriptedModel,
    *assignments: str,
    level: int = 1,
    mode: Any = "coach",
    history: History | None = None,
    scope: Scope | None = None,
    retriever: OnePassage | None = None,
    teacher: FakeAnswerer | None = None,
) -> AsyncIterator[ChatSession]:
    """A conversation in a given mode, with a coach whose model is scripted."""

    async with open_language_model(settings_in(folder, *assignments), model=model) as opened:
        yield ChatSession(
            model=opened,
            answerer=FakeAnswerer(),
            history=history or History(),
            socratic=Socratic(mode=mode, level=level),
            teacher=teacher or FakeAnswerer(text=EXPLAINED),
            coach=Coach(model=opened, retriever=retriever or OnePassage(), scope=scope),
        )
