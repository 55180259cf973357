"""A language model's verdict on an answer: reported beside EM and F1, never instead of them."""

from typing import Literal

from meta_agent_rag.agent.replies import Line, ReplyModel
from meta_agent_rag.errors import ModelError
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.exchange import Message
from meta_agent_rag.prompts import prompt

from .datasets import Question

NAME = "judge"


class _Verdict(ReplyModel):
    reason: Line
    verdict: Literal["correct", "incorrect"]


async def judged(model: LanguageModel, question: Question, prediction: str) -> float | None:
    """1.0 where the judge finds the prediction to say what a gold answer says, else 0.0.

    Stage and prompt `judge` are pinned in the run's configuration, and the reply is cached. `None` where its call
    failed; raises only what stops the run.
    """
    task = prompt("judge", model.settings.prompts_dir).text(
        question=question.text, golds=" | ".join(question.golds), prediction=prediction
    )
    system = prompt("system", model.settings.prompts_dir).text()
    session = model.session(question.id, method=NAME)
    try:
        verdict = await session.ainvoke(
            NAME, (Message(role="system", content=system), Message(role="user", content=task)), _Verdict
        )
    except ModelError as error:
        if error.stops_run:
            raise
        return None
    return float(verdict.verdict == "correct")
