"""How long a visitor has to expect an answer to take."""

from ...llm.providers import EMBEDDED
from ..workbench import Workbench

EMBEDDED_SECONDS_A_CALL = 10.0
"""Of SmolLM2-135M on 2 cores, before anything was measured here: the README's recorded run, 32 s for 3.1 calls."""
_CALLS_OF_A_DRAFT = 2
_CALLS_OF_A_REPAIR = 3


def expected_wait(workbench: Workbench, provider: str) -> str:
    """The wait in a sentence; empty for a provider that answers within seconds."""
    if provider != EMBEDDED:
        return ""
    a_call = workbench.seconds_a_call(provider) or EMBEDDED_SECONDS_A_CALL
    return (
        f"The model on this machine takes about {a_call:.0f} s a call: expect {_CALLS_OF_A_DRAFT * a_call:.0f} s "
        f"where the first draft stands, and {_CALLS_OF_A_REPAIR * a_call:.0f} s for every repair."
    )


def spending_cap(workbench: Workbench, provider: str) -> str:
    """What this visitor may spend, in a sentence; empty where calls cost nothing."""
    if provider in {EMBEDDED, ""}:
        return ""
    if workbench.is_capped(provider):
        return f"Your calls stop before they cost more than ${workbench.settings.demo_visitor_usd:g}."
    return "The price of this model is not known, so that no cap on what you spend can be kept."
