"""The tabs Tour and Runs: recorded answers, replayed step by step without a model."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...errors import MetaRagError
from ...retrieval.passage import Found, passages_of
from ...wording import counted
from ..cards import problem, quiet
from ..run_cards import about, opening, plots, replayed, settings_of, shown
from ..run_files import (
    ONE_PASS,
    OUTCOMES,
    RECORDED,
    SHOWN,
    Row,
    Run,
    Stop,
    listed,
    methods,
    open_run,
    run_names,
    tour,
)
from .tab import Tab, Updates

if TYPE_CHECKING:
    import gradio as gr

_EVERY_STEP = 10_000
_FOREIGN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError)
"""Errors caused by values of unexpected types."""


class Replay(Tab):
    """A recorded answer with its steps so far, and the buttons that move through them."""

    name = ""
    chosen: tuple[str, ...] = ()
    """The inputs that choose an answer."""

    def lay_out_replay(self, hint: str) -> None:
        """Create the buttons and the cards."""
        import gradio as gr

        plain: dict[str, Any] = {"size": "sm", "min_width": 60, "interactive": False}
        parts = self.parts
        parts["at"] = gr.State(0)
        with gr.Row(elem_classes="m-buttons m-steps"):
            parts["first"] = gr.Button("First step", **plain)
            parts["back"] = gr.Button("Back", elem_classes="m-back", **plain)
            parts["next"] = gr.Button("Next step", variant="primary", elem_classes="m-next", **plain)
            parts["every"] = gr.Button("All steps", elem_classes="m-every", **plain)
        parts["cards"] = gr.HTML(quiet(hint), elem_id=f"{self.name}-replay")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        for button, by in (("first", -_EVERY_STEP), ("back", -1), ("next", 1), ("every", _EVERY_STEP)):
            self.on(self.parts[button].click, partial(self._moved, by), ["at", *self.chosen])

    def _moved(self, by: int, _request: "gr.Request", step: int, *chosen: Any) -> Updates:
        return self.replay(step + by, *chosen)

    @abstractmethod
    def replay(self, step: int, *chosen: Any) -> Updates:
        """The chosen answer up to a step, counted from 1."""

    @cached_property
    def texts(self) -> Mapping[str, Found]:
        """The passages known to the demo, by id: those of its questions."""
        questions = (question for one in self.workbench.question_sets for question in one.questions)
        passages = passages_of(paragraph for question in questions for paragraph in question.paragraphs)
        return {passage.id: Found(passage=passage, score=0.0) for passage in passages}

    def at(self, run: Run | None, row: Row | None, step: int, place: Mapping[str, str]) -> Updates:
        """An answer up to a step, with its address in the page; a fault is shown instead."""
        if run is None or row is None:
            return self._showing(0, 0, quiet("There is nothing to replay."))
        try:
            one_pass = run.answer(row["id"], ONE_PASS)
            steps = replayed(row, one_pass, {**self.texts, **run.passages}, settings_of(run, self.workbench.settings))
        except MetaRagError as fault:
            return self._showing(0, 0, problem(str(fault)))
        except _FOREIGN:
            words = "This answer is damaged: its row is not what the loop writes; run it again."
            return self._showing(0, 0, problem(words))
        step = min(max(step, 1), len(steps))
        return self._showing(step, len(steps), shown(row, steps[:step], len(steps), place))

    def _showing(self, step: int, of: int, html: str) -> Updates:
        import gradio as gr

        leads = {"first": step > 1, "back": step > 1, "next": step < of, "every": step < of}
        return {"at": step, "cards": html, **{name: gr.update(interactive=leads[name]) for name in leads}}


_WHAT = (
    "Recorded answers of a 1.5B model. <em>Next step</em>, or the right arrow key, shows how a draft is questioned and "
    "repaired."
)


class Tour(Replay):
    """Recorded answers that show what the loop does, and what it gains."""

    name = "tour"
    chosen = ("stop",)

    @cached_property
    def stops(self) -> tuple[Stop, ...]:
        """The answers of the tour."""
        return tour()

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        gr.HTML(f'{opening(self.stops[0])}<p class="m-note">{_WHAT}</p>', elem_id="tour-opening")
        with gr.Row(elem_classes="m-loop"):
            with gr.Column(scale=2, min_width=300, elem_classes="m-controls"):
                labels = [(f"{one.shows}. {one.row['question']}", str(place)) for place, one in enumerate(self.stops)]
                self.parts["stop"] = gr.Radio(labels, value="0", label="Questions", elem_id="tour-stops")
            with gr.Column(scale=3, min_width=320):
                self.lay_out_replay("Opening the first question.")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        super().connect(page)
        self.on(page.load, self.arrived)
        self.on(self.parts["stop"].input, lambda _request, place: self.replay(2, place), ["stop"])

    def arrived(self, request: "gr.Request") -> Updates:
        """Open the question of a link, or the first one: its evidence, and its first draft."""
        wanted = request.query_params.get("question")
        found = (str(place) for place, stop in enumerate(self.stops) if stop.row["id"] == wanted)
        place = next(found, "0")
        return {"stop": place, **self.replay(2, place)}

    def replay(self, step: int, *chosen: Any) -> Updates:
        """See `Replay`."""
        stop = self.stops[int(chosen[0] or 0)]
        return self.at(stop.run, stop.row, step, {"tab": "tour", "question": str(stop.row["id"])})


class Runs(Replay):
    """A benchmark run: each of its answers, and its plots; a fault is shown instead of the run's description."""

    name = "runs"
    chosen = ("run", "answers")

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        parts = self.parts
        parts["run"] = gr.State(None)
        with gr.Row():
            parts["name"] = gr.Dropdown(list(RECORDED), value=next(iter(RECORDED)), label="Run")
            parts["method"] = gr.Dropdown([], label="Method", min_width=140)
            every = [("any", ""), *((name, name) for name in OUTCOMES)]
            parts["outcome"] = gr.Dropdown(every, value="", label="Repair", min_width=140)
        parts["about"] = gr.HTML(quiet("Opening the recorded run."), elem_id="runs-about")
        with gr.Tabs():
            with gr.Tab("Answers"), gr.Row():
                with gr.Column(scale=2, min_width=300):
                    parts["count"] = gr.HTML(elem_id="runs-count")
                    parts["answers"] = gr.Radio([], label="Answers", elem_id="runs-answers")
                with gr.Column(scale=3, min_width=320):
                    self.lay_out_replay("Choose an answer to replay its rounds; no model is called.")
            with gr.Tab("Plots"):
                parts["plots"] = gr.HTML(elem_id="runs-plots")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        super().connect(page)
        parts = self.parts
        self.on(page.load, self.arrived)
        self.on(parts["name"].input, lambda _request, name: self.opened(name), ["name"])
        self.on([parts["method"].input, parts["outcome"].input], self.filtered, ["run", "method", "outcome"])
        self.on(parts["answers"].input, lambda _request, *chosen: self.replay(_EVERY_STEP, *chosen), self.chosen)

    def arrived(self, request: "gr.Request") -> Updates:
        """Open the run and the answer of a link, or the recorded run."""
        import gradio as gr

        asked = request.query_params
        names = run_names(self.workbench.runs_dir)
        name = asked.get("run") or next(iter(RECORDED))
        chosen = gr.update(choices=list(names), value=name if name in names else None)
        return {"name": chosen, **self.opened(name, asked.get("question") or "", asked.get("method") or "")}

    def opened(self, name: str, question: str = "", method: str = "") -> Updates:
        """Open a run of the list, with the requested answer or the most repaired one."""
        import gradio as gr

        try:
            run = open_run(name, self.workbench.runs_dir)
            row = run.answer(question, method or methods(run)[0])
            named = row["method"] if row is not None else methods(run)[0]
            return {
                "run": run,
                "about": about(run),
                "method": gr.update(choices=list(methods(run)), value=named),
                "outcome": "",
                **self._listing(run, listed(run, named), row),
                "plots": plots(run),
            }
        except (MetaRagError, *_FOREIGN) as fault:
            words = str(fault) if isinstance(fault, MetaRagError) else _OTHER
            return {"run": None, "about": problem(words), "plots": "", **self._listing(None, [])}

    def filtered(self, _request: "gr.Request", run: Run | None, method: str, ended: str) -> Updates:
        """The answers that match the filter, the first of them replayed."""
        return {} if run is None else self._listing(run, listed(run, method, ended))

    def _listing(self, run: Run | None, answers: list[tuple[str, str]], row: Row | None = None) -> Updates:
        import gradio as gr

        many = len(answers)
        place = str(run.rows.index(row)) if run and row is not None else answers[0][1] if answers else None
        count = f"{counted(many, 'answer')}{f', the first {SHOWN} shown' if many > SHOWN else ''}."
        return {
            "count": quiet(count if many else "No answer matches."),
            "answers": gr.update(choices=answers[:SHOWN], value=place),
            **self.replay(_EVERY_STEP, run, place),
        }

    def replay(self, step: int, *chosen: Any) -> Updates:
        """See `Replay`."""
        run, place = chosen
        row = None if run is None or place is None else run.rows[int(place)]
        names = {} if row is None else {"run": run.name, "question": row["id"], "method": row["method"]}
        return self.at(run, row, step, names)


_OTHER = "This run was written by another version or is damaged; run it again."
