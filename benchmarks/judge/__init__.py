"""A language model's verdict on an answer: reported beside EM and F1, never instead of them."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from meta_agent_rag.agent.prompting import Line, ReplyModel
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import ModelError
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.messages import Message, Sampling
from meta_agent_rag.prompts import prompt

NAME = "judge"


class _JudgeVerdict(ReplyModel):
    reason: Line
    verdict: Literal["correct", "incorrect"]


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Judges with the settings of the run, at temperature 0, regardless of what a row of the table varies.

    A question's answer is judged once, even if several rows gave it.
    """

    model: LanguageModel
    _verdicts: dict[tuple[str, str], "asyncio.Task[float | None]"] = field(default_factory=dict)

    async def verdict(self, question: Question, prediction: str) -> float | None:
        """1.0 if the prediction says the same as a gold answer, else 0.0; `None` if the call failed.

        Stage and prompt `judge` are pinned in the run's configuration. Raises only what stops the run.
        """
        key = question.id, prediction
        if key not in self._verdicts:
            self._verdicts[key] = asyncio.ensure_future(self._judged(question, prediction))
        return await asyncio.shield(self._verdicts[key])

    async def _judged(self, question: Question, prediction: str) -> float | None:
        folder = self.model.settings.prompts_dir
        task = prompt("judge", folder).text(
            question=question.text, golds=" | ".join(question.golds), prediction=prediction
        )
        asked = (Message(role="system", content=prompt("system", folder).text()), Message(role="user", content=task))
        session = self.model.session(question.id, method=NAME)
        try:
            found = await session.ainvoke(NAME, asked, _JudgeVerdict, sampling=Sampling(temperature=0.0))
        except ModelError as error:
            if error.stops_run:
                raise
            return None
        return float(found.verdict == "correct")
