"""The monitor: an answer by another route, signals that compare it with the draft, and a policy over them."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..errors import ModelError, UnknownNameError
from ..grounding.abstention import is_abstention
from ..grounding.normalise import normalised
from ..grounding.quotes import verbatim_share
from ..settings import Settings
from .calibration import calibration_in_force, is_satisfied
from .context import Context
from .messages import messages
from .packing import Packed
from .replies import ReferenceReply
from .state import Draft, Reference, Signals

Policy: TypeAlias = Callable[[Signals, Settings], bool]


def paper_policy(signals: Signals, settings: Settings) -> bool:
    """Satisfied where the cosine reaches the threshold (MetaRAG, section 3.3).

    An abstaining draft never satisfies: two refusals agree perfectly and answer nothing.
    """
    if signals.abstained or signals.similarity is None:
        return False
    return signals.similarity >= settings.monitor_similarity_threshold


def calibrated_policy(signals: Signals, settings: Settings) -> bool:
    """Satisfied where the fitted chance of being right reaches the file's threshold (`agent/calibration.py`)."""
    return is_satisfied(signals, calibration_in_force(settings))


def _paper(_settings: Settings) -> Policy:
    return paper_policy


def _calibrated(settings: Settings) -> Policy:
    calibration_in_force(settings)  # a file that cannot serve is refused before the first call
    return calibrated_policy


POLICIES: Mapping[str, Callable[[Settings], Policy]] = {"paper": _paper, "calibrated": _calibrated}
"""By name, what gives a policy once it has checked that the settings hold what it needs."""


def policy(settings: Settings) -> Policy:
    """The policy that MONITOR_POLICY names; raises `UnknownNameError`, and `SettingsError` for what it lacks."""
    if settings.monitor_policy not in POLICIES:
        raise UnknownNameError("monitor policy", settings.monitor_policy, list(POLICIES))
    return POLICIES[settings.monitor_policy](settings)


async def reference_answer(context: Context, question: str, packed: Packed, *, round_: int) -> Reference:
    """An answer over the same evidence, step by step and without sight of the draft.

    A failed call is recorded as such; it never counts as agreement. Raises only what must stop the run.
    """
    prompt = messages(context.settings, "reference", question, packed)
    try:
        reply = await context.model.ainvoke("reference", prompt, ReferenceReply, round_=round_)
    except ModelError as error:
        if error.stops_run:
            raise
        return Reference(short_answer="", steps=(), packed_ids=packed.packing.packed_ids, error=str(error))
    return Reference(short_answer=reply.short_answer, steps=tuple(reply.steps), packed_ids=packed.packing.packed_ids)


async def measure(context: Context, draft: Draft, reference: Reference, packed: Packed) -> Signals:
    """The signals of a draft beside the reference answer."""
    comparable = reference.error is None and not is_abstention(reference.short_answer) and not draft.abstained
    agreement = normalised(draft.short_answer) == normalised(reference.short_answer) if comparable else None
    return Signals(
        similarity=await _similarity(context, draft, reference, equal=bool(agreement)) if comparable else None,
        agreement=agreement,
        verbatim=verbatim_share(draft.quotes, packed.texts),
        abstained=draft.abstained,
        evidence_passages=len(packed.texts),
    )


async def _similarity(context: Context, draft: Draft, reference: Reference, *, equal: bool) -> float:
    if equal:
        return 1.0  # equal texts have equal vectors: no need to encode them
    vectors = await context.monitor_encoder.passages([draft.short_answer, reference.short_answer])
    return float(vectors[0] @ vectors[1])
