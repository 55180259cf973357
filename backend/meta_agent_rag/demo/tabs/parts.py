"""The components of a tab, and the behaviour shared by both conversations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...chat.history import History
from ...errors import InputError, MetaRagError
from ...llm.providers import EMBEDDED
from ...retrieval.passage import Found, passages_of
from ...settings import Settings
from ..cards import problem
from ..run_cards import beside, cards, link_to, pairs, quiet, settings_of, shown
from ..run_files import ONE_PASS, Row, Run, methods, open_run, run_names
from ..talk import ChatUpdate, Message
from ..workbench import Workbench

if TYPE_CHECKING:
    import gradio as gr

Updates: TypeAlias = dict[Any, Any]
"""Components with their new values."""


def page() -> "gr.Blocks":
    """The page being laid out; its events concern the visitor who opens and closes it."""
    from gradio.context import get_blocks_context

    context = get_blocks_context()
    assert context is not None
    return context.root_block


def uploaded_files(paths: Sequence[str] | None) -> list[Path]:
    """The files of an upload; raises `InputError` for a path outside Gradio's upload folder, whoever named it."""
    from gradio.utils import get_upload_folder

    folder, files = Path(get_upload_folder()).resolve(), [Path(path).resolve() for path in paths or ()]
    if not all(file.is_relative_to(folder) for file in files):
        raise InputError("Only files that were uploaded here can be read; upload the file again.")
    return files


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The components of a tab."""

    @property
    def all(self) -> list[Any]:
        """Every component."""
        return [getattr(self, part.name) for part in fields(self)]


@dataclass(frozen=True, kw_only=True)
class OwnDocuments:
    """A visitor's documents, available to every conversation: the `PrivateCorpus` and the names of its files."""

    private: "gr.State"
    files: "gr.State"


@dataclass(frozen=True, kw_only=True)
class TalkParts(Parts):
    """The components of a conversation; `corpus` selects its documents."""

    history: "gr.State"
    corpus: "gr.Dropdown"
    talk: "gr.Chatbot"
    message: "gr.Textbox"
    send: "gr.Button"
    stop: "gr.Button"
    reset: "gr.Button"

    def busy(self, busy: bool) -> Updates:
        """While a message is being answered, sending is disabled and stopping enabled."""
        import gradio as gr

        return {
            self.send: gr.update(interactive=not busy),
            self.stop: gr.update(interactive=busy),
            self.message: gr.update(interactive=not busy),
        }

    def emptied(self) -> Updates:
        """A conversation that has not started."""
        return {**self.busy(False), self.talk: [], self.history: History()}

    def at(self, moment: ChatUpdate, shown: Sequence[Message]) -> Updates:
        """The conversation at a moment, below the messages `shown` before."""
        return {
            self.talk: [*shown, *moment.messages],
            **({} if moment.history is None else {self.history: moment.history}),
            **self.busy(not moment.is_last),
        }


EVERY_STEP = 10_000
FOREIGN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError)
"""Errors caused by values of unexpected types; anyone can upload a zip."""


@dataclass(frozen=True, kw_only=True)
class Replay(Parts):
    """The components: the current step, its cards, and the buttons in order."""

    step: "gr.State"
    cards: "gr.HTML"
    first: "gr.Button"
    back: "gr.Button"
    next: "gr.Button"
    every: "gr.Button"

    def on_step(
        self, handler: Callable[[int], Callable[..., Updates]], inputs: "list[gr.components.Component]"
    ) -> None:
        """Make the buttons call `handler(by)`, which receives `inputs` and the step."""
        buttons = (self.first, self.back, self.next, self.every)
        for button, by in zip(buttons, (-EVERY_STEP, -1, 1, EVERY_STEP), strict=True):
            button.click(handler(by), [*inputs, self.step], self.all, show_progress="hidden", api_visibility="private")

    def at(self, run: Run, row: Row, step: int, settings: Settings, texts: Mapping[str, Found]) -> Updates:
        """An answer up to a step, counted from 1; a fault is shown instead."""
        try:
            one_pass = run.answer(row["id"], ONE_PASS)
            every = cards(row, one_pass, {**texts, **run.passages}, settings_of(run, settings))
        except MetaRagError as fault:
            return self._showing(0, 0, problem(str(fault)))
        except FOREIGN:
            words = "This answer is damaged: its row is not what the loop writes; run it again."
            return self._showing(0, 0, problem(words))
        step = min(max(step, 1), len(every))
        link = link_to(run.name, row) if run.linked else ""
        return self._showing(step, len(every), shown(row, every[:step], len(every), link))

    def nothing(self) -> Updates:
        """The state without a chosen answer."""
        return self._showing(0, 0, quiet("There is nothing to replay."))

    def _showing(self, step: int, of: int, html: str) -> Updates:
        import gradio as gr

        leads = {self.first: step > 1, self.back: step > 1, self.next: step < of, self.every: step < of}
        return {
            self.step: step,
            self.cards: html,
            **{button: gr.update(interactive=there) for button, there in leads.items()},
        }


def replay_parts(hint: str, name: str) -> Replay:
    """Lay out the buttons and the cards; `name` is the id of the cards in the page."""
    import gradio as gr

    step = gr.State(0)
    plain: dict[str, Any] = {"size": "sm", "min_width": 60, "interactive": False}
    with gr.Row(elem_classes="m-buttons m-steps"):
        first, back = gr.Button("First step", **plain), gr.Button("Back", elem_classes="m-back", **plain)
        next_, every = (
            gr.Button("Next step", variant="primary", elem_classes="m-next", **plain),
            gr.Button("All steps", **plain),
        )
    return Replay(step=step, cards=gr.HTML(quiet(hint), elem_id=name), first=first, back=back, next=next_, every=every)


def texts_of(workbench: Workbench) -> Mapping[str, Found]:
    """The passages known to the demo, by id: those of its questions."""
    questions = (question for one in workbench.question_sets for question in one.questions)
    passages = passages_of(paragraph for question in questions for paragraph in question.paragraphs)
    return {passage.id: Found(passage=passage, score=0.0) for passage in passages}


THIS = ""
"""The option for the open run itself."""


@dataclass(frozen=True, kw_only=True)
class ComparisonPanel:
    """The components: the method of the open run (A), the other run and its method (B), and the comparison."""

    method: "gr.Dropdown"
    run: "gr.Dropdown"
    other: "gr.Dropdown"
    shown: "gr.HTML"
    runs_dir: Path

    @property
    def all(self) -> "list[gr.components.Component]":
        """Every component."""
        return [self.method, self.run, self.other, self.shown]

    def opened(self, run: Run) -> Updates:
        """Another run was opened: its first method becomes A, and the next B."""
        import gradio as gr

        names = methods(run)
        first, second = (names[0], names[-1]) if names else (None, None)
        runs = [("the same run", THIS), *((name, name) for name in run_names(self.runs_dir) if name != run.name)]
        return {
            self.method: gr.update(choices=list(names), value=second),
            self.run: gr.update(choices=runs, value=THIS),
            self.other: gr.update(choices=list(names), value=first),
            self.shown: self._compared(run, second or "", run, first or ""),
        }

    def another(self, run: Run | None, method: str | None, name: str) -> Updates:
        """Select another run for B, with its first method."""
        import gradio as gr

        if run is None:
            return {}
        try:
            second = self._second(run, name)
        except MetaRagError as fault:
            return {self.shown: problem(str(fault))}
        first = next(iter(methods(second)), "")
        return {
            self.other: gr.update(choices=list(methods(second)), value=first),
            self.shown: self._compared(run, method or "", second, first),
        }

    def compared(self, run: Run | None, method: str | None, name: str, other: str | None) -> Updates:
        """Select other methods of the same runs."""
        if run is None:
            return {}
        try:
            second = self._second(run, name)
        except MetaRagError as fault:
            return {self.shown: problem(str(fault))}
        return {self.shown: self._compared(run, method or "", second, other or "")}

    def _second(self, run: Run, name: str) -> Run:
        return run if name == THIS else open_run(name, self.runs_dir)

    def _compared(self, run: Run, method: str, second: Run, other: str) -> str:
        if not run.rows:
            return quiet("No run is open.")
        try:
            free = run.provider == EMBEDDED, second.provider == EMBEDDED
            return beside(pairs(run, method, second, other), free)
        except MetaRagError as fault:
            return problem(str(fault))
        except FOREIGN:
            return problem("An answer of these runs is damaged; run them again.")


def comparison_panel(runs_dir: Path) -> ComparisonPanel:
    """Lay out the choices and the table."""
    import gradio as gr

    with gr.Row():
        method = gr.Dropdown([], label="A: method of the open run", min_width=200)
        run = gr.Dropdown([("the same run", THIS)], value=THIS, label="B: run", min_width=200)
        other = gr.Dropdown([], label="B: method", min_width=200)
    shown = gr.HTML(quiet("No run is open."), elem_id="runs-beside")
    return ComparisonPanel(method=method, run=run, other=other, shown=shown, runs_dir=runs_dir)
