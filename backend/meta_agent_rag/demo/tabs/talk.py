"""The tabs Chat and Coach: conversations about documents, whose answers are checked before they are shown.

Drafts are never shown: a visitor sees the steps of the loop, and only text that has passed the checks.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from ...agent.engine import Step
from ...agent.grounded import Checks
from ...chat.coach.coach import Coach, CoachReply, Outcome
from ...chat.coach.levels import Socratic, levels
from ...chat.coach.scope import TopicScope, subject_of
from ...chat.coach.words import length
from ...chat.history import HINT, History
from ...chat.phrases import files_of, reply_phrase
from ...chat.session import ChatSession, DocumentsReply, GroundedAnswerer, Turn
from ...chat.transcript import source_lines
from ...errors import MetaRagError
from ...ingestion.sources import IngestReport
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...shipped import shipped
from ...wording import counted
from ..cards import html, problem, quiet
from ..private_corpus import CORPUS, PrivateCorpus
from ..vocabulary import unexpected
from .tab import Tab, Tell, Updates, uploaded_files, visitor_of

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)

Message: TypeAlias = dict[str, Any]
"""A message of Gradio's Chatbot."""
STOPPED = "Stopped; this question is not remembered."
_PRIVATE = "Your files are read on the demo's machine and removed after your visit."


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
    state = {"title": "Reading the question", "status": "pending"}
    answer = list[Message]()

    def show(*, idle: bool = False, **updates: Any) -> None:
        talk = [*shown, said("user", message), said("assistant", "", **state), *answer]
        tell({"talk": talk, "idle": idle, **updates})

    def step(new: Step) -> None:
        state["title"] = new.words
        show()

    def end(how: str, text: str, **metadata: str) -> None:
        state.update(title=how, status="done")
        answer.append(said("assistant", text, **metadata))

    show()
    try:
        session: ChatSession = await opening(step)
        turn = await session.reply(message)
        end(summary(turn), turn.reply.text.strip() or turn.reply.short_answer)
        show(**aside(turn, turn.notes))
        notes = await session.settle()
        show(idle=True, history=session.history, **aside(turn, (*turn.notes, *notes)))
    except asyncio.CancelledError:
        end(state["title"], STOPPED)
        show(idle=True)
        raise
    except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
        end("Not answered", _told(fault), title="This could not be answered")
        show(idle=True)


def _told(fault: Exception) -> str:
    if not isinstance(fault, MetaRagError):
        _LOG.exception("A conversation failed.", exc_info=fault)
    return unexpected(fault)


def _switches(*, idle: bool) -> Updates:
    """While a message is being answered, sending is disabled and stopping enabled."""
    import gradio as gr

    parts = {"send": idle, "stop": not idle, "message": idle}
    return {name: gr.update(interactive=enabled) for name, enabled in parts.items()}


class Conversation(Tab):
    """A conversation of each visitor, whose history belongs to the page."""

    name = ""
    inputs: tuple[str, ...] = ()
    """What a message needs beside the history."""

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
        asked = ("message", "talk", "history", *self.inputs)
        self.on([parts["message"].submit, parts["send"].click], self.asked, asked, repeated=True)
        self.on(parts["stop"].click, self.stopped)
        self.on([parts["reset"].click, parts["corpus"].input, parts["talk"].clear], self.reset, self.inputs)

    async def asked(
        self, request: "gr.Request", message: str, shown: Sequence[Message], history: History, *inputs: Any
    ) -> AsyncIterator[Updates]:
        """Handle one message: the steps as they happen, then the checked answer."""
        visitor = visitor_of(request)
        if self.activities.busy(visitor):  # a second click
            return
        if not message.strip():
            yield {"aside": quiet("The message is empty; write something.")}
            return
        yield {"message": "", "aside": self.aside(None, (), *inputs)}

        async def work(tell: Tell) -> None:
            with files_of(self.workbench.settings.coach_dir):
                await replying(
                    lambda step: self.session(visitor, history, step, *inputs),
                    message,
                    lambda turn, notes: {"aside": self.aside(turn, notes, *inputs)},
                    tell,
                    shown,
                )

        async for updates in self.activities.run(visitor, work):
            idle = updates.pop("idle")
            yield {**updates, **_switches(idle=idle)}

    async def reset(self, request: "gr.Request", *inputs: Any) -> Updates:
        """End the current work and forget the conversation; added documents are kept."""
        await self.activities.drop(visitor_of(request))
        return {**self.emptied(*inputs), **await self.idle(*inputs)}

    def emptied(self, *inputs: Any) -> Updates:
        """A conversation that has not started."""
        return {"talk": [], "history": History(), "aside": self.aside(None, (), *inputs)}

    async def idle(self, *inputs: Any) -> Updates:
        """Nothing is running."""
        return _switches(idle=True)

    def aside(self, turn: Turn | None, notes: Sequence[str], *inputs: Any) -> str:
        """What is shown beside a turn, or before the first one, as HTML."""
        return sources(turn, notes)

    async def session(
        self, visitor: str, history: History, on_step: Callable[[Step], None], *inputs: Any
    ) -> ChatSession:
        """The visitor's conversation in its current state. Raises a `MetaRagError`."""
        engine, retriever = await self.workbench.engine(visitor), await self.retriever(*inputs)
        checks = Checks.of(engine.settings)
        answerer = GroundedAnswerer(engine=engine, retriever=retriever, checks=checks, on_step=on_step)
        lesson = await self.lesson(answerer, *inputs)
        return ChatSession(model=engine.model, answerer=answerer, history=history, **lesson)

    async def lesson(self, answerer: GroundedAnswerer, *inputs: Any) -> dict[str, Any]:
        """What else the session needs."""
        return {}

    async def retriever(self, *inputs: Any) -> Retriever:
        """The documents that are asked."""
        return await self.workbench.retriever()


class Chat(Conversation):
    """The tab Chat: the visitor's own documents, or the demo's corpus."""

    name = "chat"
    inputs = ("corpus", "private")

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        parts, first = self.parts, self.workbench.corpus
        parts["private"] = gr.State(None, delete_callback=lambda own: own and own.remove())
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                hint = "Ask the documents. An answer appears once it has been checked against them."
                self.lay_out_talk("Conversation", hint, "Ask", _ASKED)
            with gr.Column(scale=2, min_width=300):
                parts["corpus"] = gr.Dropdown([first], value=first, label="Documents to ask", elem_id="chat-corpus")
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
        """Add the visitor's own files, and show the result for each. Restarts the conversation."""
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
            fault = {"files": problem(_told(error))}
        return {**self.emptied(), **await self.idle("", own), **fault}

    async def _adding(self, uploads: Sequence[str] | None, own: PrivateCorpus | None, tell: Tell) -> None:
        import gradio as gr

        upload = gr.update(value=None, interactive=False)
        tell({**self.emptied(), **_switches(idle=False), "files": quiet("Reading the files."), "upload": upload})
        told: Updates = {}
        try:
            paths, bench = uploaded_files(uploads), self.workbench
            own = own or PrivateCorpus.below(bench.uploads, bench.settings, await bench.encoder())
            tell({"private": own})
            report = await own.add(paths)
            told = {"corpus": await self._corpora(own, selected=CORPUS), "files": taken(report)}
        except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
            told = {"files": problem(_told(fault))}
        finally:
            tell({**await self.idle("", own), **told})

    async def idle(self, *inputs: Any) -> Updates:
        """Nothing is running, and these are the visitor's documents."""
        import gradio as gr

        own: PrivateCorpus | None = inputs[1]
        files = [] if own is None else await own.files()
        return {
            **await super().idle(),
            "upload": gr.update(value=None, interactive=True),
            "files": quiet(f"Your documents: {', '.join(files)}." if files else _PRIVATE),
            "discard": gr.update(choices=files, value=None, visible=bool(files)),
            "corpus": await self._corpora(own),
        }

    async def _corpora(self, own: PrivateCorpus | None, selected: str = "") -> Any:
        """The selectable documents; without files of the visitor's own, the corpus is selected."""
        import gradio as gr

        corpus = self.workbench.corpus
        if own is None or not await own.files():
            return gr.update(choices=[corpus], value=corpus)
        chosen: dict[str, Any] = {"value": selected} if selected else {}
        return gr.update(choices=[("Your documents", CORPUS), corpus], **chosen)

    async def retriever(self, *inputs: Any) -> Retriever:
        """See `Conversation`."""
        corpus, own = inputs
        return own if corpus == CORPUS and own is not None else await super().retriever()


class Teaching(Conversation):
    """The tab Coach: teaches a learner by questions about a course, by the rules of a level."""

    name = "coach"
    inputs = ("corpus", "mode", "level")

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        parts, corpus = self.parts, self.workbench.corpus
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                hint = "Ask about the course. The coach replies with a question, never with the answer."
                self.lay_out_talk("Lesson", hint, "Say", _SAID)
            with gr.Column(scale=2, min_width=300), files_of(self.workbench.settings.coach_dir):
                parts["corpus"] = gr.Dropdown([_COURSE, corpus], value=_COURSE, label="Course", elem_id="coach-corpus")
                modes = [("Coach: asks", "coach"), ("Teacher: explains", "teacher")]
                parts["mode"] = gr.Radio(modes, value="coach", label="Mode")
                low, high, label = min(levels()), max(levels()), "Level: how little the coach reveals"
                parts["level"] = gr.Slider(low, high, value=1, step=1, label=label, elem_id="coach-level")
                parts["rules"] = gr.HTML(rules(Socratic(mode="coach")), elem_id="coach-rules")
                parts["aside"] = gr.HTML(beside(None, 1), elem_id="coach-beside")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        super().connect(page)
        self.on([self.parts["mode"].input, self.parts["level"].input], self.set_rules, ["mode", "level"])

    def set_rules(self, _request: "gr.Request", mode: Any, level: float) -> Updates:
        """Mode and level apply from the next message on."""
        import gradio as gr

        with files_of(self.workbench.settings.coach_dir):
            shown = rules(Socratic(mode=mode, level=int(level)))
        return {"rules": shown, "level": gr.update(interactive=mode == "coach")}

    def aside(self, turn: Turn | None, notes: Sequence[str], *inputs: Any) -> str:
        """The length of the reply and how it came about."""
        return beside(turn, int(inputs[2]), notes)

    async def lesson(self, answerer: GroundedAnswerer, *inputs: Any) -> dict[str, Any]:
        """The mode and the level, and who teaches in each."""
        corpus, mode, level = inputs
        retriever = await self.retriever(*inputs)
        scope: TopicScope = await self.workbench.once(("scope", corpus), partial(self._scope, retriever))
        return {
            "socratic": Socratic(mode=mode, level=int(level)),
            "teacher": answerer.as_teacher(),
            "coach": Coach(model=answerer.engine.model, retriever=retriever, scope=scope),
        }

    async def retriever(self, *inputs: Any) -> Retriever:
        """The course, or the demo's corpus."""
        if inputs[0] != _COURSE:
            return await super().retriever()
        course: PrivateCorpus = await self.workbench.once("course", self._course)
        return course

    @asynccontextmanager
    async def _course(self) -> AsyncIterator[PrivateCorpus]:
        bench = self.workbench
        course = PrivateCorpus.below(bench.uploads, bench.settings, await bench.encoder())
        await course.add(sorted(shipped("course").glob("*.md")))
        yield course

    @asynccontextmanager
    async def _scope(self, retriever: Retriever) -> AsyncIterator[TopicScope]:
        """The scope of the subject, read once for all visitors."""
        bench = self.workbench
        if isinstance(retriever, PrivateCorpus):
            subject = await retriever.subject()
        else:
            catalogue = retriever.corpus.catalogue if isinstance(retriever, HybridRetriever) else None
            subject = await asyncio.to_thread(subject_of, catalogue)
        yield TopicScope(subject=subject, encoder=await bench.encoder(), threshold=bench.settings.scope_threshold)


_COURSE = "Sundials and seasons (sample course)"
_SAID = ("Why does the shadow move over a sundial?", "The Earth turns, and the stick stands still.", "I don't know.")
_ASKED = ("Who discovered the Harvest Comet?", "What is the Renn lamp?", "What is the Cravenhythe Ironworks?")
"""Tried: the packaged model answers them too."""


def sources(turn: Turn | None, notes: Sequence[str] = ()) -> str:
    """Confidence and citations of an answer, or why there are none."""
    if turn is None or not isinstance(turn.reply, DocumentsReply):
        return html("sources", None, False, (), notes or ["The sources of an answer appear here."])
    answer = turn.reply.grounded
    if answer.refused is not None:
        return html("sources", None, True, (), notes)
    return html("sources", answer.confidence, False, [source_lines(one) for one in answer.citations], notes)


def taken(report: IngestReport) -> str:
    """The result for each file of an upload; local files are identified only by name."""
    files = []
    for one in report.outcomes:
        words = (one.reason or "").split(" ")
        reason = " ".join(PurePath(word.strip("'")).name if word.startswith("'/") else word for word in words)
        is_refused = one.status not in {"added", "replaced", "moved", "unchanged"}
        known = "known already" if one.status == "unchanged" else one.status
        passages = f", {counted(one.passages, 'passage')}" if one.passages else ""
        fate = reason if is_refused else f"{known}{passages}{f' ({reason})' if reason else ''}"
        files.append((PurePath(one.source).name, fate, is_refused))
    return html("taken", files)


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
    return html("level", levels()[socratic.level])


def beside(turn: Turn | None, level: int, notes: Sequence[str] = ()) -> str:
    """The length of the coach's reply against its limit, and how it came about; a teacher's reply has sources."""
    if turn is None:
        return quiet("The length of the coach's reply is measured here.")
    reply = turn.reply
    if not isinstance(reply, CoachReply):
        return sources(turn, notes)
    praise, allowed = reply_phrase("right_answer") if reply.acknowledged else "", levels()[level]
    limit = 0 if reply.refused else allowed.hint_limit if reply.kind == HINT else allowed.limit
    return html("coached", praise, length(reply.text), limit, OUTCOMES[reply.trace.outcome], reply.trace.attempts)
