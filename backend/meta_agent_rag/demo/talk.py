"""Shows an answer in progress: nested messages of Gradio's Chatbot, one for each step of the loop.

Drafts are never shown: a visitor sees only text that has passed the checks.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import PurePath
from time import monotonic
from typing import Any, Protocol, TypeAlias
from uuid import uuid4

from ..agent.engine import Step
from ..agent.state import Round
from ..chat.coach.coach import CoachReply, Outcome
from ..chat.coach.levels import Socratic, levels
from ..chat.coach.words import length
from ..chat.history import HINT, History
from ..chat.phrases import reply_phrase
from ..chat.session import ChatSession, GroundedReply, Turn
from ..chat.transcript import source_lines
from ..errors import MetaRagError
from ..ingestion.sources import FileOutcome, IngestProgress, IngestReport
from ..wording import counted
from .run_cards import quiet
from .stepping import unexpected
from .streams import Finished, Streams, StreamStopped, watched

Message: TypeAlias = dict[str, Any]

STOPPED = "Stopped; this question is not remembered."


@dataclass(kw_only=True)
class ProgressMessages:
    """The messages of one question: a parent with one child per step, the current one pending."""

    id: str
    parent: Message = field(init=False)
    steps: list[Message] = field(default_factory=list)
    began: float = field(default_factory=monotonic)
    _since: float = field(default_factory=monotonic)
    _rounds: int = 0

    def __post_init__(self) -> None:
        self.parent = _thought("Reading the question", id_=self.id)

    @property
    def messages(self) -> list[Message]:
        """All messages, in order."""
        return [self.parent, *self.steps]

    def begin(self, step: Step) -> None:
        """A node of the graph starts; the previous one is done."""
        self._end_step(step.rounds)
        self.parent["metadata"]["title"] = "Searching the documents"
        title = step.words
        self.steps.append(_thought(title, id_=f"{self.id}.{len(self.steps)}", parent=self.id))

    def end(self, title: str, rounds: Sequence[Round] = ()) -> None:
        """Complete all steps and close the parent under this title."""
        self._end_step(rounds)
        self.parent["metadata"].update(title=title, status="done", duration=round(monotonic() - self.began, 1))

    def _end_step(self, rounds: Sequence[Round]) -> None:
        new = rounds[self._rounds :]
        self._rounds = len(rounds)
        if self.steps:
            last = self.steps[-1]
            last["metadata"].update(status="done", duration=round(monotonic() - self._since, 1))
            last["content"] = assistant_message(" ".join(map(judged, new)))["content"]
        self._since = monotonic()


def judged(round_: Round) -> str:
    """The verdict of monitor and critic on a draft, without its text."""
    passages = f"{counted(len(round_.packing.packed_ids), 'passage')} read."
    signals = round_.signals
    cosine = "" if signals is None or signals.similarity is None else f" (cosine {signals.similarity:.2f})"
    verdict = f"The monitor was {'satisfied' if round_.satisfied else 'not satisfied'}{cosine}."
    diagnosis = round_.diagnosis
    found = "" if diagnosis is None else f" Diagnosis: {diagnosis.deficit.replace('_', ' ')}."
    return f"{passages} {verdict}{found}"


def rounds_of(turn: Turn) -> Sequence[Round]:
    """The rounds of an answer; empty if no document was searched."""
    return turn.reply.grounded.answer.rounds if isinstance(turn.reply, GroundedReply) else ()


def summary(turn: Turn) -> str:
    """A one-line summary of how an answer was produced."""
    if isinstance(turn.reply, CoachReply):
        return "Turned away" if turn.reply.trace.outcome == "out_of_scope" else "Asked back"
    if not isinstance(turn.reply, GroundedReply):
        return "Answered without searching the documents"
    answer = turn.reply.grounded
    rounds = counted(len(answer.answer.rounds), "round")
    if answer.refused is not None or answer.confidence is None:
        return f"Not answered, {rounds}"
    return f"Checked: confidence {answer.confidence.level} ({answer.confidence.score:.2f}), {rounds}"


def stopped(shown: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages of a chat whose last question was stopped, with nothing pending and a note."""
    return [*map(_ended, shown), assistant_message(STOPPED)]


def assistant_message(text: str) -> Message:
    """A message of the assistant. The Chatbot renders texts as HTML, so all are escaped here."""
    return {"role": "assistant", "content": escape(text, quote=False)}


def visitor_message(text: str) -> Message:
    """A message of the visitor."""
    return {"role": "user", "content": escape(text, quote=False)}


def failure_message(fault: object) -> Message:
    """The reason why there is no answer."""
    return {**assistant_message(str(fault)), "metadata": {"title": "This could not be answered"}}


def _ended(message: Mapping[str, Any]) -> Message:
    metadata = message.get("metadata") or {}
    if metadata.get("status") != "pending":
        return dict(message)
    return {**message, "metadata": {**metadata, "status": "done"}}


def _thought(title: str, *, id_: str, parent: str | None = None) -> Message:
    metadata = {"title": title, "id": id_, "status": "pending"}
    return {
        "role": "assistant",
        "content": "",
        "metadata": metadata if parent is None else {**metadata, "parent_id": parent},
    }


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ChatUpdate:
    """The state of a chat at a moment: the `messages` since and including the question.

    `turn` is set once there is an answer; `history` is the remembered conversation, set only with the last moment, and
    not if it was `given_up`.
    """

    messages: list[Message]
    turn: Turn | None = None
    notes: tuple[str, ...] = ()
    history: History | None = None
    given_up: bool = False

    @property
    def is_last(self) -> bool:
        """Is this the final moment?"""
        return self.given_up or self.history is not None


class Opening(Protocol):
    """Opens a visitor's conversation with the resources to answer in it."""

    async def __call__(self, history: History, tell: Callable[[Step], None]) -> ChatSession:
        """The conversation in its current state; `tell` is called with the loop's steps. Raises a `MetaRagError`."""


async def stoppable_moments(
    streams: Streams, visitor: str, opening: Opening, message: str, history: History
) -> AsyncGenerator[ChatUpdate, None]:
    """The `moments` after a visitor's message, until they are stopped or dropped."""
    last = ChatUpdate(messages=[visitor_message(message)])
    async for moment in streams.run(visitor, moments(opening, message, history)):
        if isinstance(moment, StreamStopped):
            yield replace(last, messages=stopped(last.messages), history=None, given_up=True)
        else:
            last = moment
            yield moment


async def moments(opening: Opening, message: str, history: History) -> AsyncGenerator[ChatUpdate, None]:
    """The events after a message, as they happen. Closing the stream stops the work; nothing is then remembered."""
    trail = ProgressMessages(id=uuid4().hex)
    question = visitor_message(message)
    yield ChatUpdate(messages=[question, *trail.messages])
    try:
        async for event in watched(partial(_replied, opening, message, history)):
            if isinstance(event, Finished):
                conversation, turn = event.result
            else:
                trail.begin(event)
                yield ChatUpdate(messages=[question, *trail.messages])
        trail.end(summary(turn), rounds_of(turn))
        messages = [question, *trail.messages, assistant_message(turn.reply.text.strip() or turn.reply.short_answer)]
        yield ChatUpdate(messages=messages, turn=turn, notes=turn.notes)
        notes = await conversation.settle()
        yield ChatUpdate(messages=messages, turn=turn, notes=(*turn.notes, *notes), history=conversation.history)
    except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
        trail.end("Not answered")
        if not isinstance(fault, MetaRagError):
            _LOG.exception("A message could not be answered.")
            fault = MetaRagError(unexpected(fault))
        yield ChatUpdate(messages=[question, *trail.messages, failure_message(fault)], given_up=True)


async def _replied(
    opening: Opening, message: str, history: History, tell: Callable[[Step], None]
) -> tuple[ChatSession, Turn]:
    conversation = await opening(history, tell)
    return conversation, await conversation.reply(message)


_TAKEN: Mapping[str, str] = {"added": "added", "replaced": "replaced", "moved": "moved", "unchanged": "known already"}


def sources(turn: Turn | None, notes: Sequence[str] = ()) -> str:
    """Confidence and citations of an answer, or why there are none."""
    notes_html = "".join(map(quiet, notes))
    if turn is None or not isinstance(turn.reply, GroundedReply):
        return notes_html or quiet("The sources of an answer appear here.")
    answer = turn.reply.grounded
    if answer.refused is not None:
        return f"{quiet('No citations: the documents do not support an answer.')}{notes_html}"
    items = "".join(_source(*source_lines(citation)) for citation in answer.citations)
    sure = ""
    if answer.confidence is not None:
        said = f"Confidence {answer.confidence.level}, {answer.confidence.score:.2f} of 1"
        sure = meter(said, answer.confidence.score)
    return f'{sure}<ol class="m-sources">{items}</ol>{notes_html}'


def meter(label: str, share: float, kind: str = "") -> str:
    """A bar with a label; `share` is 0..1."""
    width = 100 * min(1.0, max(0.0, share))
    return (
        f'<div class="m-meter {kind}"><span>{escape(label)}</span>'
        f'<div role="img" aria-label="{escape(label)}"><span style="width:{width:.0f}%"></span></div></div>'
    )


def reading(progress: IngestProgress) -> str:
    """The progress of an upload."""
    files = f"Reading file {min(progress.files + 1, progress.of_files)} of {progress.of_files}"
    passages = (
        f", {progress.passages} of {counted(progress.of_passages, 'passage')} encoded" if progress.of_passages else ""
    )
    return f'<p role="status">{files}{passages}.</p>'


def taken(report: IngestReport) -> str:
    """The result for each file of an upload."""
    lines = "".join(f"<li>{_fate(outcome)}</li>" for outcome in report.outcomes)
    return f'<ul class="m-files" role="status">{lines}</ul>'


def kept(files: Sequence[str]) -> str:
    """The searchable files after an upload was stopped or a conversation restarted."""
    names = ", ".join(f"<strong>{escape(name)}</strong>" for name in files)
    return f'<p class="m-note" role="status">Your documents: {names or "none"}.</p>'


def _fate(outcome: FileOutcome) -> str:
    name = f"<strong>{escape(PurePath(outcome.source).name)}</strong>"
    reason = _by_name(outcome.reason or "")
    if outcome.status not in _TAKEN:
        return f'{name}: <span class="m-refused">rejected</span>, {escape(reason)}'
    passages = f", {counted(outcome.passages, 'passage')}" if outcome.passages else ""
    return f"{name}: {_TAKEN[outcome.status]}{passages}{escape(f' ({reason})' if reason else '')}"


def _by_name(reason: str) -> str:
    """A reason in which local files are identified only by name."""
    words = (PurePath(word.strip("'")).name if word.startswith("'/") else word for word in reason.split(" "))
    return " ".join(words)


def _source(place: str, snippet: str) -> str:
    return f"<li><strong>{escape(place)}</strong><blockquote>{escape(snippet)}</blockquote></li>"


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
