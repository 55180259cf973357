"""The tab Chat: the visitor's own documents or an existing corpus, and checked answers."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ...agent.engine import Step
from ...agent.grounded import Checks
from ...chat.history import History
from ...chat.session import ChatSession, GroundedAnswerer
from ...errors import MetaRagError
from ...ingestion.parsers import known_suffixes
from ..cards import problem
from ..private_corpus import CORPUS, PrivateCorpus, corpora
from ..run_cards import quiet
from ..stepping import unexpected
from ..streams import Finished, Streams, StreamStopped, watched
from ..talk import Message, kept, reading, sources, stoppable_moments, taken
from ..workbench import Workbench, visitor_of
from .parts import OwnDocuments, TalkParts, Updates, page, uploaded_files

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)

_PRIVATE = "Your files are read on the demo's machine and removed after your visit."
_EXAMPLES = (
    "Which engineer designed the Candlewright Bridge?",
    "How tall is Stag Skerry Light?",
    "Who wrote The Ninth Buoy?",
)


@dataclass(frozen=True, kw_only=True)
class _Parts(TalkParts):
    """The components of the tab."""

    private: "gr.State"
    names: "gr.State"
    upload: "gr.File"
    files: "gr.HTML"
    sources: "gr.HTML"


def build(workbench: Workbench) -> OwnDocuments:
    """Lay the tab out; returns the documents that visitors add in it."""
    import gradio as gr

    parts = _laid_out(workbench)
    tab = _Tab(parts=parts, workbench=workbench)
    own: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}

    async def asking(  # noqa: PLR0917  # a separate function, because Gradio reads its parameter types
        message: str, shown: Any, history: Any, corpus: str, private: Any, request: gr.Request
    ) -> AsyncIterator[Updates]:
        talker = _Talker(workbench=workbench, corpus=corpus, private=private, visitor=visitor_of(request))
        async for updates in tab.asked(message, shown, history, talker):
            yield updates

    async def adding(uploads: Any, private: Any, request: gr.Request) -> AsyncIterator[Updates]:
        async for updates in tab.added(uploads, private, visitor_of(request)):
            yield updates

    async def starting_over(private: Any, request: gr.Request) -> Updates:
        return await tab.reset(private, visitor_of(request))

    async def stopping(request: gr.Request) -> None:
        tab.streams.stop(visitor_of(request))

    async def leaving(request: gr.Request) -> None:
        tab.streams.leave(visitor_of(request))

    asked = [parts.message, parts.talk, parts.history, parts.corpus, parts.private]
    gr.on([parts.message.submit, parts.send.click], asking, asked, parts.all, trigger_mode="multiple", **own)
    parts.upload.upload(adding, [parts.upload, parts.private], parts.all, trigger_mode="once", **own)
    parts.stop.click(stopping, **own)
    resets = [parts.reset.click, parts.corpus.input, parts.talk.clear]
    gr.on(resets, starting_over, parts.private, parts.all, **own)
    page().unload(leaving)
    return OwnDocuments(private=parts.private, files=parts.names)


@dataclass(frozen=True, kw_only=True)
class _Tab:
    """The behaviour of the tab. History and documents belong to one visitor's page."""

    parts: _Parts
    workbench: Workbench
    streams: Streams = field(default_factory=Streams)

    async def asked(
        self, message: str, shown: Sequence[Message], history: History, talker: "_Talker"
    ) -> AsyncIterator[Updates]:
        """Handle one message: the steps as they happen, then the checked answer."""
        parts = self.parts
        if self.streams.busy(talker.visitor):  # a second click
            return
        if not message.strip():
            yield {parts.sources: quiet("The message is empty; write a question.")}
            return
        yield {parts.message: "", parts.sources: sources(None)}
        async for moment in stoppable_moments(self.streams, talker.visitor, talker, message, history):
            yield {
                **parts.at(moment, shown),
                **({} if moment.turn is None else {parts.sources: sources(moment.turn, moment.notes)}),
            }

    async def added(
        self, uploads: Sequence[str] | None, private: PrivateCorpus | None, visitor: str
    ) -> AsyncIterator[Updates]:
        """Add the visitor's own files: the progress, then the result for each. Restarts the conversation."""
        async for updates in self.streams.run(visitor, self._adding(uploads, private)):
            if isinstance(updates, StreamStopped):
                yield await self._idle(private)
            else:
                private = updates.get(self.parts.private, private)
                yield updates

    async def _adding(
        self, uploads: Sequence[str] | None, private: PrivateCorpus | None
    ) -> AsyncGenerator[Updates, None]:
        import gradio as gr

        parts = self.parts
        yield {
            **self._emptied(),
            **parts.busy(True),
            parts.files: quiet("Opening the files."),
            parts.upload: gr.update(value=None, interactive=False),
        }
        try:
            paths = uploaded_files(uploads)
            private = private or PrivateCorpus.below(
                await self.workbench.folder(), self.workbench.settings, await self.workbench.encoder()
            )
            yield {parts.private: private}
            async for event in watched(partial(private.add, paths, take=True)):
                if isinstance(event, Finished):
                    yield {**await self._idle(private, chosen=True), parts.files: taken(event.result)}
                else:
                    yield {parts.files: reading(event)}
        except MetaRagError as fault:
            yield {**await self._idle(private), parts.files: problem(str(fault))}
        except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
            _LOG.exception("Files could not be read.")
            yield {**await self._idle(private), parts.files: problem(unexpected(fault))}

    async def reset(self, private: PrivateCorpus | None, visitor: str) -> Updates:
        """End the current work and forget the conversation; added documents are kept."""
        await self.streams.drop(visitor)
        return {**self._emptied(), **await self._idle(private)}

    def _emptied(self) -> Updates:
        return {**self.parts.emptied(), self.parts.sources: sources(None)}

    async def _idle(self, private: PrivateCorpus | None, *, chosen: bool = False) -> Updates:
        """Nothing is running, and these are the documents; with `chosen`, the visitor's own are selected."""
        import gradio as gr

        parts, files = self.parts, [] if private is None else await private.files()
        choices = corpora(self.workbench, files)
        return {
            **parts.busy(False),
            parts.upload: gr.update(value=None, interactive=True),
            parts.names: tuple(files),
            parts.files: quiet(_PRIVATE) if private is None else kept(files),
            parts.corpus: gr.update(choices=choices, value=CORPUS) if files and chosen else gr.update(choices=choices),
        }


@dataclass(frozen=True, kw_only=True)
class _Talker:
    """The answerer for one visitor and one corpus."""

    workbench: Workbench
    corpus: str
    private: PrivateCorpus | None
    visitor: str

    async def __call__(self, history: History, tell: Callable[[Step], None]) -> ChatSession:
        """See `Opening`."""
        engine = await self.workbench.engine(self.visitor)
        own = self.private if self.corpus == CORPUS else None
        retriever = own or await self.workbench.retriever(self.corpus)
        checks = Checks.of(engine.settings, self.corpus)
        companion = GroundedAnswerer(engine=engine, retriever=retriever, checks=checks, on_step=tell)
        return ChatSession(model=engine.model, answerer=companion, history=history)


def _forget(private: PrivateCorpus | None) -> None:
    if private is not None:
        private.remove()


def _laid_out(workbench: Workbench) -> _Parts:
    import gradio as gr

    history, private, names = gr.State(History()), gr.State(None, delete_callback=_forget), gr.State(())
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            talk = gr.Chatbot(
                label="Conversation",
                elem_id="chat-talk",
                height=480,
                render_markdown=False,
                buttons=["copy"],
                feedback_options=None,
                placeholder="Ask the documents. An answer appears once it has been checked against them.",
            )
            message = gr.Textbox(
                label="Your question",
                elem_id="chat-message",
                placeholder="Ask the documents",
                max_lines=4,
                submit_btn=False,
            )
            with gr.Row():
                send = gr.Button("Ask", elem_id="chat-ask", variant="primary", min_width=90)
                stop = gr.Button("Stop", elem_id="chat-stop", interactive=False, min_width=90)
                reset = gr.Button("Reset", elem_id="chat-reset", min_width=110)
            gr.Examples([[one] for one in _EXAMPLES], message, label="Questions for the sample")
        with gr.Column(scale=2, min_width=300):
            corpus = gr.Dropdown(
                corpora(workbench), value=workbench.corpus, label="Documents to ask", elem_id="chat-corpus"
            )
            upload = gr.File(
                label="Your own: PDF, Word, HTML, Markdown",
                file_count="multiple", elem_id="chat-upload", file_types=list(known_suffixes()), height=170,
            )  # fmt: skip
            files = gr.HTML(quiet(_PRIVATE), elem_id="chat-files")
            cited = gr.HTML(sources(None), elem_id="chat-sources")
    return _Parts(
        history=history, private=private, names=names, corpus=corpus, upload=upload, files=files, talk=talk,
        message=message, send=send, stop=stop, reset=reset, sources=cited,
    )  # fmt: skip
