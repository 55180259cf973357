"""The tabs Tour and Runs: recorded answers, replayed step by step without a model."""

import json
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup

from ...agent.engine import Answer
from ...agent.state import NO_DEFICIT, MethodStop, State
from ...errors import MetaRagError
from ...llm.providers import EMBEDDED
from ...retrieval.passage import Found, passages_of
from ...settings import Settings
from ...shipped import shipped
from ...wording import FREE, counted
from ..cards import cards, html, outcome, problem, quiet
from ..run_files import (
    ONE_PASS,
    OUTCOMES,
    RECORDED,
    RIGHT,
    Row,
    Run,
    Stop,
    listed,
    methods,
    open_run,
    rounds_of,
    run_names,
    tour,
)
from ..stepping import LoopView
from ..vocabulary import deficit, spoken
from .tab import Tab, Updates

if TYPE_CHECKING:
    import gradio as gr

_EVERY_STEP = 10_000
_LISTED = 200
"""The number of answers listed at once."""
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
            steps = replayed(
                row, one_pass, {**self.texts, **run.passages}, settings_of(run, row, self.workbench.settings)
            )
        except (MetaRagError, *_FOREIGN) as fault:
            return self._showing(0, 0, problem(_told(fault)))
        step = min(max(step, 1), len(steps))
        taken = [Markup(one) for one in steps[:step]]
        return self._showing(step, len(steps), html("replay", row, taken, len(steps), f"?{urlencode(place)}"))

    def _showing(self, step: int, of: int, shown: str) -> Updates:
        import gradio as gr

        leads = {"first": step > 1, "back": step > 1, "next": step < of, "every": step < of}
        return {"at": step, "cards": shown, **{name: gr.update(interactive=leads[name]) for name in leads}}


def _told(fault: Exception) -> str:
    known = isinstance(fault, MetaRagError)
    return str(fault) if known else "This run was written by another version or is damaged; run it again."


_WHAT = (
    "Recorded answers of a 1.5B model. Next step, or the right arrow key, shows how a draft is questioned and repaired."
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

        gr.HTML(opening(self.stops[0]) + quiet(_WHAT), elem_id="tour-opening")
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
        place = next((str(place) for place, stop in enumerate(self.stops) if stop.row["id"] == wanted), "0")
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

        asked, names = request.query_params, run_names(self.workbench.runs_dir)
        name = asked.get("run") or names[0]
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
            return {"run": None, "about": problem(_told(fault)), "plots": "", **self._listing(None, [])}

    def filtered(self, _request: "gr.Request", run: Run | None, method: str, ended: str) -> Updates:
        """The answers that match the filter, the first of them replayed."""
        return {} if run is None else self._listing(run, listed(run, method, ended))

    def _listing(self, run: Run | None, answers: list[tuple[str, str]], row: Row | None = None) -> Updates:
        import gradio as gr

        many = len(answers)
        place = str(run.rows.index(row)) if run and row is not None else answers[0][1] if answers else None
        count = f"{counted(many, 'answer')}{f', the first {_LISTED} shown' if many > _LISTED else ''}."
        return {
            "count": quiet(count if many else "No answer matches."),
            "answers": gr.update(
                choices=[*answers[:_LISTED], *(one for one in answers[_LISTED:] if one[1] == place)], value=place
            ),
            **self.replay(_EVERY_STEP, run, place),
        }

    def replay(self, step: int, *chosen: Any) -> Updates:
        """See `Replay`."""
        run, place = chosen
        row = None if run is None or place is None else run.rows[int(place)]
        names = {} if row is None else {"run": run.name, "question": row["id"], "method": row["method"]}
        return self.at(run, row, step, names)


_OF_THIS_MACHINE = (EMBEDDED, "llama_server")


def replayed(row: Row, one_pass: Row | None, texts: Mapping[str, Found], settings: Settings) -> list[str]:
    """All steps of an answer; the last one is its outcome, next to that of a single pass if available.

    A run references passages by id: `texts` are the known ones. `settings` are those of the run.
    Raises `InputError` for a damaged row.
    """
    rounds = rounds_of(row)
    ids = dict.fromkeys(id_ for one in rounds for id_ in (*one.evidence_ids, *one.searched_ids))
    found = tuple(texts[id_] for id_ in ids if id_ in texts)
    steps = cards(LoopView(state=State(evidence=found, rounds=rounds), status="done"), settings)
    if row.get("error"):
        return [*steps, html("failed", str(row["error"]))]
    answer = Answer(
        question=str(row.get("question")),
        text=str(row.get("answer") or ""),
        short_answer=str(row.get("prediction") or ""),
        stop_reason=MethodStop(str(row.get("stop_reason"))),
        chosen=row.get("chosen") or 0,
        rounds=rounds,
        evidence=found,
        dropped=(),
        calls=(),
    )
    others = {}
    if one_pass is not None and one_pass is not row:
        others[f"One pass ({ONE_PASS})"] = str(one_pass.get("prediction") or "")
    golds = [str(gold) for gold in (row.get("gold"), *(row.get("aliases") or ())) if gold]
    spent = _spent(row, free=settings.llm_provider in _OF_THIS_MACHINE)
    return [*steps, outcome(answer, golds, others=others, spent=spent, selection=settings.selection)]


def _spent(row: Row, *, free: bool) -> str:
    tokens, cost = row.get("tokens") or {}, row.get("cost_usd")
    parts = [
        counted(row["llm_calls"], "call") if "llm_calls" in row else "",
        f"{tokens['prompt']:,} tokens read, {tokens['completion']:,} written" if "prompt" in tokens else "",
        f"{row['latency_s']:.1f} s" if "latency_s" in row and row.get("timed", True) else "",
        FREE if free else f"${float(cost):.5f}" if cost is not None else "price unknown",
    ]
    return " · ".join(filter(None, parts))


def settings_of(run: Run, row: Row, settings: Settings) -> Settings:
    """These settings with the provider of the run and the monitor of a row's method, if recorded."""
    recorded = {"monitor_policy": str, "monitor_similarity_threshold": float, "selection": str}
    known = run.about("settings")
    own = {name: value for name, kind in recorded.items() if isinstance(value := known.get(name), kind)}
    method, *assigned = str(row.get("method")).split()
    if method == "metarag_paper":
        own |= {"monitor_policy": "paper", "selection": "last"}
    for name, _, value in (one.partition("=") for one in assigned):
        if (kind := recorded.get(name.lower())) is not None:
            own[name.lower()] = kind(value)
    return settings.model_copy(update={**own, "llm_provider": str(run.about("provider").get("name") or "")})


def about(run: Run) -> str:
    """A description of the run in a sentence, with its address within the app."""
    experiment, provider = run.about("experiment"), run.about("provider")
    facts = {name: run.summary.get(name, experiment.get(name)) for name in ("dataset", "mode", "n", "seed")}
    models = provider.get("embedded_model") or ", ".join(dict.fromkeys((provider.get("models") or {}).values()))
    questions = counted(facts["n"] or len({row["id"] for row in run.rows}), "question")
    named = {"data set": facts["dataset"], "mode": facts["mode"], "seed": facts["seed"], "model": models or None}
    parts = [questions, *(f"{name} {value}" for name, value in named.items() if value is not None)]
    return html("about", f"?{urlencode({'run': run.name})}", ", ".join(parts))


def plots(run: Run) -> str:
    """The plots of the report as embedded images; each takes the full width once opened."""
    return html("plots", [(spoken(name).replace("-", " "), b64encode(raw).decode()) for name, raw in run.plots.items()])


def opening(stop: Stop) -> str:
    """What the loop gains: one question before and after, and the held-out result of each data set as a chart."""
    first, row = stop.row["rounds"][0], stop.row
    diagnosis = first.get("diagnosis") or {}
    before, after = (
        ("right", "m-right") if float(one["f1"]) >= RIGHT else ("wrong", "m-wrong") for one in (first, row)
    )
    found = (deficit(diagnosis.get("deficit") or NO_DEFICIT), diagnosis.get("rationale") or "", "")
    steps = (
        ("First draft", first["draft"]["short_answer"], *before),
        ("What the monitor found", *found),
        ("Returned answer", row["prediction"], *after),
    )
    return html("opening", row["question"], steps, json.loads(shipped("held_out.json").read_bytes()))
