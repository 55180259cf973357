"""The tabs Chat and Coach: conversations about documents, whose answers are checked before they are shown.

Drafts are never shown: a visitor sees the steps of the loop, and only text that has passed the checks.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import PurePath
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from ...agent.engine import Step
from ...agent.grounded import Checks
from ...agent.state import Round
from ...chat.coach.coach import Coach, CoachReply, Outcome
from ...chat.coach.levels import Socratic, levels
from ...chat.coach.scope import TopicScope
from ...chat.coach.words import length
from ...chat.history import HINT, History
from ...chat.phrases import files_of, reply_phrase
from ...chat.session import ChatSession, DocumentsReply, GroundedAnswerer, Turn
from ...chat.transcript import source_lines
from ...errors import MetaRagError
from ...ingestion.sources import FileOutcome, IngestProgress, IngestReport
from ...retrieval.hybrid import Retriever
from ...shipped import shipped
from ...wording import counted
from ..cards import problem, quiet
from ..private_corpus import CORPUS, PrivateCorpus, corpora, subject_in
from ..vocabulary import spoken, unexpected
from .tab import Tab, Tell, Updates, uploaded_files, visitor_of

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)

Message: TypeAlias = dict[str, Any]
"""A message of Gradio's Chatbot."""
STOPPED = "Stopped; this question is not remembered."
_PRIVATE = "Your files are read on the demo's machine and removed after your visit."


@dataclass(kw_only=True)
class ProgressMessages:
    """The messages of one question: a parent with one child per step, the current one pending."""

    id: str = field(default_factory=lambda: uuid4().hex)
    messages: list[Message] = field(default_factory=list)
    _began: float = field(default_factory=monotonic)
    _since: float = field(default_factory=monotonic)
    _rounds: int = 0

    def __post_init__(self) -> None:
        self._add("Reading the question", id=self.id)

    def begin(self, step: Step) -> None:
        """A node of the graph starts; the previous one is done."""
        self._end_step(step.rounds)
        self.messages[0]["metadata"]["title"] = "Searching the documents"
        self._add(step.words, id=f"{self.id}.{len(self.messages)}", parent_id=self.id)

    def end(self, title: str = "", rounds: Sequence[Round] = ()) -> None:
        """Complete all steps, and close the parent under this title."""
        self._end_step(rounds)
        parent = self.messages[0]["metadata"]
        parent.update(title=title or parent["title"], status="done", duration=round(monotonic() - self._began, 1))

    def _add(self, title: str, **ids: str) -> None:
        metadata = {"title": title, "status": "pending", **ids}
        self.messages.append({"role": "assistant", "content": "", "metadata": metadata})

    def _end_step(self, rounds: Sequence[Round]) -> None:
        new, self._rounds = rounds[self._rounds :], len(rounds)
        if len(self.messages) > 1:
            last = self.messages[-1]
            last["metadata"].update(status="done", duration=round(monotonic() - self._since, 1))
            last["content"] = escape(" ".join(map(judged, new)), quote=False)
        self._since = monotonic()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a message is answered: for which visitor, from which documents, with which further inputs."""

    visitor: str
    corpus: str
    own: PrivateCorpus | None
    held: tuple[Any, ...] = ()


def judged(round_: Round) -> str:
    """The verdict of monitor and critic on a draft, without its text."""
    passages = f"{counted(len(round_.packing.packed_ids), 'passage')} read."
    signals = round_.signals
    cosine = "" if signals is None or signals.similarity is None else f" (cosine {signals.similarity:.2f})"
    verdict = f"The monitor was {'satisfied' if round_.satisfied else 'not satisfied'}{cosine}."
    found = "" if round_.diagnosis is None else f" Diagnosis: {spoken(round_.diagnosis.deficit)}."
    return f"{passages} {verdict}{found}"


def summary(turn: Turn) -> str:
    """A one-line summary of how an answer was produced."""
    if isinstance(turn.reply, CoachReply):
        return "Turned away" if turn.reply.trace.outcome == "out_of_scope" else "Asked back"
    if not isinstance(turn.reply, DocumentsReply):
        return "Answered without searching the documents"
    answer = turn.reply.grounded
    rounds = counted(len(answer.answer.rounds), "round")
    if answer.refused is not None or answer.confidence is None:
        return f"Not answered, {rounds}"
    return f"Checked: confidence {answer.confidence.level} ({answer.confidence.score:.2f}), {rounds}"


def said(role: str, text: str, **metadata: str) -> Message:
    """A message of the `user` or the `assistant`. The Chatbot renders texts as HTML, so all are escaped here."""
    return {"role": role, "content": escape(text, quote=False), **({"metadata": metadata} if metadata else {})}


async def replying(
    opening: Callable[[Callable[[Step], None]], Any],
    message: str,
    aside: Callable[[Turn, Sequence[str]], Updates],
    tell: Tell,
    shown: Sequence[Message] = (),
) -> None:
    """Answer a message in the session that `opening` opens, and tell of the steps, the answer, and what is remembered.

    The updates are the messages below those `shown` before, whether the tab is `idle` again and, at the end, the
    `history`: nothing is remembered of a message that failed or was stopped. `aside` shows a turn beside them.
    """
    trail, answer = ProgressMessages(), list[Message]()

    def show(*, idle: bool = False, **updates: Any) -> None:
        tell({"talk": [*shown, said("user", message), *trail.messages, *answer], "idle": idle, **updates})

    def step(new: Step) -> None:
        trail.begin(new)
        show()

    show()
    try:
        session: ChatSession = await opening(step)
        turn = await session.reply(message)
        grounded = turn.reply.grounded.answer.rounds if isinstance(turn.reply, DocumentsReply) else ()
        trail.end(summary(turn), grounded)
        answer.append(said("assistant", turn.reply.text.strip() or turn.reply.short_answer))
        show(**aside(turn, turn.notes))
        notes = await session.settle()
        show(idle=True, history=session.history, **aside(turn, (*turn.notes, *notes)))
    except asyncio.CancelledError:
        trail.end()
        answer.append(said("assistant", STOPPED))
        show(idle=True)
        raise
    except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
        trail.end("Not answered")
        if not isinstance(fault, MetaRagError):
            _LOG.exception("A message could not be answered.")
        answer.append(said("assistant", unexpected(fault), title="This could not be answered"))
        show(idle=True)


def _switches(*, idle: bool) -> Updates:
    """While a message is being answered, sending is disabled and stopping enabled."""
    import gradio as gr

    parts = {"send": idle, "stop": not idle, "message": idle}
    return {name: gr.update(interactive=enabled) for name, enabled in parts.items()}


class Conversation(Tab):
    """A conversation of each visitor; its history and the visitor's documents belong to the page."""

    name = ""
    held: tuple[str, ...] = ()
    """Further inputs of a message."""

    def lay_out_talk(self, label: str, placeholder: str, button: str, examples: Sequence[str]) -> None:
        """Create the conversation, the message and its buttons."""
        import gradio as gr

        parts, name = self.parts, self.name
        parts["history"] = gr.State(History())
        parts["talk"] = gr.Chatbot(
            label=label,
            elem_id=f"{name}-talk",
            height=460,
            render_markdown=False,
            buttons=["copy"],
            feedback_options=None,
            placeholder=placeholder,
        )
        parts["confetti"] = gr.HTML(elem_id=f"{name}-confetti")
        parts["message"] = gr.Textbox(
            label="Your words", elem_id=f"{name}-message", placeholder=f"{button} something", max_lines=4
        )
        with gr.Row():
            parts["send"] = gr.Button(button, elem_id=f"{name}-{button.lower()}", variant="primary", min_width=90)
            parts["stop"] = gr.Button("Stop", elem_id=f"{name}-stop", interactive=False, min_width=90)
            parts["reset"] = gr.Button("Reset", elem_id=f"{name}-reset", min_width=110)
        gr.Examples([[one] for one in examples], parts["message"], label="To start with")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        parts = self.parts
        asked = ("message", "talk", "history", "corpus", "private", *self.held)
        self.on([parts["message"].submit, parts["send"].click], self.asked, asked, repeated=True)
        self.on(parts["stop"].click, self.stopped)
        self.on([parts["reset"].click, parts["corpus"].input, parts["talk"].clear], self.reset, ["private"])

    async def asked(
        self, request: "gr.Request", message: str, shown: Sequence[Message], *rest: Any
    ) -> AsyncIterator[Updates]:
        """Handle one message: the steps as they happen, then the checked answer."""
        visitor = visitor_of(request)
        if self.activities.busy(visitor):  # a second click
            return
        if not message.strip():
            yield {"aside": quiet("The message is empty; write something.")}
            return
        history, corpus, own, *held = rest
        words = self.workbench.settings.coach_dir
        place = Place(visitor=visitor, corpus=corpus, own=own, held=tuple(held))
        with files_of(words):
            at_once = {"message": "", **self.aside(None, (), place.held)}
        yield at_once

        async def work(tell: Tell) -> None:
            with files_of(words):
                await replying(
                    lambda step: self.session(place, history, step),
                    message,
                    lambda turn, notes: self.aside(turn, notes, place.held),
                    tell,
                    shown,
                )

        async for updates in self.activities.run(visitor, work):
            idle = updates.pop("idle")
            yield {**updates, **_switches(idle=idle)}

    async def reset(self, request: "gr.Request", own: PrivateCorpus | None) -> Updates:
        """End the current work and forget the conversation; added documents are kept."""
        await self.activities.drop(visitor_of(request))
        with files_of(self.workbench.settings.coach_dir):
            return {**self.emptied(), **await self.idle(own)}

    def emptied(self) -> Updates:
        """A conversation that has not started."""
        return {"talk": [], "history": History(), **self.aside(None, ())}

    async def idle(self, own: PrivateCorpus | None) -> Updates:
        """Nothing is running, and these are the visitor's documents."""
        return _switches(idle=True)

    def aside(self, turn: Turn | None, notes: Sequence[str], held: Sequence[Any] = ()) -> Updates:
        """What is shown beside a turn, or before the first one."""
        return {"aside": sources(turn, notes)}

    async def session(self, place: Place, history: History, on_step: Callable[[Step], None]) -> ChatSession:
        """The visitor's conversation in its current state. Raises a `MetaRagError`."""
        engine, retriever = await self.workbench.engine(place.visitor), await self.retriever(place)
        checks = Checks.of(engine.settings, place.corpus)
        answerer = GroundedAnswerer(engine=engine, retriever=retriever, checks=checks, on_step=on_step)
        lesson = await self.lesson(answerer, place)
        return ChatSession(model=engine.model, answerer=answerer, history=history, **lesson)

    async def lesson(self, answerer: GroundedAnswerer, place: Place) -> dict[str, Any]:
        """What else the session needs."""
        return {}

    async def retriever(self, place: Place) -> Retriever:
        """The documents that are asked."""
        if place.corpus == CORPUS and place.own is not None:
            return place.own
        return await self.workbench.retriever(place.corpus)


class Chat(Conversation):
    """The tab Chat: the visitor's own documents, or an existing corpus."""

    name = "chat"

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        def forget(own: PrivateCorpus | None) -> None:
            if own is not None:
                own.remove()

        parts = self.parts
        parts["private"], parts["names"] = gr.State(None, delete_callback=forget), gr.State(())
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                hint = "Ask the documents. An answer appears once it has been checked against them."
                self.lay_out_talk("Conversation", hint, "Ask", _ASKED)
            with gr.Column(scale=2, min_width=300):
                known, first = corpora(self.workbench), self.workbench.corpus
                parts["corpus"] = gr.Dropdown(known, value=first, label="Documents to ask", elem_id="chat-corpus")
                label = "Your own: PDF, Word, HTML, Markdown"
                parts["upload"] = gr.File(label=label, file_count="multiple", elem_id="chat-upload", height=170)
                parts["files"] = gr.HTML(quiet(_PRIVATE), elem_id="chat-files")
                parts["discard"] = gr.Dropdown(
                    [], label="Remove one of your files", visible=False, elem_id="chat-discard"
                )
                parts["aside"] = gr.HTML(sources(None), elem_id="chat-sources")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        super().connect(page)
        self.on(self.parts["upload"].upload, self.added, ["upload", "private"])
        self.on(self.parts["discard"].input, self.discarded, ["discard", "private"])

    async def added(
        self, request: "gr.Request", uploads: Sequence[str] | None, own: PrivateCorpus | None
    ) -> AsyncIterator[Updates]:
        """Add the visitor's own files: the progress, then the result for each. Restarts the conversation."""
        async for updates in self.activities.run(visitor_of(request), partial(self._adding, uploads, own)):
            yield updates

    async def discarded(self, request: "gr.Request", name: str | None, own: PrivateCorpus | None) -> Updates:
        """Remove one of the visitor's files. Restarts the conversation."""
        await self.activities.drop(visitor_of(request))
        fault: Updates = {}
        try:
            if own is not None and name is not None:
                await own.discard(name)
        except Exception as error:  # noqa: BLE001  # the last handler: logs it and informs the visitor
            fault = _reported(error)
        return {**self.emptied(), **await self.idle(own), **fault}

    async def _adding(self, uploads: Sequence[str] | None, own: PrivateCorpus | None, tell: Tell) -> None:
        import gradio as gr

        upload = gr.update(value=None, interactive=False)
        tell({**self.emptied(), **_switches(idle=False), "files": quiet("Opening the files."), "upload": upload})
        try:
            paths, bench = uploaded_files(uploads), self.workbench
            own = own or PrivateCorpus.below(bench.uploads, bench.settings, await bench.encoder())
            tell({"private": own})
            report = await own.add(paths, lambda progress: tell({"files": reading(progress)}), take=True)
            tell({**await self.idle(own, chosen=True), "files": taken(report)})
        except asyncio.CancelledError:
            tell(await self.idle(own))
            raise
        except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
            tell({**await self.idle(own), **_reported(fault)})

    async def idle(self, own: PrivateCorpus | None, *, chosen: bool = False) -> Updates:
        """Nothing is running, and these are the visitor's documents; with `chosen`, they are selected."""
        import gradio as gr

        files = [] if own is None else await own.files()
        selected: dict[str, Any] = {} if files else {"value": self.workbench.corpus}
        if files and chosen:
            selected = {"value": CORPUS}
        return {
            **await super().idle(own),
            "upload": gr.update(value=None, interactive=True),
            "names": tuple(files),
            "files": kept(files) if files else quiet(_PRIVATE),
            "discard": gr.update(choices=files, value=None, visible=bool(files)),
            "corpus": gr.update(choices=corpora(self.workbench, files), **selected),
        }


def _reported(fault: Exception) -> Updates:
    if not isinstance(fault, MetaRagError):
        _LOG.exception("Files could not be read or removed.")
    return {"files": problem(unexpected(fault))}


class Teaching(Conversation):
    """The tab Coach: teaches a learner by questions about a course, by the rules of a level.

    A lesson may also be about the documents that the visitor has added in the tab Chat.
    """

    name = "coach"
    held = ("mode", "level")

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        parts = self.parts
        with files_of(self.workbench.settings.coach_dir), gr.Row():
            with gr.Column(scale=3, min_width=320):
                hint = "Ask about the course. The coach replies with a question, never with the answer."
                self.lay_out_talk("Lesson", hint, "Say", _SAID)
            with gr.Column(scale=2, min_width=300):
                parts["corpus"] = gr.Dropdown(
                    [_COURSE, *corpora(self.workbench)], value=_COURSE[1], label="Course", elem_id="coach-corpus"
                )
                modes = [("Coach: asks", "coach"), ("Teacher: explains", "teacher")]
                parts["mode"] = gr.Radio(modes, value="coach", label="Mode")
                low, high, label = min(levels()), max(levels()), "Level: how little the coach reveals"
                parts["level"] = gr.Slider(low, high, value=1, step=1, label=label, elem_id="coach-level")
                parts["rules"] = gr.HTML(rules(Socratic(mode="coach")), elem_id="coach-rules")
                parts["aside"] = gr.HTML(beside(None, 1), elem_id="coach-beside")

    def share(self, chat: Chat) -> None:
        """Offer the documents of the other tab, once both are laid out."""
        self.parts.update({name: chat.parts[name] for name in ("private", "names")})

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        super().connect(page)
        parts = self.parts
        self.on([parts["mode"].input, parts["level"].input], self.set_rules, self.held)
        self.on(parts["names"].change, self.offered, ["names"])

    def offered(self, _request: "gr.Request", files: Sequence[str]) -> Updates:
        """The courses, now that the visitor's files have changed; without any, the sample course is selected."""
        import gradio as gr

        selected: dict[str, Any] = {} if files else {"value": _COURSE[1]}
        return {"corpus": gr.update(choices=[_COURSE, *corpora(self.workbench, files)], **selected)}

    def set_rules(self, _request: "gr.Request", mode: Any, level: float) -> Updates:
        """Mode and level apply from the next message on."""
        import gradio as gr

        with files_of(self.workbench.settings.coach_dir):
            shown = rules(Socratic(mode=mode, level=int(level)))
        return {"rules": shown, "level": gr.update(interactive=mode == "coach")}

    def aside(self, turn: Turn | None, notes: Sequence[str], held: Sequence[Any] = ("coach", 1)) -> Updates:
        """The length of the reply and how it came about; confetti if the learner is right."""
        return {"aside": beside(turn, int(held[1]), notes), "confetti": celebration(turn)}

    async def lesson(self, answerer: GroundedAnswerer, place: Place) -> dict[str, Any]:
        """The mode and the level, and who teaches in each."""
        (mode, level), model, retriever = place.held, answerer.engine.model, answerer.retriever
        return {
            "socratic": Socratic(mode=mode, level=int(level)),
            "teacher": answerer.as_teacher(),
            "coach": Coach(model=model, retriever=retriever, scope=await self._scope(retriever, place)),
        }

    async def retriever(self, place: Place) -> Retriever:
        """The course, or other documents."""
        if place.corpus != _COURSE[1]:
            return await super().retriever(place)
        course: PrivateCorpus = await self.workbench.once("course", self._course)
        return course

    @asynccontextmanager
    async def _course(self) -> AsyncIterator[PrivateCorpus]:
        bench = self.workbench
        course = PrivateCorpus.below(bench.uploads, bench.settings, await bench.encoder())
        await course.add(sorted(shipped("course").glob("*.md")))
        yield course

    async def _scope(self, retriever: Retriever, place: Place) -> TopicScope:
        """The scope of the subject, read once for all visitors; for a visitor's own documents, read every time."""
        bench = self.workbench

        @asynccontextmanager
        async def opened() -> AsyncIterator[TopicScope]:
            subject, encoder = await subject_in(retriever), await bench.encoder()
            yield TopicScope(subject=subject, encoder=encoder, threshold=bench.settings.scope_threshold)

        if retriever is place.own:
            async with opened() as own:
                return own
        scope: TopicScope = await bench.once(("scope", place.corpus), opened)
        return scope


_COURSE = ("Sundials and seasons (sample course)", "sample course")
_SAID = ("Why does the shadow move over a sundial?", "The Earth turns, and the stick stands still.", "I don't know.")
_ASKED = (
    "Which engineer designed the Candlewright Bridge?",
    "How tall is Stag Skerry Light?",
    "Who wrote The Ninth Buoy?",
)


def sources(turn: Turn | None, notes: Sequence[str] = ()) -> str:
    """Confidence and citations of an answer, or why there are none."""
    notes_html = "".join(map(quiet, notes))
    if turn is None or not isinstance(turn.reply, DocumentsReply):
        return notes_html or quiet("The sources of an answer appear here.")
    answer = turn.reply.grounded
    if answer.refused is not None:
        return f"{quiet('No citations: the documents do not support an answer.')}{notes_html}"
    places = (source_lines(citation) for citation in answer.citations)
    items = "".join(
        f"<li><strong>{escape(place)}</strong><blockquote>{escape(snippet)}</blockquote></li>"
        for place, snippet in places
    )
    sure = ""
    if answer.confidence is not None:
        score = answer.confidence.score
        sure = meter(f"Confidence {answer.confidence.level}, {score:.2f} of 1", score)
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
    of = counted(progress.of_passages, "passage")
    passages = f", {progress.passages} of {of} encoded" if progress.of_passages else ""
    return f'<p role="status">{files}{passages}.</p>'


def taken(report: IngestReport) -> str:
    """The result for each file of an upload."""
    lines = "".join(f"<li>{_fate(outcome)}</li>" for outcome in report.outcomes)
    return f'<ul class="m-files" role="status">{lines}</ul>'


def _fate(outcome: FileOutcome) -> str:
    name = f"<strong>{escape(PurePath(outcome.source).name)}</strong>"
    # local files are identified only by name
    words = (outcome.reason or "").split(" ")
    reason = escape(" ".join(PurePath(word.strip("'")).name if word.startswith("'/") else word for word in words))
    if outcome.status not in {"added", "replaced", "moved", "unchanged"}:
        return f'{name}: <span class="m-refused">rejected</span>, {reason}'
    known = "known already" if outcome.status == "unchanged" else outcome.status
    passages = f", {counted(outcome.passages, 'passage')}" if outcome.passages else ""
    return f"{name}: {known}{passages}{f' ({reason})' if reason else ''}"


def kept(files: Sequence[str]) -> str:
    """The searchable files after an upload was stopped or a conversation restarted."""
    names = ", ".join(f"<strong>{escape(name)}</strong>" for name in files)
    return f'<p class="m-note" role="status">Your documents: {names or "none"}.</p>'


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


def beside(turn: Turn | None, level: int, notes: Sequence[str] = ()) -> str:
    """The length of the coach's reply against its limit, and how it came about; a teacher's reply has sources."""
    if turn is None:
        return quiet("The length of the coach's reply is measured here.")
    reply = turn.reply
    if not isinstance(reply, CoachReply):
        return sources(turn, notes)
    characters, allowed = length(reply.text), levels()[level]
    limit = allowed.hint_limit if reply.kind == HINT else allowed.limit
    label, kind = f"{characters} of {limit} characters", "" if characters <= limit else "m-over"
    return f"{'' if reply.trace.outcome == 'out_of_scope' else meter(label, characters / limit, kind)}{_details(reply)}"


_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


def celebration(turn: Turn | None) -> str:
    """Confetti and a message if the coach confirmed the learner's answer; otherwise empty."""
    if turn is None or not isinstance(turn.reply, CoachReply) or not turn.reply.acknowledged:
        return ""
    pieces = "".join(
        f'<i style="left:{(37 * piece) % 100}%;background:{_COLOURS[piece % len(_COLOURS)]};'
        f'animation-delay:{(piece * 53) % 700}ms"></i>'
        for piece in range(36)
    )
    # an id for each reply, so that the animation starts once
    confetti = f'<div class="m-confetti" id="confetti-{id(turn.reply)}" aria-hidden="true">{pieces}</div>'
    return f'<p class="m-found" role="status">{escape(reply_phrase("right_answer"))}</p>{confetti}'


def _details(reply: CoachReply) -> str:
    trace = reply.trace
    rows = [
        row
        for number, attempt in enumerate(trace.attempts, start=1)
        for row in (
            (f"Draft {number} ({length(attempt.text)} characters)", attempt.text or "none"),
            ("Reason", attempt.finding.violation or "It follows the rules."),
        )
    ]
    rows += [("Second call", trace.fault)] if trace.fault else []
    rows.append(("Shown", reply.text))
    for name, ruling in trace.rulings:
        rows.append((spoken(name), ruling.refusal or ruling.emergency or ruling.detail or "passed"))
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return (
        f'<details class="m-trace"><summary>Draft, reason and corrected reply</summary>'
        f"<p>{OUTCOMES[trace.outcome]}</p><dl>{shown}</dl></details>"
    )
