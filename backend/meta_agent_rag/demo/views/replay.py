"""The steps of a recorded answer with the buttons to navigate them; shared by the tabs Tour and Runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import MetaRagError
from ...retrieval.passage import Found, passages_of
from ...settings import Settings
from ..components import Parts, Updates
from ..loop.status import problem
from ..runs.files import Row, Run
from ..runs.html import quiet
from ..runs.replay import cards, link_to, settings_of, shown
from ..runs.tour import ONE_PASS
from ..workbench import Workbench

if TYPE_CHECKING:
    import gradio as gr

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


def laid_out(hint: str, name: str) -> Replay:
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
