"""A scripted model that always explains at length, and the conversations with it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from meta_agent_rag.chat.coach.coach import Coach, CoachReply
from meta_agent_rag.chat.coach.hook import Hooks, Scope
from meta_agent_rag.chat.coach.levels import Socratic
from meta_agent_rag.chat.history import History
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.prompts import prompt
from meta_agent_rag.retrieval.hybrid import Retriever
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel

_REMEMBERED = 8


@cache
def data(name: str) -> Mapping[str, Any]:
    """The rows of a YAML file beside this one."""
    rows: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
    return rows


def explainer() -> ScriptedModel:
    """Explains on the first call for a reply, and usually on the second call as well."""
    drafts, regenerations = count(), count()

    def said(request: Request) -> dict[str, Any]:
        again = request.messages[-1].content.startswith(_begins_again())
        lines, place = (
            (data("replies")["regenerations"], next(regenerations))
            if again
            else (data("replies")["drafts"], next(drafts))
        )
        return {"reply": lines[place % len(lines)], "acknowledges_right_answer": False}

    return ScriptedModel({"coach": said})


def repeating(text: str) -> ScriptedModel:
    """A model that always gives the same reply."""
    return ScriptedModel({"coach": {"reply": text, "acknowledges_right_answer": False}})


@cache
def _begins_again() -> str:
    """The words with which the coach asks for a regeneration."""
    return prompt("coach_retry").sections["instruction"].partition("$")[0]


@asynccontextmanager
async def scripted(model: ScriptedModel, folder: Path) -> AsyncIterator[LanguageModel]:
    """The model interface over a scripted model."""
    settings = Settings.load(
        (), llm_provider="deepseek", deepseek_api_key="scripted", response_cache=False, marag_data_dir=folder
    )
    async with open_language_model(settings, model=model) as opened:
        yield opened


@dataclass(frozen=True, kw_only=True)
class Talk:
    """Conversations with a coach over the same passages, in which every message is answered."""

    model: LanguageModel
    retriever: Retriever
    hooks: Hooks
    scope: Scope | None = None

    async def held(
        self, messages: Sequence[str], level: int, *, begins_with: History | None = None
    ) -> list[CoachReply]:
        """The replies to the messages of one conversation, in order."""
        history, replies = begins_with or History(), []
        coach = Coach(model=self.model, retriever=self.retriever, hooks=self.hooks, scope=self.scope)
        for message in messages:
            reply = await coach(message, history=history, socratic=Socratic(mode="coach", level=level))
            replies.append(reply)
            if reply.remembered:
                longer = history.with_exchange(question=message, answer=reply.text, standalone=message, mode=reply.kind)
                history = History(exchanges=longer.exchanges[-_REMEMBERED:], turns=longer.turns)
        return replies


def asked_by_coach() -> History:
    """A conversation in which the coach has just asked a question."""
    question, answer = "Why does the shadow move?", "What turns, the Sun or the Earth?"
    return History().with_exchange(question=question, answer=answer, standalone=question, mode="coach")
