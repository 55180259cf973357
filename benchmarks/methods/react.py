"""Thought, action and observation in turn: search, look up a string in what was found, or finish.

At most `STEPS` steps, the paper's limit for HotpotQA. It starts without any evidence.

Departures: an instruction instead of worked examples; `search` is the retriever that all methods share,
whereas the paper opens a Wikipedia page by name; `lookup` covers everything found so far; if the steps run
out, or the model repeats itself despite a notice, a final call gives the answer.
"""

from dataclasses import dataclass
from html import escape
from typing import Annotated

from pydantic import Field

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import Packed, ReplyModel
from meta_agent_rag.prompts import phrase
from meta_agent_rag.text.normalise import normalised
from meta_agent_rag.text.sentences import sentences

from .inquiry import Inquiry, so_far
from .method import Method, MethodTask

STEPS = 7
_ACTIONS = ("search", "lookup", "finish")


class _StepReply(ReplyModel):
    thought: Annotated[str, Field(json_schema_extra={"maxLength": 240})]
    action: Annotated[str, Field(json_schema_extra={"enum": list(_ACTIONS)})]
    argument: Annotated[str, Field(json_schema_extra={"maxLength": 120})]

    @property
    def act(self) -> tuple[str, str]:
        """Action and argument, normalised for comparison."""
        return self.action.strip().lower(), normalised(self.argument)


@dataclass(frozen=True, kw_only=True)
class _Step:
    reply: _StepReply
    observation: str

    def lines(self, number: int) -> str:
        """The step as later prompts show it."""
        thought, action, argument = (" ".join(part.split()) for part in vars(self.reply).values())
        did = f"{action}[{argument}]"
        return f"Thought {number}: {thought}\nAction {number}: {did}\nObservation {number}: {self.observation}"


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Act and observe until the model finishes with an answer; otherwise a final call gives it."""
    inquiry = Inquiry.of(engine, task)
    steps: list[_Step] = []
    while len(steps) < STEPS:
        trajectory = _trajectory(steps)
        written = "\n".join(trajectory)
        packed = inquiry.shown(written)
        reply = await inquiry.ask_or_note("a step", "step", "react", _StepReply, packed, trajectory=so_far(written))
        if reply is None:
            return await inquiry.concluded(trajectory, "unreadable_step")
        if reply.act[0] == "finish" and reply.act[1]:
            short = reply.argument.strip()
            return inquiry.answer(reply.thought.strip() or short, short, packed, "finished")
        observation = await _observed(inquiry, reply, steps, packed)
        if steps and steps[-1].observation == observation and steps[-1].reply.act == reply.act:
            return await inquiry.concluded(trajectory, "no_progress")
        steps.append(_Step(reply=reply, observation=observation))
    return await inquiry.concluded(_trajectory(steps), "max_steps")


def _trajectory(steps: list[_Step]) -> list[str]:
    return [step.lines(number) for number, step in enumerate(steps, start=1)]


async def _observed(inquiry: Inquiry, reply: _StepReply, steps: list[_Step], packed: Packed | None) -> str:
    """Carry out a reply and return the observation; a fault of the model is an observation too."""
    action, argument = reply.act
    before = sum(step.reply.act == reply.act for step in steps)
    if action not in _ACTIONS:
        return phrase("unknown_action")
    if not argument:
        return phrase("action_without_argument")
    if action == "lookup":  # the first sentence that contains the string, then the second, and so on
        held = matches(reply.argument, packed)
        more = before < len(held)
        return f"(Result {before + 1} / {len(held)}) {held[before]}" if more else phrase("no_more_results")
    if before:
        return phrase("action_repeated")
    found = await inquiry.search(reply.argument.strip())
    if not found:
        return phrase("nothing_found")
    return f"{phrase('passages_added')} {'; '.join(one.passage.title or one.passage.id for one in found)}"


def matches(wanted: str, packed: Packed | None) -> list[str]:
    """The sentences of the packed evidence that contain a string, ignoring case, each marked with its passage."""
    plain = " ".join(wanted.lower().split())
    held: list[str] = []
    for number, text in enumerate(packed.texts if packed is not None else (), start=1):
        body = " ".join(text.partition("\n")[2].split())
        if plain in body.lower():
            fitting = [sentence.strip() for sentence in sentences(body) if plain in sentence.lower()]
            held += [f'<passage n="{number}">{escape(sentence, quote=False)}</passage>' for sentence in fitting]
    return held


METHOD = Method(
    name="react",
    citation="Yao et al.: ReAct: Synergizing Reasoning and Acting in Language Models, ICLR 2023, arXiv:2210.03629",
    about="alternating thought, action (search, lookup, finish) and observation, at most 7 steps",
    departures="searches passages instead of opening Wikipedia pages by name; lookup covers everything found so far; "
    "if the steps run out, a final call answers",
    answer=answer,
)
