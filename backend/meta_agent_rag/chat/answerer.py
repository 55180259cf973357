"""Answers questions of a conversation over a corpus: the loop, then every check of `agent.grounded`."""

from dataclasses import dataclass, replace

from ..agent.context import Task
from ..agent.engine import Engine, OnStep
from ..agent.grounded import Checks, GroundedAnswer, checked
from ..llm.messages import OnText
from ..prompts import prompt
from ..retrieval.hybrid import Retriever
from ..retrieval.limited import limited
from .conversation import TurnReply


@dataclass(frozen=True, kw_only=True)
class GroundedReply(TurnReply):
    """A reply with the grounded answer behind it."""

    grounded: GroundedAnswer


@dataclass(frozen=True, kw_only=True)
class GroundedAnswerer:
    """The answerer of a conversation over one corpus; `on_step` is called as each node of the graph starts.

    `on_text` receives drafts while they are written, unchecked. `manner` tells the writer how to write.
    """

    engine: Engine
    retriever: Retriever
    checks: Checks
    on_step: OnStep | None = None
    on_text: OnText | None = None
    manner: str = ""

    def as_teacher(self) -> "GroundedAnswerer":
        """The same companion, explaining to a learner in simple terms."""
        return replace(self, manner=prompt("teacher", self.engine.settings.prompts_dir).text())

    async def __call__(
        self, question: str, standalone: str, *, before: str = "", documents: frozenset[str] = frozenset()
    ) -> GroundedReply:
        """The answer to a user's words, retrieved and judged by their standalone form; see `Answerer`."""
        task = Task(
            question=standalone,
            asked=question,
            conversation=before,
            manner=self.manner,
            retriever=limited(self.retriever, documents),
            grounded=True,
            method="chat",
            on_text=self.on_text,
        )
        answer = await self.engine.run(task, on_step=self.on_step)
        grounded = await checked(self.engine, answer, self.checks)
        return GroundedReply(text=grounded.text, short_answer=grounded.short_answer, grounded=grounded)
