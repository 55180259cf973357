"""The tab Coach: teaches a learner by questions over a course, each following its level's rules."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...agent.engine import Step
from ...agent.grounded import Checks
from ...chat.coach.coach import Coach
from ...chat.coach.levels import Mode, Socratic, levels
from ...chat.coach.scope import TopicScope
from ...chat.history import History
from ...chat.phrases import files_of
from ...chat.session import ChatSession, GroundedAnswerer
from ...retrieval.hybrid import Retriever
from ...shipped import shipped
from ..private_corpus import CORPUS, PrivateCorpus, corpora, subject_in
from ..run_cards import quiet
from ..streams import Streams
from ..talk import Message, beside, celebration, rules, stoppable_moments
from ..workbench import Workbench, visitor_of
from .parts import OwnDocuments, TalkParts, Updates, page

if TYPE_CHECKING:
    import gradio as gr

_COURSE = ("Sundials and seasons (sample course)", "sample course")
_EXAMPLES = (
    "Why does the shadow move over a sundial?",
    "The Earth turns, and the stick stands still.",
    "I don't know.",
)


@dataclass(frozen=True, kw_only=True)
class _Parts(TalkParts):
    """The components of the tab."""

    mode: "gr.Radio"
    level: "gr.Slider"
    rules: "gr.HTML"
    beside: "gr.HTML"
    confetti: "gr.HTML"


def build(workbench: Workbench, own_documents: OwnDocuments) -> None:
    """Lay the tab out; a lesson may also be about the visitor's own documents."""
    import gradio as gr

    words = workbench.settings.coach_dir
    with files_of(words):
        parts = _laid_out(workbench)
    tab = _Tab(parts=parts, words=words)
    own: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}

    async def saying(  # noqa: PLR0917  # a separate function, because Gradio reads its parameter types
        message: str, shown: Any, history: Any, corpus: str, private: Any, mode: str, level: float, request: gr.Request
    ) -> AsyncIterator[Updates]:
        held = Socratic(mode=cast("Mode", mode), level=int(level))
        talker = _Talker(workbench=workbench, corpus=corpus, private=private, held=held, visitor=visitor_of(request))
        async for updates in tab.said(message, shown, history, talker):
            yield updates

    async def starting_over(request: gr.Request) -> Updates:
        return await tab.reset(visitor_of(request))

    async def stopping(request: gr.Request) -> None:
        tab.streams.stop(visitor_of(request))

    async def leaving(request: gr.Request) -> None:
        tab.streams.leave(visitor_of(request))

    asked = [parts.message, parts.talk, parts.history, parts.corpus, own_documents.private, parts.mode, parts.level]
    gr.on([parts.message.submit, parts.send.click], saying, asked, parts.all, trigger_mode="multiple", **own)
    parts.stop.click(stopping, **own)
    gr.on([parts.reset.click, parts.corpus.input, parts.talk.clear], starting_over, None, parts.all, **own)
    page().unload(leaving)

    def offered(files: Any) -> Any:
        return gr.update(choices=[_COURSE, *corpora(workbench, files)])

    own_documents.files.change(offered, own_documents.files, parts.corpus, **own)
    gr.on([parts.mode.input, parts.level.input], tab.held, [parts.mode, parts.level], parts.all, **own)


@dataclass(frozen=True, kw_only=True)
class _Tab:
    """The behaviour of the tab. The history belongs to one visitor's page; `words` is COACH_DIR."""

    parts: _Parts
    words: Path | None = None
    streams: Streams = field(default_factory=Streams)

    async def said(
        self, message: str, shown: Sequence[Message], history: History, talker: "_Talker"
    ) -> AsyncIterator[Updates]:
        """Handle one message: the reply that follows the rules, its length, and confetti if the learner is right."""
        parts = self.parts
        if self.streams.busy(talker.visitor):  # a second click
            return
        if not message.strip():
            yield {parts.beside: quiet("The message is empty; write something.")}
            return
        yield {parts.message: "", parts.confetti: ""}
        async for moment in stoppable_moments(self.streams, talker.visitor, talker, message, history):
            with files_of(self.words):
                updates = {
                    **parts.at(moment, shown),
                    **({} if moment.turn is None else {parts.beside: beside(moment.turn, talker.held.level)}),
                    **({} if not moment.is_last else {parts.confetti: celebration(moment.turn)}),
                }
            yield updates

    async def reset(self, visitor: str) -> Updates:
        """End the current work and forget the conversation."""
        await self.streams.drop(visitor)
        parts = self.parts
        return {**parts.emptied(), parts.beside: beside(None, 1), parts.confetti: ""}

    def held(self, mode: str, level: float) -> Updates:
        """Mode and level apply from the next message on."""
        import gradio as gr

        socratic = Socratic(mode=cast("Mode", mode), level=int(level))
        with files_of(self.words):
            return {self.parts.rules: rules(socratic), self.parts.level: gr.update(interactive=mode == "coach")}


@dataclass(frozen=True, kw_only=True)
class _Talker:
    """The answerer for one visitor, one corpus and one mode."""

    workbench: Workbench
    corpus: str
    private: PrivateCorpus | None
    held: Socratic
    visitor: str

    async def __call__(self, history: History, tell: Callable[[Step], None]) -> ChatSession:
        """See `Opening`."""
        engine = await self.workbench.engine(self.visitor)
        retriever = await self._retriever()
        companion = GroundedAnswerer(
            engine=engine, retriever=retriever, checks=Checks.of(engine.settings, self.corpus), on_step=tell
        )
        coach = Coach(
            model=engine.model,
            retriever=retriever,
            scope=await self._scope(retriever),
        )
        return ChatSession(
            model=engine.model,
            answerer=companion,
            history=history,
            socratic=self.held,
            teacher=companion.as_teacher(),
            coach=coach,
        )

    async def _retriever(self) -> Retriever:
        if self.corpus == CORPUS and self.private is not None:
            return self.private
        if self.corpus != _COURSE[1]:
            return await self.workbench.retriever(self.corpus)
        course: PrivateCorpus = await self.workbench.once("course", partial(_course, self.workbench))
        return course

    async def _scope(self, retriever: Retriever) -> TopicScope:
        """The scope of the subject, read once for all visitors; for a visitor's own documents, read every time."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[TopicScope]:
            yield TopicScope(
                subject=await subject_in(retriever),
                encoder=await self.workbench.encoder(),
                threshold=self.workbench.settings.scope_threshold,
            )

        if retriever is self.private:
            async with opened() as own:
                return own
        scope: TopicScope = await self.workbench.once(("scope", self.corpus), opened)
        return scope


@asynccontextmanager
async def _course(workbench: Workbench) -> AsyncIterator[PrivateCorpus]:
    """The sample course, ready for teaching."""
    private = PrivateCorpus.below(await workbench.folder(), workbench.settings, await workbench.encoder())
    await private.add(sorted(shipped("course").glob("*.md")))
    yield private


def _laid_out(workbench: Workbench) -> _Parts:
    import gradio as gr

    history, first = gr.State(History()), Socratic(mode="coach")
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            talk = gr.Chatbot(
                label="Lesson",
                elem_id="coach-talk",
                height=440,
                render_markdown=False,
                buttons=["copy"],
                feedback_options=None,
                placeholder="Ask about the course. The coach replies with a question, never with the answer.",
            )
            confetti = gr.HTML(elem_id="coach-confetti")
            message = gr.Textbox(
                label="Your words",
                elem_id="coach-message",
                placeholder="Ask or answer",
                max_lines=4,
            )
            with gr.Row():
                send = gr.Button("Say", elem_id="coach-say", variant="primary", min_width=90)
                stop = gr.Button("Stop", elem_id="coach-stop", interactive=False, min_width=90)
                reset = gr.Button("Reset", elem_id="coach-reset", min_width=110)
            gr.Examples([[one] for one in _EXAMPLES], message, label="To start with")
        with gr.Column(scale=2, min_width=300):
            corpus = gr.Dropdown(
                [_COURSE, *corpora(workbench)], value=_COURSE[1], label="Course", elem_id="coach-corpus"
            )
            mode = gr.Radio([("Coach: asks", "coach"), ("Teacher: explains", "teacher")], value="coach", label="Mode")
            level = gr.Slider(
                min(levels()),
                max(levels()),
                value=1,
                step=1,
                label="Level: how little the coach reveals",
                elem_id="coach-level",
            )
            rules_html = gr.HTML(rules(first), elem_id="coach-rules")
            aside = gr.HTML(beside(None, 1), elem_id="coach-beside")
    return _Parts(
        history=history, corpus=corpus, mode=mode, level=level, rules=rules_html, beside=aside, confetti=confetti,
        talk=talk, message=message, send=send, stop=stop, reset=reset,
    )  # fmt: skip
