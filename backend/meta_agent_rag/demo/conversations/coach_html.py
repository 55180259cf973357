"""The panel beside a coaching conversation: its level's rules, and the length and history of the reply."""

from collections.abc import Mapping
from html import escape
from uuid import uuid4

from ...chat.coach.coach import CoachReply, Outcome
from ...chat.coach.levels import Socratic, levels
from ...chat.coach.words import length
from ...chat.history import HINT
from ...chat.phrases import reply_phrase
from ...chat.session import Turn
from ..runs.html import quiet
from .html import meter, sources

_PIECES = 36
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")

OUTCOMES: Mapping[Outcome, str] = {
    "accepted": "The first draft followed the rules and was shown.",
    "regenerated": "The first draft broke a rule; the second one followed them and was shown.",
    "shortened": "Neither draft followed the rules; the last question of one was shown.",
    "template": "Neither draft was usable; a question from the level's list was shown.",
    "cut": "The hint was too long and was cut.",
    "out_of_scope": "The message is not about the course; no model was called.",
}


def rules(socratic: Socratic) -> str:
    """The rules of a mode at a level."""
    if socratic.mode != "coach":
        return quiet("The teacher explains in simple terms; all checks of the chat apply.")
    level = levels()[socratic.level]
    return (
        f"<p><strong>Level {level.number}, {escape(level.name)}:</strong> at most {level.limit} characters, "
        f"and the last one is a question mark.</p>"
    )


def beside(turn: Turn | None, level: int) -> str:
    """The meter and the details of a reply; for a teacher's reply, its sources."""
    if turn is None:
        return quiet("The length of the coach's reply is measured here.")
    reply = turn.reply
    if not isinstance(reply, CoachReply):
        return sources(turn, turn.notes)
    allowed = levels()[level].hint_limit if reply.kind == HINT else levels()[level].limit
    if reply.trace.outcome == "out_of_scope":
        return _details(reply)
    return f"{measured(reply.text, allowed)}{_details(reply)}"


def measured(text: str, limit: int) -> str:
    """A text's length as a reader counts it, compared with the limit."""
    characters = length(text)
    kind = "" if characters <= limit else "m-over"
    return meter(f"{characters} of {limit} characters", characters / limit, kind)


def celebration(turn: Turn | None) -> str:
    """Confetti and a message if the coach confirmed the learner's answer; otherwise empty."""
    if turn is None or not isinstance(turn.reply, CoachReply) or not turn.reply.acknowledged:
        return ""
    pieces = "".join(
        f'<i style="left:{(37 * piece) % 100}%;background:{_COLOURS[piece % len(_COLOURS)]};'
        f'animation-delay:{(piece * 53) % 700}ms"></i>'
        for piece in range(_PIECES)
    )
    # a new id, so that the confetti animation restarts
    confetti = f'<div class="m-confetti" id="confetti-{uuid4().hex}" aria-hidden="true">{pieces}</div>'
    return f'<p class="m-found" role="status">{escape(reply_phrase("right_answer"))}</p>{confetti}'


def _details(reply: CoachReply) -> str:
    trace = reply.trace
    drafts = "".join(
        f"<dt>Draft {number} ({length(attempt.text)} characters)</dt><dd>{escape(attempt.text) or 'none'}</dd>"
        f"<dt>Reason</dt><dd>{escape(attempt.finding.violation) or 'It follows the rules.'}</dd>"
        for number, attempt in enumerate(trace.attempts, start=1)
    )
    rulings = "".join(
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>"
        f"{escape(ruling.refusal or ruling.emergency or ruling.detail or 'passed')}</dd>"
        for name, ruling in trace.rulings
    )
    fault = f"<dt>Second call</dt><dd>{escape(trace.fault)}</dd>" if trace.fault else ""
    shown = f"<dt>Shown</dt><dd>{escape(reply.text)}</dd>"
    return (
        f'<details class="m-trace"><summary>Draft, reason and corrected reply</summary>'
        f"<p>{OUTCOMES[trace.outcome]}</p><dl>{drafts}{fault}{shown}{rulings}</dl></details>"
    )
