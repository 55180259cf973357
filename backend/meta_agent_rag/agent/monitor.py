"""The monitor: an answer by another route, and a policy that judges the draft by the resulting signals."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..discovery import named
from ..errors import ModelError
from ..extras import require
from ..grounding.short_answer import without_disambiguation
from ..retrieval.encoders import Encoder
from ..retrieval.encoders.loading import HASH, load_encoder
from ..settings import Settings
from .calibration import calibration_of_votes
from .context import Context
from .prompting import Packed, SecondAnswerReply, task
from .routes.route import discover_routes
from .signals import short_answer_logprob, with_logprobs
from .state import SecondAnswer, Signals

VOTE = "vote"
Policy: TypeAlias = Callable[[Signals, Settings], bool]
"""Whether the monitor is satisfied with a draft that has these signals."""


def paper_policy(signals: Signals, settings: Settings) -> bool:
    """Satisfied if the cosine reaches the threshold (MetaRAG, section 3.3).

    An abstaining draft never satisfies: two refusals agree perfectly but answer nothing.
    """
    if signals.abstained or signals.similarity is None:
        return False
    return signals.similarity >= settings.monitor_similarity_threshold


def agreement_policy(signals: Signals, settings: Settings) -> bool:
    """Satisfied if draft and second answer give the same short answer, or one is a fuller form of the other.

    Two names of the same kind ("CBS", "NBC") have a high cosine, but whether two routes reach the same answer is not a
    matter of degree. An answer that abstains, or is of another kind than the question asks for, never satisfies.
    """
    return not signals.misses and signals.agreement is True


POLICIES: Mapping[str, Policy] = {VOTE: agreement_policy, "agreement": agreement_policy, "paper": paper_policy}
"""By name; with `vote` the vote itself decides (`voting.py`), and signals alone only allow a comparison."""


def policy(settings: Settings) -> Policy:
    """The policy that MONITOR_POLICY names; raises an `InputError` for an unknown name, route or calibration."""
    if settings.monitor_policy == VOTE:
        known = discover_routes(settings.routes_dir)
        for name in settings.routes or ():
            named("route", name, known)
        calibration_of_votes(settings)
    return named("monitor policy", settings.monitor_policy, POLICIES)


def monitor_encoder(settings: Settings) -> Encoder:
    """The encoder that MONITOR_ENCODER names.

    Raises `MissingExtraError` if it is not installed and the policy weighs its cosine; there is no substitute.
    """
    if settings.monitor_policy == "paper" and settings.monitor_encoder != HASH:
        require("encoders", "MONITOR_POLICY=paper")
    return load_encoder(settings, settings.monitor_encoder).encoder


async def second_answer(context: Context, question: str, packed: Packed, *, round_: int) -> SecondAnswer:
    """An answer over the same evidence, step by step and without seeing the draft.

    A failed call is recorded as such and never counts as agreement. Raises only errors that must stop the run.
    """
    prompt = task(context, "second_answer", question, packed)
    try:
        reply, said = await context.model.aparse(
            "second_answer", prompt, SecondAnswerReply, round_=round_, sampling=with_logprobs(context, "second_answer")
        )
    except ModelError as error:
        if error.stops_run:
            raise
        return SecondAnswer(short_answer="", steps=(), packed_ids=packed.packing.packed_ids, error=str(error))
    return SecondAnswer(
        short_answer=without_disambiguation(reply.short_answer, packed.titles),
        steps=tuple(reply.steps),
        packed_ids=packed.packing.packed_ids,
        logprob=short_answer_logprob(said, reply.short_answer),
    )
