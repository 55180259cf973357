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
from meta_agent_rag.agent.prompting import ReplyModel, Short
from meta_agent_rag.prompts import phrase
from meta_agent_rag.text.normalise import normalised

from .inquiry import Inquiry, so_far
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
        written = "\n".join(settled)
        reply = await inquiry.ask_or_note(
            "a follow-up question",
            "step",
            "self_ask",
            _FollowUpReply,
            inquiry.shown(written),
            follow_ups=so_far(written),
        )
        if reply is None or not reply.needed:
            return await inquiry.concluded(settled, "no_follow_up")
        question = reply.follow_up.strip()
        if normalised(question) in {"", *asked}:
            return await inquiry.concluded(settled, "no_progress")
        asked.add(normalised(question))
        await inquiry.search(question)
        found = await inquiry.ask_or_note(
            "an intermediate answer", "step", "follow_up", _Intermediate, inquiry.packed(), follow_up=question
        )
        answered = phrase("not_found") if found is None else found.intermediate_answer
        settled.append(f"Follow-up question: {question}\nIntermediate answer: {answered}")
    return await inquiry.concluded(settled, "max_steps")


METHOD = Method(
    name="self_ask",
    citation="Press et al.: Measuring and Narrowing the Compositionality Gap in Language Models, Findings of EMNLP "
    "2023, arXiv:2210.03350",
    about="at most 4 follow-up questions, each looked up and answered, then the answer",
    departures="a call over the passages gives the intermediate answers, instead of a search engine",
    answer=answer,
)
