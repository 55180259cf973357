"""Follow-up questions, each looked up and answered, before the question itself is.

The model asks a follow-up question; a search and a short intermediate answer resolve it; this repeats until
no follow-up is needed. The final answer is based on these answers. Nothing is retrieved for the
question itself.

Departures: instructions instead of worked examples; a call over the retrieved passages gives the intermediate
answer, whereas the paper takes it from a search engine; at most `FOLLOW_UPS` of them.
"""

from typing import Annotated

from pydantic import Field

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import ReplyModel, Short, messages
from meta_agent_rag.prompts import phrase
from meta_agent_rag.text.normalise import normalised

from .inquiry import Inquiry
from .method import Method, MethodTask

FOLLOW_UPS = 4


class _FollowUpReply(ReplyModel):
    needed: bool
    follow_up: Annotated[str, Field(json_schema_extra={"maxLength": 200})]


class _Intermediate(ReplyModel):
    intermediate_answer: Short


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Ask and answer follow-up questions, then conclude from them."""
    inquiry = Inquiry.of(engine, task)
    settled: list[str] = []
    asked: set[str] = set()
    for _ in range(FOLLOW_UPS):
        question = await _follow_up(inquiry, settled)
        if question is None or normalised(question) in {"", *asked}:
            return await inquiry.concluded(settled, "no_follow_up" if question is None else "no_progress")
        asked.add(normalised(question))
        await inquiry.search(question)
        settled.append(await _settled(inquiry, question))
    return await inquiry.concluded(settled, "max_steps")


async def _follow_up(inquiry: Inquiry, settled: list[str]) -> str | None:
    """The next follow-up question; `None` if none is needed, or none can be parsed."""
    so_far = "\n".join(settled)
    shown = so_far or phrase("nothing_yet")
    prompt = messages(
        inquiry.engine.settings, "self_ask", inquiry.task.question, inquiry.shown(so_far), follow_ups=shown
    )
    reply = await inquiry.unless_malformed(
        inquiry.session.ainvoke("step", prompt, _FollowUpReply), "a follow-up question"
    )
    return reply.follow_up.strip() if reply is not None and reply.needed else None


async def _settled(inquiry: Inquiry, question: str) -> str:
    """A follow-up question with its intermediate answer, as later prompts show it."""
    prompt = messages(inquiry.engine.settings, "follow_up", inquiry.task.question, inquiry.packed(), follow_up=question)
    call = inquiry.session.ainvoke("step", prompt, _Intermediate)
    reply = await inquiry.unless_malformed(call, "an intermediate answer")
    found = phrase("not_found") if reply is None else reply.intermediate_answer
    return f"Follow-up question: {question}\nIntermediate answer: {found}"


METHOD = Method(
    name="self_ask",
    citation="Press et al.: Measuring and Narrowing the Compositionality Gap in Language Models, Findings of EMNLP "
    "2023, arXiv:2210.03350",
    about="at most 4 follow-up questions, each looked up and answered, then the answer",
    departures="a call over the passages gives the intermediate answers, instead of a search engine",
    answer=answer,
)
