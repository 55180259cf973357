"""A scripted conversation; shared by the tests of the package `chat`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from meta_agent_rag.chat.history import Exchange, History, TurnReply
from meta_agent_rag.chat.session import Answerer, ChatSession, Turn
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import settings_in

FIRST = "Where was Mira Holt born?"


def exchange(turn: int, answer: str = "In Oslo.") -> Exchange:
    return Exchange(question=f"Question {turn}?", answer=answer, standalone=f"Standalone {turn}?", turn=turn)


def history_of(*answers: str, summary: str = "") -> History:
    exchanges = tuple(exchange(turn, answer) for turn, answer in enumerate(answers, 1))
    return History(summary=summary, exchanges=exchanges, turns=len(exchanges))


@dataclass
class FakeAnswerer:
    """Always gives the same answer and records its questions."""

    text: str = "She was born in Oslo [1]."
    fault: BaseException | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    async def __call__(
        self, question: str, standalone: str, *, before: str = "", documents: frozenset[str] = frozenset()
    ) -> TurnReply:
        self.asked.append((question, standalone))
        self.before.append(before)
        if self.fault is not None:
            raise self.fault
        return TurnReply(text=self.text, short_answer="Oslo")


def means(standalone: str, intent: str = "question", *, gives_up: bool = False) -> dict[str, object]:
    """A reply of the stage that interprets a message."""
    return {"intent": intent, "standalone": standalone, "gives_up": gives_up}


SCRIPT: Mapping[str, Scripted] = {"summarize": "They spoke about Mira Holt.", "rewrite_query": means("")}
"""A summary, and every message a question that stands alone."""


@asynccontextmanager
async def conversation(
    folder: Path,
    model: ScriptedModel,
    *assignments: str,
    answerer: Answerer | None = None,
    history: History | None = None,
) -> AsyncIterator[ChatSession]:
    """A conversation that is not stored."""
    async with open_language_model(settings_in(folder, *assignments), model=model) as opened:
        yield ChatSession(model=opened, answerer=answerer or FakeAnswerer(), history=history or History())


async def say(talk: ChatSession, message: str) -> Turn:
    """A whole turn, with its compaction."""
    turn = await talk.reply(message)
    return replace(turn, notes=(*turn.notes, *await talk.settle()))
