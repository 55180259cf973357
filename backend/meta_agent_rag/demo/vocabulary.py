"""The loop's names in words for a visitor."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..agent.state import NO_DEFICIT
from ..errors import MetaRagError
from ..grounding.confidence import is_doubtful
from ..text.normalise import normalised

if TYPE_CHECKING:
    from ..agent.derivation import Derivation
    from ..agent.routes import Ballot
    from ..agent.state import RepairPlan

STOP_REASONS: Mapping[str, str] = {
    "budget": "The cost limit or deadline left no room for the next call.",
    "satisfied": "The monitor accepts the draft.",
    "critic_satisfied": "The monitor raised a false alarm: the critic found nothing wrong with the draft.",
    "converged": "The last repair changed nothing, so another one would not help.",
    "oscillating": "The answer returned to an earlier one, so the loop would go in circles.",
    "max_rounds": "The maximum number of repairs was reached.",
    "upheld": "The repair saw both answers and kept the draft's; another one would see the same two.",
    "no_gain": "The last repair did not raise the probability of being correct, so another one would not pay off.",
    "cost_limit": "The next call could exceed the cost limit.",
    "deadline": "There was no time for another round.",
    "search_failed": "A follow-up search failed; the drafts so far are kept.",
    "write_failed": "The model could not write the next draft; the drafts so far are kept.",
    "no_evidence": "No evidence was found.",
    "not_in_evidence": "The evidence does not contain the answer.",
    "single_pass": "This method answers once and does not check its answer.",
}
ERROR_TYPES = {
    "incomplete_reasoning": "a step of the reasoning is missing",
    "answer_redundance": "it says more than was asked",
    "ambiguous_understanding": "the question was misunderstood",
}
STAGES = {"retrieve": "Retrieval", "write": "Cognition", "diagnose": "Monitoring, Evaluating", "answer": "best draft"}
"""The paper's names for what the nodes do; all others plan a repair and remedy the evidence."""
_AT_WORK = {
    "retrieve": "Retrieval: looking for evidence",
    "write": "Cognition: writing a draft from the evidence",
    "diagnose": "Monitoring: comparing the draft with other routes to an answer",
}
ANSWER_MODES = {
    "evidence": "only the evidence",
    "memory": "only the model's memory",
    "evidence_and_memory": "the evidence and the model's memory",
}


def spoken(name: str) -> str:
    """A name in the code as a person reads it.

    >>> spoken("insufficient_knowledge")
    'insufficient knowledge'
    """
    return name.replace("_", " ")


def ballot_note(ballot: "Ballot", support: float, derivation: "Derivation | None" = None) -> str:
    """The special status of a ballot, given the derivation that was known to the vote; empty for most."""
    if ballot.short_answer.strip() and not support:
        is_hop = derivation is not None and normalised(ballot.short_answer) in derivation.earlier_hops
        return f"not counted: {'it answers an earlier fact' if is_hop else 'the wrong kind of answer'}"
    return "compared in code, so it outranks the others" if ballot.outranks else ""


def repair(plan: "RepairPlan") -> str:
    """What a repair does; the directive is quoted only if the writer is given it."""
    if plan.repair == "conclude":
        return "Adopt the derived or elected answer, without a model call."
    if plan.repair == "look_up":
        source = "from the model's memory" if plan.answer_mode == "memory" else "over the passages"
        return f"Ask for the open fact again, {source}{', new ones included' if plan.queries else ''}."
    again = "Write again from the cited passages" if plan.repair == "reread" else "Write again"
    return f"{again}: “{plan.directive.strip()}”"


def stop_reason(reason: str, p_correct: float | None = None) -> str:
    """Why the loop or another method ended, in a sentence; `p_correct` (0..1) is that of the returned draft."""
    if reason == "satisfied" and is_doubtful(p_correct):
        return "No repair is left, so the best supported draft is returned, although it is probably wrong."
    return STOP_REASONS.get(reason, f"The method ended: {spoken(reason)}.")


def at_work(node: str | None, *, repaired: str = "", doubted: bool = False) -> str:
    """A node's activity; any node that is not one of the loop's own repairs the deficit of its name."""
    if doubted:
        return "Evaluating: the critic looks for faults in the draft"
    if node is None:
        return "Getting ready"
    if node == "write" and repaired:
        return f"Cognition: rewriting to repair the {spoken(repaired)}"
    return _AT_WORK.get(node, f"Planning: a repair for the {spoken(node)}")


def deficit(name: str) -> str:
    """A deficit as a heading."""
    return "No deficit: a false alarm" if name == NO_DEFICIT else spoken(name).capitalize()


def unexpected(fault: Exception) -> str:
    """A fault as told to a visitor; only those of this package say what to do."""
    if isinstance(fault, MetaRagError):
        return without_addresses(str(fault))
    return f"Something unexpected happened ({type(fault).__name__}); see the server's log."


_ADDRESS = re.compile(
    r"( at )?(?:\w+://[^\s'\"<>;,)]+|\b(?:[\w-]+\.)*[a-z][\w-]*:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)"
)


def without_addresses(words: str) -> str:
    """The words without addresses of servers, which are no visitor's business; the log has them.

    >>> without_addresses("DeepSeek at http://10.0.0.7:8000/v1 failed with 500: no route to gpu7.lan:9000.")
    'DeepSeek failed with 500: no route to a server.'
    """
    return _ADDRESS.sub(lambda match: "" if match[1] else "a server", words)
