"""The tab Loop: one question, step by step, with one configuration or two."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...agent.context import Task
from ...agent.deficits import discover_deficits
from ...datasets import Question
from ...errors import InputError, MetaRagError
from ...llm.providers import EMBEDDED
from ...retrieval.passage import passages_of
from ...wording import counted
from ..cards import doubtful, graph, outcome, problem, quiet, stages, timeline
from ..stepping import LoopStepper, LoopView, WhatIf, switches, what_if
from ..vocabulary import at_work, spoken, unexpected
from ..workbench import QuestionSet, Workbench
from .tab import Tab, Tell, Updates, visitor_of

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)

_PARTS = ("graph", "answer", "stages", "spent")
"""The parts of a side, from top to bottom."""
_OWN = "own"
_PARAGRAPHS = "paragraphs"
_LISTED = 300
"""The number of listed questions per set; a link can lead to any other."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The question, its evidence, and the configurations; two of them are compared.

    `chosen` is the question selected from a list; its paragraphs are the evidence unless `corpus` is named.
    """

    text: str
    chosen: Question | None
    corpus: str | None
    what_ifs: tuple[WhatIf, ...]

    @property
    def golds(self) -> tuple[str, ...]:
        """The gold answers, if the text is still that of the chosen question."""
        known = self.chosen is not None and self.chosen.text.strip() == self.text.strip()
        return self.chosen.golds if self.chosen is not None and known else ()


@dataclass(kw_only=True)
class Visit:
    """A visitor's runs, one for each configuration; `fault` is the reason why they could not start."""

    setup: Setup | None = None
    runs: tuple[LoopStepper, ...] = ()
    fault: str = ""

    @property
    def views(self) -> tuple[LoopView, ...]:
        """The current display, one per run; empty before they have started."""
        return tuple(run.view for run in self.runs)

    async def go(self, workbench: Workbench, visitor: str, setup: Setup, *, steps: bool, show: Any) -> None:
        """Run to the end, or through one node each; `show` is called whenever there is more to show.

        Another setup starts over, as does running again after the end.
        """
        if setup != self.setup or (not steps and all(view.status == "done" for view in self.views)):
            self.setup, self.runs = setup, ()
        self.fault = ""
        show()
        try:
            if not self.runs:
                self.runs = tuple([await _begun(workbench, visitor, setup, one) for one in setup.what_ifs])
            async with asyncio.TaskGroup() as group:
                for run in self.runs:
                    group.create_task(run.advance(show, steps=steps))
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            if not isinstance(fault, MetaRagError):
                _LOG.exception("The demo could not start with %r.", setup.text)
            self.fault = unexpected(fault)


async def _begun(workbench: Workbench, visitor: str, setup: Setup, what_if_: WhatIf) -> LoopStepper:
    engine = what_if_.engine(await workbench.engine(visitor, provider=what_if_.provider))
    task = Task(question=setup.text, id=setup.chosen.id if setup.chosen is not None else "")
    if setup.corpus is not None:
        retriever = what_if_.retriever(await workbench.retriever(setup.corpus))
        return LoopStepper.begin(engine, replace(task, retriever=retriever))
    if setup.chosen is None:
        raise InputError("Your own question has no paragraphs; search a corpus instead.")
    return LoopStepper.begin(engine, replace(task, evidence=passages_of(setup.chosen.paragraphs)))


@dataclass(kw_only=True, eq=False)
class Loop(Tab):
    """The question, the switches and one side, or two, with the run of a configuration."""

    visits: dict[str, Visit] = field(default_factory=dict)
    _picked: dict[str, object] = field(default_factory=dict)

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
                self._lay_out_sides()

    def _lay_out_controls(self) -> None:
        import gradio as gr

        bench, parts = self.workbench, self.parts
        names, (start, first) = bench.set_names(), bench.first_question()
        parts["set"] = gr.Dropdown(names, value=start.name, label="Questions of", elem_id="loop-set")
        parts["chosen"] = gr.Dropdown(_listed(start), value=first.id, label="Question", elem_id="loop-chosen")
        parts["text"] = gr.Textbox(first.text, label="The question; edit it as you like", lines=2, elem_id="loop-text")
        parts["source"] = gr.HTML(_source(start, first))
        corpora = [(f"the corpus “{name}”", name) for name in bench.corpora()]
        parts["evidence"] = gr.Dropdown(
            [("the paragraphs that come with the question", _PARAGRAPHS), *corpora],
            value=_PARAGRAPHS,
            label="Evidence",
            elem_id="loop-evidence",
        )
        start_with = WhatIf.of(bench.settings, next(iter(bench.provider_names()), ""))
        parts["wait"] = gr.HTML(self._wait(start_with.provider), elem_id="loop-wait")
        with gr.Accordion("What if …", open=False, elem_id="loop-what-if"):
            ours = switches(bench, start_with, name="a")
        parts["compare"] = gr.Checkbox(label="Compare with a second configuration", value=False, elem_id="loop-compare")
        with gr.Accordion("The second configuration", visible=False, elem_id="loop-second") as parts["second"]:
            theirs = switches(bench, start_with, name="b")
        parts.update(
            {f"{side}{index}": one for side, all_ in (("a", ours), ("b", theirs)) for index, one in enumerate(all_)}
        )

    def _lay_out_sides(self) -> None:
        import gradio as gr

        parts = self.parts
        with gr.Row(elem_classes="m-buttons m-steps"):
            parts["run"] = gr.Button("Run", variant="primary", elem_id="loop-run", elem_classes="m-run", min_width=70)
            parts["step"] = gr.Button("Next step", elem_id="loop-step", elem_classes="m-next", min_width=70)
            parts["stop"] = gr.Button("Stop", variant="stop", elem_id="loop-stop", min_width=70, interactive=False)
            parts["reset"] = gr.Button("Reset", elem_id="loop-reset", min_width=70)
        parts["status"] = gr.HTML(status(Visit()), elem_id="loop-status")
        with gr.Row(elem_classes="m-sides"):
            for side, values in zip("ab", (self._before(), ("", "", "", "")), strict=True):
                with gr.Column(visible=side == "a", min_width=320, elem_id=f"loop-side-{side}") as parts[
                    f"side-{side}"
                ]:
                    for name, value in zip(_PARTS, values, strict=True):
                        parts[f"{name}-{side}"] = gr.HTML(value, elem_id=f"loop-{name}-{side}")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        parts = self.parts
        switched = [name for name in parts if name[1:].isdigit()]
        asked = ("chosen", "text", "evidence", "compare", *switched)
        # a click just after Stop counts, even if the previous stream is not closed yet
        self.on([parts["run"].click, parts["text"].submit], partial(self.go, False), asked, repeated=True)
        self.on(parts["step"].click, partial(self.go, True), asked, repeated=True)
        self.on(parts["stop"].click, self.stopped)
        self.on(parts["reset"].click, self.reset, ["compare"])
        self.on(parts["set"].input, self.choose_set, ["set"], repeated=True)
        self.on(parts["chosen"].input, self.choose, ["chosen"])
        self.on(parts["compare"].change, self.compare, ["compare"])
        provider = switched[len(switched) // 2 - 1]
        self.on(parts[provider].change, lambda _request, name: {"wait": self._wait(name)}, [provider])
        self.on(page.load, self.arrived)

    def left(self, visitor: str) -> None:
        """See `Tab`."""
        super().left(visitor)
        self._picked.pop(visitor, None)
        self.visits.pop(visitor, None)
        self.workbench.forget(visitor)

    async def go(self, steps: bool, request: "gr.Request", *asked: Any) -> AsyncIterator[Updates]:
        """Run to the end, or through one node."""
        visitor = visitor_of(request)
        if self.activities.busy(visitor):
            return
        chosen, text, evidence, comparing, *values = asked
        half = len(values) // 2
        setup = Setup(
            text=text,
            chosen=self.workbench.question(chosen),
            corpus=None if evidence == _PARAGRAPHS else evidence,
            what_ifs=tuple(what_if(part) for part in (values[:half], values[half:])[: 2 if comparing else 1]),
        )
        visit = self.visits.setdefault(visitor, Visit())

        async def work(tell: Tell) -> None:
            try:
                show = lambda: tell(self._update(visit, busy=True))  # noqa: E731
                await visit.go(self.workbench, visitor, setup, steps=steps, show=show)
            finally:
                tell(self._update(visit))

        async for updates in self.activities.run(visitor, work):
            yield updates

    async def reset(self, request: "gr.Request", comparing: bool) -> Updates:
        """Stop, and discard the runs."""
        await self.activities.drop(visitor_of(request))
        self.visits.pop(visitor_of(request), None)
        return self._update(Visit(), both=comparing)

    async def choose_set(self, request: "gr.Request", name: str) -> AsyncIterator[Updates]:
        """Select another set of questions, and its first question; it may have to be fetched first."""
        bench, visitor = self.workbench, visitor_of(request)
        picked = self._picked[visitor] = object()
        if all(one.name != name for one in bench.known_sets()):
            words = f"Fetching the questions of {name} from the Hugging Face hub; the first time takes longest."
            yield {"status": _status_line("working", words)}
        try:
            one, line = await bench.question_set(name), status(self.visits.get(visitor, Visit()))
        except MetaRagError as fault:
            one, line = bench.question_sets[0], problem(str(fault))
        if self._picked.get(visitor) is picked:  # no other was picked meanwhile
            yield {**self._selected(one, one.questions[0]), "set": one.name, "status": line}

    def _selected(self, one: QuestionSet, question: Question) -> Updates:
        import gradio as gr

        chosen = gr.update(choices=_listed(one, also=question), value=question.id)
        return {"chosen": chosen, **self._of(one, question)}

    def _of(self, one: QuestionSet, question: Question) -> Updates:
        return {"text": question.text, "evidence": _PARAGRAPHS, "source": _source(one, question)}

    def choose(self, _request: "gr.Request", id_: str) -> Updates:
        """Select another question: its text, and its paragraphs."""
        for one in self.workbench.known_sets():
            if question := one.get(id_):
                return self._of(one, question)
        return {"text": "", "evidence": self.workbench.corpora()[0], "source": ""}

    def compare(self, request: "gr.Request", comparing: bool) -> Updates:
        """Show or hide the second configuration and its side; a displayed run is kept."""
        import gradio as gr

        shown = {name: gr.update(visible=comparing) for name in ("second", "side-b")}
        visit = self.visits.get(visitor_of(request))
        return (
            shown
            if visit is not None and visit.setup is not None
            else {**shown, **self._update(Visit(), both=comparing)}
        )

    def arrived(self, request: "gr.Request") -> Updates:
        """Open the question of a link."""
        asked = request.query_params
        id_ = asked.get("question")
        if not id_ or asked.get("run") or asked.get("tab", "loop") != "loop":
            return {}
        found = next(((one, question) for one in self.workbench.known_sets() if (question := one.get(id_))), None)
        if found is None:
            words = f"Unknown question {id_!r}; choose one from the list, or name its file with --data-file."
            return {"status": problem(words)}
        return {**self._selected(*found), "set": found[0].name}

    def _update(self, visit: Visit, *, busy: bool = False, both: bool = False) -> Updates:
        """The whole display of a visit."""
        import gradio as gr

        update: Updates = {"status": status(visit, busy=busy)}
        update |= {name: gr.update(interactive=busy == (name == "stop")) for name in ("run", "step", "stop")}
        setup = visit.setup
        if setup is not None:
            update["wait"] = self._wait(setup.what_ifs[0].provider)
            both = len(setup.what_ifs) > 1
        for index, side in enumerate("ab"):
            values = self._before()
            if index:
                values = (values[0], "", quiet("The second run appears here."), "") if both else ("", "", "", "")
            if setup is not None and index < len(visit.runs):
                run, heading = visit.runs[index], ""
                if both:
                    heading = _heading(setup, index)
                answer = outcome(run.view.answer, setup.golds) if run.view.answer is not None else ""
                drawn = heading + graph(self.repairs, run.view)
                values = drawn, answer, stages(run.view, run.engine.settings), timeline(run.view)
            update |= {f"{name}-{side}": value for name, value in zip(_PARTS, values, strict=True)}
        return update

    def _before(self) -> tuple[str, ...]:
        """A side before anything has run on it, in the order of `_PARTS`."""
        return graph(self.repairs), "", INTRODUCTION, ""

    def _wait(self, provider: str) -> str:
        words = (expected_wait(provider), spending_cap(self.workbench, provider))
        return quiet(" ".join(one for one in words if one))


def _listed(one: QuestionSet, *, also: Question | None = None) -> list[tuple[str, str]]:
    """The selectable questions, as (label, id): one's own question, then those of a set."""
    listed = {question.id: question.text for question in (*one.questions[:_LISTED], *([also] if also else ()))}
    return [("Write my own …", _OWN), *((text, id_) for id_, text in listed.items())]


def _source(one: QuestionSet, question: Question) -> str:
    """The licence of a question, and the page's address for it."""
    place = escape(urlencode({"tab": "loop", "question": question.id}))
    licence = quiet(one.licence) if one.licence else ""
    return f'<div data-place="?{place}">{licence}</div>'


def _heading(setup: Setup, index: int) -> str:
    """The configuration of this side, and its differences."""
    words = "; ".join(setup.what_ifs[index].differences(setup.what_ifs[1 - index])) or "the same settings"
    return f'<h3 class="m-side-head">{"AB"[index]} <small>{escape(words)}</small></h3>'


_STEPS = {
    "Cognition": "A draft is written, quoting the evidence first.",
    "Monitoring": "Single facts are looked up and combined in code; draft, derivation and other routes vote.",
    "Evaluating": (
        "The deficit is named: the draft lacks a fact, background knowledge, fidelity to the passages, or sound logic."
    ),
    "Planning": "Each deficit has its own repair: searches, and a directive for the next draft.",
    "Remediation": "New evidence is added, the draft is rewritten, and the monitor checks it again.",
}
INTRODUCTION = (
    '<div class="m-intro"><h3>An ordinary system stops at its first draft. This one asks whether it is right.</h3><ol>'
    + "".join(f"<li><strong>{name}</strong><span>{words}</span></li>" for name, words in _STEPS.items())
    + "</ol><p>Choose a question and press <strong>Run</strong>, or take one node at a time with "
    "<strong>Next step</strong> or the right arrow key.</p></div>"
)


def status(visit: Visit, *, busy: bool = False) -> str:
    """The line above the graph; screen readers announce changes."""
    views = visit.views
    if visit.fault:
        return _status_line("failed", visit.fault)
    if busy and not views:
        return _status_line("working", "Opening the model and the evidence; the first time takes longest.")
    if not views:
        stopped = visit.setup is not None
        return _status_line("stopped" if stopped else "ready", "Stopped before it started." if stopped else "Ready.")
    kinds = [view.status for view in views]
    worst = next((kind for kind in ("failed", "working", "stopped", "paused", "done") if kind in kinds), "ready")
    if worst == "done" and any(_is_doubtful(view, visit.setup) for view in views):
        worst = "doubtful"
    lines = [line(view) for view in views]
    words = lines[0] if len(lines) == 1 else " ".join(f"{name}: {one}" for name, one in zip("AB", lines, strict=True))
    return _status_line(worst, words)


def _status_line(kind: str, words: str) -> str:
    return f'<p class="m-status m-is-{kind}" role="status" aria-live="polite">{escape(words)}</p>'


def _is_doubtful(view: LoopView, setup: Setup | None) -> bool:
    """The answer is wrong, or probably so."""
    return view.answer is not None and doubtful(view.answer, setup.golds if setup is not None else ())


def line(view: LoopView) -> str:
    """The current activity of a run, in a sentence."""
    node = spoken(view.node or "")
    repairs = len(view.rounds) - 1
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


def expected_wait(provider: str) -> str:
    """The expected wait in a sentence; empty for a provider that answers within seconds."""
    if provider != EMBEDDED:
        return ""
    # of SmolLM2-135M on 2 cores, with 2 calls for a draft that is kept and 3 for a repair
    return "The model on this machine takes about 20 s if the first draft is kept, and 30 s for every repair."


def spending_cap(workbench: Workbench, provider: str) -> str:
    """The visitor's spending cap in a sentence; empty if calls cost nothing."""
    if provider in {EMBEDDED, ""}:
        return ""
    if workbench.is_capped(provider):
        return f"Your calls stop before they cost more than ${workbench.settings.demo_visitor_usd:g}."
    return "The price of this model is unknown, so no spending cap can be enforced."
