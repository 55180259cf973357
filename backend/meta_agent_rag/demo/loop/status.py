"""The status line, and the texts for a page without a run."""

from collections.abc import Sequence
from html import escape

from ...llm.providers import EMBEDDED
from ...wording import counted
from ..words import at_work, spoken
from ..workbench import Workbench
from .visit import LoopVisit
from .walk import Sight

STEPS = (
    ("Cognition", "A draft is written, quoting the evidence first."),
    ("Monitoring", "Single facts are looked up and combined in code; draft, derivation and other routes vote."),
    (
        "Evaluating",
        "The deficit is named: the draft lacks a fact, background knowledge, fidelity to the passages, or sound logic.",
    ),
    ("Planning", "Each deficit has its own repair: searches, and a directive for the next draft."),
    ("Remediation", "New evidence is added, the draft is rewritten, and the monitor checks it again."),
)


def introduction() -> str:
    """The introduction for a first-time visitor."""
    steps = "".join(f"<li><strong>{escape(name)}</strong><span>{escape(words)}</span></li>" for name, words in STEPS)
    claim = "An ordinary system stops at its first draft. This one asks whether it is right."
    begin = (
        "Choose a question and press <strong>Run</strong>, or take one node at a time with <strong>Next step</strong> "
        "or the right arrow key."
    )
    return f'<div class="m-intro"><h3>{claim}</h3><ol>{steps}</ol><p>{begin}</p></div>'


def status(visit: LoopVisit) -> str:
    """The line as HTML; screen readers announce changes."""
    kind, words = _status(visit)
    return f'<p class="m-status m-is-{kind}" role="status" aria-live="polite">{escape(words)}</p>'


def problem(words: str) -> str:
    """The line for a fault before the start."""
    return f'<p class="m-status m-is-failed" role="alert">{escape(words)}</p>'


def fetching(name: str) -> str:
    """The status line while a set of questions is being fetched."""
    words = f"Fetching the questions of {escape(name)} from the Hugging Face hub; the first time takes longest."
    return f'<p class="m-status m-is-working" role="status">{words}</p>'


def _status(visit: LoopVisit) -> tuple[str, str]:
    if visit.fault:
        return "failed", visit.fault
    sights = visit.sights
    if not sights:
        if visit.under_way:
            return "working", "Opening the model and the evidence; the first time takes longest."
        stopped = visit.setup is not None
        return ("stopped", "Stopped before it started.") if stopped else ("ready", "Ready.")
    if len(sights) > 1:
        return _of_two(sights)
    return sights[0].status, line(sights[0])


def _of_two(sights: Sequence[Sight]) -> tuple[str, str]:
    kinds = [sight.status for sight in sights]
    order = ("failed", "working", "stopped", "paused", "done")
    worst = next((kind for kind in order if kind in kinds), "ready")
    both = " ".join(f"{name}: {line(sight)}" for name, sight in zip("AB", sights, strict=False))
    return worst, both


def line(sight: Sight) -> str:
    """The current activity of one walk, in a sentence."""
    node = spoken(sight.node or "")
    if sight.status == "working":
        doubted = sight.monitored is not None and not sight.monitored.satisfied
        if doubted:
            return "Evaluating: the critic looks for faults."
        plan = sight.plan
        return f"{at_work(sight.node, repaired=plan.deficit if plan is not None else '')}."
    words = {
        "ready": "Ready.",
        "paused": f"Paused; the next step is “{node}”.",
        "stopped": f"Stopped in “{node}”; Run or Next step continues from there." if node else "Stopped.",
        "failed": sight.fault,
        "done": f"Done in {sight.seconds:.1f} s: {_repairs(len(sight.rounds) - 1)}.",
    }
    return words[sight.status]


def _repairs(number: int) -> str:
    return f"{counted(number, 'repair')} made" if number > 0 else "the first draft was kept"


EMBEDDED_SECONDS_A_CALL = 10.0
"""Of SmolLM2-135M on 2 cores, used until something is measured here: the README's recorded run, 32 s for 3.1 calls."""
_CALLS_OF_A_DRAFT = 2
_CALLS_OF_A_REPAIR = 3


def expected_wait(workbench: Workbench, provider: str) -> str:
    """The expected wait in a sentence; empty for a provider that answers within seconds."""
    if provider != EMBEDDED:
        return ""
    a_call = workbench.seconds_a_call(provider) or EMBEDDED_SECONDS_A_CALL
    return (
        f"The model on this machine takes about {a_call:.0f} s per call: expect {_CALLS_OF_A_DRAFT * a_call:.0f} s "
        f"if the first draft is kept, and {_CALLS_OF_A_REPAIR * a_call:.0f} s for every repair."
    )


def spending_cap(workbench: Workbench, provider: str) -> str:
    """The visitor's spending cap in a sentence; empty if calls cost nothing."""
    if provider in {EMBEDDED, ""}:
        return ""
    if workbench.is_capped(provider):
        return f"Your calls stop before they cost more than ${workbench.settings.demo_visitor_usd:g}."
    return "The price of this model is unknown, so no spending cap can be enforced."
