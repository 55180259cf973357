"""Shows an answer in progress: nested messages of Gradio's Chatbot, one for each step of the loop.

Drafts are never shown: a visitor sees only text that has passed the checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from time import monotonic
from typing import Any, TypeAlias

from ...agent.engine import Step
from ...agent.state import Round
from ...chat.coach.coach import CoachReply
from ...chat.session import GroundedReply, Turn
from ...wording import counted

Message: TypeAlias = dict[str, Any]

STOPPED = "Stopped; this question is not remembered."


@dataclass(kw_only=True)
class Trail:
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
