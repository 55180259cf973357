"""The tab Loop: one question, step by step."""

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...agent.context import Task
from ...agent.deficits import discover_deficits
from ...agent.monitor import POLICIES
from ...datasets import Question
from ...errors import InputError, MetaRagError
from ...llm.stages import CHAT, runs_here
from ...retrieval.passage import passages_of
from ...wording import counted
from ..cards import doubtful, html, outcome, problem, quiet, stages, timeline
from ..stepping import LoopStepper, LoopView
from ..vocabulary import at_work, spoken, unexpected
from ..workbench import QuestionSet, Workbench
from .tab import Tab, Tell, Updates, visitor_of

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)

_OWN = "own"
_PARAGRAPHS = "paragraphs"
_LISTED = 300
"""The number of listed questions per set; a link can lead to any other."""
_ASKED = ("chosen", "text", "evidence", "policy", "repairs")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The question, its evidence, and the settings that the visitor has chosen.

    `chosen` is the question selected from a list; its paragraphs are the evidence unless `from_corpus`. `deficits_dir`
    holds the deficit that its set was made for.
    """

    text: str
    chosen: Question | None
    deficits_dir: Path | None = None
    from_corpus: bool
    policy: str
    repairs: int

    @property
    def golds(self) -> tuple[str, ...]:
        """The gold answers, if the text is still that of the chosen question."""
        return self.chosen.golds if self.chosen is not None and self.chosen.text.strip() == self.text.strip() else ()

    async def begun(self, workbench: Workbench, visitor: str) -> LoopStepper:
        """A run of this setup that has not started. Raises a `MetaRagError`."""
        engine = await workbench.engine(visitor)
        changed = {"monitor_policy": self.policy, "max_metacognitive_rounds": self.repairs}
        deficits = discover_deficits(self.deficits_dir) if self.deficits_dir is not None else engine.deficits
        engine = replace(engine, settings=engine.settings.model_copy(update=changed), deficits=deficits)
        task = Task(question=self.text, id=self.chosen.id if self.chosen is not None else "")
        if self.from_corpus:
            return LoopStepper.begin(engine, replace(task, retriever=await workbench.retriever()))
        if self.chosen is None:
            raise InputError("Your own question has no paragraphs; search the corpus instead.")
        return LoopStepper.begin(engine, replace(task, evidence=passages_of(self.chosen.paragraphs)))


@dataclass(kw_only=True)
class Visit:
    """A visitor's run; `fault` is the reason why it could not start."""

    setup: Setup | None = None
    run: LoopStepper | None = None
    fault: str = ""

    @property
    def golds(self) -> tuple[str, ...]:
        """The gold answers of the question, if known."""
        return self.setup.golds if self.setup is not None else ()

    async def go(
        self, workbench: Workbench, visitor: str, setup: Setup, *, steps: bool, show: Callable[[], None]
    ) -> None:
        """Run to the end, or through one node; `show` is called whenever there is more to show.

        Another setup starts over, as does running again after the end.
        """
        if setup != self.setup or (not steps and self.run is not None and self.run.view.status == "done"):
            self.setup, self.run = setup, None
        self.fault = ""
        show()
        try:
            if self.run is not None and self.run.view.status != "done":
                now = await workbench.engine(visitor)
                if now.model.connections is not self.run.engine.model.connections:  # another model, so start over
                    self.run = None
            self.run = self.run or await setup.begun(workbench, visitor)
            await self.run.advance(show, steps=steps)
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            if not isinstance(fault, MetaRagError):
                _LOG.exception("The demo could not start with %r.", setup.text)
            self.fault = unexpected(fault)

    def status(self, *, busy: bool = False) -> tuple[str, str]:
        """The kind and the words of the line above the graph."""
        if self.fault:
            return "failed", self.fault
        if self.run is None:
            if busy:
                return "working", "Opening the model and the evidence; the first time takes longest."
            return ("stopped", "Stopped before it started.") if self.setup is not None else ("ready", "Ready.")
        view = self.run.view
        is_wrong = view.answer is not None and doubtful(view.answer, self.golds)
        return "doubtful" if is_wrong else view.status, line(view)


@dataclass(kw_only=True, eq=False)
class Loop(Tab):
    """The question, two settings, and the visitor's run."""

    visits: dict[str, Visit] = field(default_factory=dict)

    @cached_property
    def repairs(self) -> tuple[str, ...]:
        """The graph's nodes that repair a deficit."""
        return discover_deficits(self.workbench.settings.deficits_dir).names

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        with gr.Row(elem_classes="m-loop"):
            with gr.Column(scale=2, min_width=300, elem_classes="m-controls"):
                self._lay_out_controls()
            with gr.Column(scale=5, min_width=320):
                self._lay_out_run()

    def _lay_out_controls(self) -> None:
        import gradio as gr

        bench, parts, settings = self.workbench, self.parts, self.workbench.settings
        names, (start, first) = [one.name for one in bench.question_sets], bench.first_question()
        parts["set"] = gr.Dropdown(names, value=start.name, label="Questions of", elem_id="loop-set")
        parts["chosen"] = gr.Dropdown(_listed(start), value=first.id, label="Question", elem_id="loop-chosen")
        parts["text"] = gr.Textbox(first.text, label="The question; edit it as you like", lines=2, elem_id="loop-text")
        parts["source"] = gr.HTML(_source(start, first))
        places = [
            ("the paragraphs that come with the question", _PARAGRAPHS),
            (f"the corpus “{bench.corpus}”", bench.corpus),
        ]
        parts["evidence"] = gr.Dropdown(places, value=_PARAGRAPHS, label="Evidence", elem_id="loop-evidence")
        gr.HTML(quiet(wait_and_cap(bench)), elem_id="loop-wait")
        with gr.Accordion("What if …", open=False, elem_id="loop-what-if"):
            label = "The monitor decides by"
            parts["policy"] = gr.Dropdown(list(POLICIES), value=settings.monitor_policy, label=label)
            parts["repairs"] = gr.Slider(
                0, 10, value=settings.max_metacognitive_rounds, step=1, label="Maximum repairs", elem_id="loop-repairs"
            )

    def _lay_out_run(self) -> None:
        import gradio as gr

        parts = self.parts
        with gr.Row(elem_classes="m-buttons m-steps"):
            parts["run"] = gr.Button("Run", variant="primary", elem_id="loop-run", elem_classes="m-run", min_width=70)
            parts["step"] = gr.Button("Next step", elem_id="loop-step", elem_classes="m-next", min_width=70)
            parts["stop"] = gr.Button("Stop", variant="stop", elem_id="loop-stop", min_width=70, interactive=False)
            parts["reset"] = gr.Button("Reset", elem_id="loop-reset", min_width=70)
        drawn = self._drawn(Visit())
        parts["status"] = gr.HTML(drawn.pop("status"), elem_id="loop-status")
        with gr.Column(min_width=320, elem_id="loop-shown"):
            for name, value in drawn.items():
                parts[name] = gr.HTML(value, elem_id=f"loop-{name}")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        parts = self.parts
        # a click just after Stop counts, even if the previous stream is not closed yet
        self.on([parts["run"].click, parts["text"].submit], partial(self.go, False), _ASKED, repeated=True)
        self.on(parts["step"].click, partial(self.go, True), _ASKED, repeated=True)
        self.on(parts["stop"].click, self.stopped)
        self.on(parts["reset"].click, self.reset)
        self.on(parts["set"].input, self.choose_set, ["set"], repeated=True)
        self.on(parts["chosen"].input, self.choose, ["chosen"])
        self.on(page.load, self.arrived)

    def left(self, visitor: str) -> None:
        """See `Tab`."""
        super().left(visitor)
        self.visits.pop(visitor, None)

    async def go(self, steps: bool, request: "gr.Request", *asked: Any) -> AsyncIterator[Updates]:
        """Run to the end, or through one node."""
        visitor = visitor_of(request)
        if self.activities.busy(visitor):
            return
        id_, text, evidence, policy, repairs = asked
        found, visit = self.workbench.found(id_), self.visits.setdefault(visitor, Visit())
        setup = Setup(
            text=text,
            chosen=found and found[1],
            deficits_dir=found and found[0].deficits_dir,
            from_corpus=evidence != _PARAGRAPHS,
            policy=policy,
            repairs=int(repairs),
        )

        async def work(tell: Tell) -> None:
            try:
                show = lambda: tell(self._update(visit, busy=True))  # noqa: E731
                await visit.go(self.workbench, visitor, setup, steps=steps, show=show)
            finally:
                tell(self._update(visit))

        async for updates in self.activities.run(visitor, work):
            yield updates

    async def reset(self, request: "gr.Request") -> Updates:
        """Stop, and discard the run."""
        await self.activities.drop(visitor_of(request))
        self.visits.pop(visitor_of(request), None)
        return self._update(Visit())

    def choose_set(self, _request: "gr.Request", name: str) -> Updates:
        """Select another set of questions, and its first question."""
        chosen = next(one for one in self.workbench.question_sets if one.name == name)
        return self._selected(chosen, chosen.questions[0])

    def _selected(self, one: QuestionSet, question: Question) -> Updates:
        import gradio as gr

        chosen = gr.update(choices=_listed(one, also=question), value=question.id)
        return {"set": one.name, "chosen": chosen, **self._of(one, question)}

    def _of(self, one: QuestionSet, question: Question) -> Updates:
        return {"text": question.text, "evidence": _PARAGRAPHS, "source": _source(one, question)}

    def choose(self, _request: "gr.Request", id_: str) -> Updates:
        """Select another question: its text, and its paragraphs."""
        found = self.workbench.found(id_)
        return self._of(*found) if found else {"text": "", "evidence": self.workbench.corpus, "source": ""}

    def arrived(self, request: "gr.Request") -> Updates:
        """Open the question of a link."""
        asked = request.query_params
        id_ = asked.get("question")
        if not id_ or asked.get("run") or asked.get("tab", "loop").lower() != "loop":
            return {}
        if found := self.workbench.found(id_):
            return self._selected(*found)
        words = f"Unknown question {id_!r}; choose one from the list, or name its file with --data-file."
        return {"status": problem(words)}

    def _update(self, visit: Visit, *, busy: bool = False) -> Updates:
        """The whole display of a visit."""
        import gradio as gr

        buttons = {name: gr.update(interactive=busy == (name == "stop")) for name in ("run", "step", "stop")}
        return {**buttons, **self._drawn(visit, busy=busy)}

    def _drawn(self, visit: Visit, *, busy: bool = False) -> dict[str, str]:
        """The status, then graph, answer, stages and costs of a run, in this order."""
        run, view = visit.run, visit.run.view if visit.run is not None else LoopView()
        return {
            "status": html("status", *visit.status(busy=busy)),
            "graph": html("graph", self.repairs if run is None else run.engine.deficits.names, view),
            "answer": "" if view.answer is None else outcome(view.answer, visit.golds),
            "stages": html("introduction") if run is None else stages(view, run.engine.settings),
            "spent": timeline(view),
        }


def _listed(one: QuestionSet, *, also: Question | None = None) -> list[tuple[str, str]]:
    """The selectable questions, as (label, id): one's own question, then those of a set."""
    listed = {question.id: question.text for question in (*one.questions[:_LISTED], *([also] if also else ()))}
    return [("Write my own …", _OWN), *((text, id_) for id_, text in listed.items())]


def _source(one: QuestionSet, question: Question) -> str:
    """The licence of a question, and the page's address for it."""
    return html("source", f"?{urlencode({'tab': 'loop', 'question': question.id})}", one.licence)


def line(view: LoopView) -> str:
    """The current activity of a run, in a sentence."""
    node, repairs = spoken(view.node or ""), len(view.rounds) - 1
    made = f"{counted(repairs, 'repair')} made" if repairs > 0 else "the first draft was kept"
    words = {
        "ready": "Ready.",
        "working": f"{at_work(view.node, repaired=view.plan.deficit if view.plan else '', doubted=view.doubted)}.",
        "paused": f"Paused; the next step is “{node}”.",
        "stopped": f"Stopped in “{node}”; Run or Next step continues from there." if node else "Stopped.",
        "failed": view.fault,
        "done": f"Done in {view.seconds:.1f} s: {made}.",
    }
    return words[view.status]


def wait_and_cap(workbench: Workbench) -> str:
    """How long an answer takes if it takes long, or a visitor's spending cap, in a sentence; else empty."""
    if workbench.is_small:
        # of SmolLM2-135M on 2 cores, with 2 calls for a draft that is kept and 3 for a repair
        return "The model on this machine takes about 20 s if the first draft is kept, and 30 s for every repair."
    try:
        if workbench.is_capped():
            return f"Your calls stop before they cost more than ${workbench.settings.demo_visitor_usd:g}."
        free = runs_here(workbench.settings, CHAT)
    except MetaRagError:  # no model: the heading says so
        return ""
    return "" if free else "The price of this model is unknown, so no spending cap can be enforced."
