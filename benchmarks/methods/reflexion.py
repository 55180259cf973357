"""Trials with a memory: a failed trial is reflected on in words, which the next trial reads.

A trial is a chain of thought over the evidence of one retrieval. At most `TRIALS` trials, and at most
`MEMORY` reflections kept, as in the paper; the last trial's answer counts.

Departures: the paper's evaluator knows the gold answer on HotpotQA. No method here may see it, so the model
judges its own trial, which is harder. Instructions replace worked examples.
"""

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import Line, ReplyModel

from .chain_of_thought import ChainOfThought, chain
from .inquiry import Inquiry
from .method import Method, MethodTask

TRIALS = 3
MEMORY = 3


class _TrialVerdict(ReplyModel):
    reason: Line
    correct: bool


class _Reflection(ReplyModel):
    reflection: Line


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Try, judge, reflect, and try again."""
    inquiry = Inquiry.of(engine, task)
    packed = await inquiry.first_evidence()
    memory: list[str] = []
    trial = await chain(inquiry, packed)
    for _ in range(TRIALS - 1):
        shown = {"trial": trial.text, "short": trial.short_answer}
        verdict = await inquiry.ask_or_note(
            "a self-evaluation", "step", "self_evaluation", _TrialVerdict, packed, **shown
        )
        inquiry.draft(trial.text, trial.short_answer, packed, satisfied=verdict is not None and verdict.correct)
        if verdict is None:
            return inquiry.last("unreadable_step")
        if verdict.correct:
            return inquiry.last("satisfied")
        learnt = await inquiry.ask_or_note(
            "a reflection", "step", "reflection", _Reflection, packed, **shown, reason=verdict.reason
        )
        if learnt is None:
            return inquiry.last("unreadable_step")
        memory.append(learnt.reflection)
        kept = "\n".join(f"- {reflection}" for reflection in memory[-MEMORY:])
        again = await inquiry.ask_or_note("a trial", "baseline", "reflexion", ChainOfThought, packed, reflections=kept)
        if again is None:
            return inquiry.last("unreadable_step")
        trial = again
    return inquiry.answer(trial.text, trial.short_answer, packed, "max_trials")


METHOD = Method(
    name="reflexion",
    citation="Shinn et al.: Reflexion: Language Agents with Verbal Reinforcement Learning, NeurIPS 2023, "
    "arXiv:2303.11366",
    about="at most 3 chain-of-thought trials; after a trial judged wrong, a reflection is written for the next trial",
    departures="the model judges its own trials, whereas the paper's evaluator knows the gold answer",
    answer=answer,
)
