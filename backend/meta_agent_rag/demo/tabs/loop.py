"""The tab Loop: one question, step by step, with one configuration or two."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

from ...agent.deficits import discover_deficits
from ...agent.graph import build_graph
from ...errors import MetaRagError
from ...llm.providers import EMBEDDED
from ...wording import counted
from ..cards import outcome, problem, stages, timeline
from ..drawing import Lit, drawing, repair_nodes
from ..stepping import PARAGRAPHS, LoopView, LoopVisit, Setup, WhatIf, choices, setup, switches, what_if
from ..words import at_work, spoken
from ..workbench import QuestionSet, Workbench, visitor_of
from .parts import page

_PARTS = ("graph", "answer", "stages", "spent")
"""The parts of a side, from top to bottom."""
_SHOWN = (
    *("status", "run", "step", "stop", "wait"),
    *(f"{part}-{side}" for side in "ab" for part in _PARTS),
)
"""The components updated by an event, by name."""
_QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


def build(workbench: Workbench) -> None:
    """Lay the tab out and connect its buttons."""
    import gradio as gr

    tab = _Tab(workbench=workbench)
    with gr.Row(elem_classes="m-loop"):
        with gr.Column(scale=2, min_width=320, elem_classes="m-controls"):
            tab.lay_out_controls()
        with gr.Column(scale=5, min_width=320, elem_classes="m-stage-side"):
            tab.lay_out_sides()
    tab.wire()


@dataclass(kw_only=True, repr=False)
class _Tab:
    """The components by name, the visits by visitor, and the event handlers."""

    workbench: Workbench
    visits: dict[str, LoopVisit] = field(default_factory=dict)
    _picked: dict[str, object] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    ours: list[Any] = field(default_factory=list)
    theirs: list[Any] = field(default_factory=list)

    @cached_property
    def repairs(self) -> tuple[str, ...]:
        """The graph's nodes that repair a deficit."""
        return repair_nodes(build_graph(discover_deficits(self.workbench.settings.deficits_dir)))

    @property
    def _provider(self) -> str:
        """The initial provider; empty if none is configured, which the first run then reports."""
        return next(iter(self.workbench.provider_names()), "")

    def lay_out_controls(self) -> None:
        """Lay out the question, its evidence, the buttons and the switches."""
        import gradio as gr

        bench, parts = self.workbench, self.parts
        start, names = bench.question_sets[0], bench.set_names()
        first = start.questions[0]
        parts["set"] = gr.Dropdown(
            names, value=start.name, label="Questions of", elem_id="loop-set", visible=len(names) > 1
        )
        parts["chosen"] = gr.Dropdown(
            choices(start), value=first.id, label="Question", elem_id="loop-chosen", filterable=True
        )
        parts["text"] = gr.Textbox(first.text, label="The question; edit it as you like", lines=2, elem_id="loop-text")
        corpora = [(f"the corpus “{name}”", name) for name in bench.corpora()]
        parts["evidence"] = gr.Dropdown(
            [("the paragraphs that come with the question", PARAGRAPHS), *corpora],
            value=PARAGRAPHS,
            label="Evidence",
            elem_id="loop-evidence",
        )
        with gr.Row(elem_classes="m-buttons"):
            parts["run"] = gr.Button("Run", variant="primary", elem_id="loop-run", min_width=70)
            parts["step"] = gr.Button("Next step", elem_id="loop-step", elem_classes="m-next", min_width=70)
            parts["stop"] = gr.Button("Stop", variant="stop", elem_id="loop-stop", min_width=70, interactive=False)
            parts["reset"] = gr.Button("Reset", elem_id="loop-reset", min_width=70)
        what_if_ = WhatIf.of(bench.settings, self._provider)
        parts["wait"] = gr.HTML(self._wait(what_if_.provider), elem_id="loop-wait")
        with gr.Accordion("What if …", open=False, elem_id="loop-what-if"):
            self.ours = switches(bench, what_if_, name="a")
        parts["compare"] = gr.Checkbox(label="Compare with a second configuration", value=False, elem_id="loop-compare")
        with gr.Accordion("The second configuration", visible=False, elem_id="loop-second") as parts["second"]:
            self.theirs = switches(bench, what_if_, name="b")

    def lay_out_sides(self) -> None:
        """Lay out the status line and the display of each configuration."""
        import gradio as gr

        self.parts["status"] = gr.HTML(
            status(LoopVisit(workbench=self.workbench, visitor="")), elem_id="loop-status", elem_classes="m-sticky"
        )
        with gr.Row(elem_classes="m-sides"):
            for side in "ab":
                with gr.Column(visible=side == "a", min_width=320, elem_id=f"loop-side-{side}") as column:
                    self.parts[f"column-{side}"] = column
                    for name in _PARTS:
                        self.parts[f"{name}-{side}"] = gr.HTML(elem_id=f"loop-{name}-{side}")
        for name, value in zip(_PARTS, _before(self.repairs, 0, both=False), strict=True):
            self.parts[f"{name}-a"].value = value

    def wire(self) -> None:
        """Connect the events; Gradio identifies a visitor by the annotation `gr.Request`."""
        import gradio as gr

        async def run(request: gr.Request, *asked: Any) -> AsyncIterator[list[Any]]:
            async for update in self._go(visitor_of(request), asked, steps=False):
                yield update

        async def step(request: gr.Request, *asked: Any) -> AsyncIterator[list[Any]]:
            async for update in self._go(visitor_of(request), asked, steps=True):
                yield update

        async def stop(request: gr.Request) -> list[Any]:
            visit = self._visit(visitor_of(request))
            await visit.stop()
            return self._update(visit)

        async def reset(comparing: bool, request: gr.Request) -> list[Any]:
            visit = self._visit(visitor_of(request))
            await visit.reset()
            return self._update(visit, comparing=comparing)

        async def choose_set(name: str, request: gr.Request) -> AsyncIterator[list[Any]]:
            async for update in self._choose_set(visitor_of(request), name):
                yield update

        def compare(comparing: bool, request: gr.Request) -> list[Any]:
            return self._compare(visitor_of(request), comparing)

        async def leave(request: gr.Request) -> None:
            await self._leave(visitor_of(request))

        def follow_link(request: gr.Request) -> list[Any]:
            linked = None if request.query_params.get("run") else request.query_params.get("question")
            return [gr.skip()] * 5 if not linked else self._linked(linked)

        parts = self.parts
        asked = [*(parts[name] for name in ("chosen", "text", "evidence", "compare")), *self.ours, *self.theirs]
        shown = [parts[name] for name in _SHOWN]
        # a click just after Stop counts, even if the previous stream is not closed yet; the visit handles both
        at_any_time: dict[str, Any] = {**_QUIET, "trigger_mode": "multiple"}
        gr.on([parts["run"].click, parts["text"].submit], run, asked, shown, **at_any_time)
        parts["step"].click(step, asked, shown, **at_any_time)
        parts["stop"].click(stop, None, shown, **_QUIET)
        parts["reset"].click(reset, parts["compare"], shown, **_QUIET)
        parts["chosen"].input(self.choose, parts["chosen"], [parts["text"], parts["evidence"]], **_QUIET)
        beside = [parts[name] for name in ("second", "column-b", "graph-a", "graph-b", "stages-b")]
        parts["compare"].change(compare, parts["compare"], beside, **_QUIET)
        self.ours[-1].change(self._wait, self.ours[-1], parts["wait"], **_QUIET)
        questions = [parts[name] for name in ("set", "chosen", "text", "evidence", "status")]
        parts["set"].input(choose_set, parts["set"], questions, **at_any_time)
        page().load(follow_link, None, questions, **_QUIET)
        page().unload(leave)

    async def _choose_set(self, visitor: str, name: str) -> AsyncIterator[list[Any]]:
        """Select another set of questions, and its first question; it may have to be fetched first."""
        import gradio as gr

        bench = self.workbench
        picked = self._picked[visitor] = object()
        if all(one.name != name for one in bench.known_sets()):
            yield [*[gr.skip()] * 4, fetching(name)]
        try:
            one = await bench.question_set(name)
        except MetaRagError as fault:
            if self._picked.get(visitor) is picked:  # no other was picked meanwhile
                yield [*self._of_set(bench.question_sets[0]), problem(str(fault))]
        else:
            if self._picked.get(visitor) is picked:
                yield [*self._of_set(one), status(self._visit(visitor))]

    def _of_set(self, one: QuestionSet) -> list[Any]:
        """A set of questions with its first one selected."""
        import gradio as gr

        first = one.questions[0]
        return [one.name, gr.update(choices=choices(one), value=first.id), first.text, PARAGRAPHS]

    def choose(self, id_: str) -> list[Any]:
        """Select another question: its text, and its paragraphs."""
        question = self.workbench.question(id_)
        if question is None:
            return ["", self.workbench.corpora()[0]]
        return [question.text, PARAGRAPHS]

    def _compare(self, visitor: str, comparing: bool) -> list[Any]:
        """Show or hide the second configuration and its side; a displayed run is kept."""
        import gradio as gr

        shown = [gr.update(visible=comparing)] * 2
        if self._visit(visitor).setup is not None:
            return [*shown, *[gr.skip()] * 3]
        (graph, *_), (_, _, stages_b, _) = (_before(self.repairs, index, both=comparing) for index in (0, 1))
        return [*shown, graph, graph, stages_b]

    def _linked(self, id_: str) -> list[Any]:
        """The initial state for `?question=ID`."""
        import gradio as gr

        question = self.workbench.question(id_)
        if question is None:
            words = f"Unknown question {id_!r}; choose one from the list, or name its file with --data-file."
            return [*[gr.skip()] * 4, problem(words)]
        one = next(one for one in self.workbench.known_sets() if one.get(id_))
        listed = gr.update(choices=choices(one, also=question), value=question.id)
        return [one.name, listed, question.text, PARAGRAPHS, gr.skip()]

    async def _leave(self, visitor: str) -> None:
        """The page was closed: end all work, so that nothing more is spent."""
        self._picked.pop(visitor, None)
        visit = self.visits.pop(visitor, None)
        if visit is not None:
            await visit.stop()
        self.workbench.forget(visitor)

    async def _go(self, visitor: str, asked: Sequence[Any], *, steps: bool) -> AsyncIterator[list[Any]]:
        visit = self._visit(visitor)
        async for _ in visit.go(self._setup(asked), steps=steps):
            yield self._update(visit)
        yield self._update(visit)

    def _setup(self, asked: Sequence[Any]) -> Setup:
        chosen, text, evidence, comparing, *values = asked
        what_ifs = [what_if(values[: len(self.ours)])]
        if comparing:
            what_ifs.append(what_if(values[len(self.ours) :]))
        return setup(self.workbench, chosen, text, evidence, what_ifs)

    def _visit(self, visitor: str) -> LoopVisit:
        return self.visits.setdefault(visitor, LoopVisit(workbench=self.workbench, visitor=visitor))

    def _update(self, visit: LoopVisit, *, comparing: bool = False) -> list[Any]:
        """The whole display of a visit, in the order of `_SHOWN`."""
        import gradio as gr

        busy = visit.under_way
        provider = visit.setup.what_ifs[0].provider if visit.setup else self._provider
        update: list[Any] = [
            status(visit),
            gr.update(interactive=not busy),
            gr.update(interactive=not busy),
            gr.update(interactive=busy),
            self._wait(provider),
        ]
        both = comparing or (visit.setup is not None and len(visit.setup.what_ifs) > 1)
        for index in (0, 1):
            begun = index < len(visit.walks)
            update += self._side(visit, index, both=both) if begun else _before(self.repairs, index, both=both)
        return update

    def _side(self, visit: LoopVisit, index: int, *, both: bool) -> list[str]:
        """The display of one configuration, in the order of `_PARTS`."""
        walk, setup_ = visit.walks[index], visit.setup
        assert setup_ is not None
        sight = walk.sight
        lit = Lit(active=sight.node, visited=sight.visited, done=sight.status == "done")
        graph = (_heading(setup_, index) if both else "") + drawing(self.repairs, lit, compact=both)
        answer = outcome(sight.answer, setup_.golds) if sight.answer is not None else ""
        return [graph, answer, stages(sight, walk.engine.settings), timeline(sight)]

    def _wait(self, provider: str) -> str:
        words = (expected_wait(self.workbench, provider), spending_cap(self.workbench, provider))
        return f'<p class="m-note">{escape(" ".join(one for one in words if one))}</p>'


def _before(repairs: Sequence[str], index: int, *, both: bool) -> list[str]:
    """A side before anything has run on it, in the order of `_PARTS`."""
    words = "The run of the second configuration with the same question appears here."
    empty = f'<p class="m-note">{words}</p>' if index else introduction()
    return [drawing(repairs, compact=both), "", empty if both or not index else "", ""]


def _heading(setup_: Setup, index: int) -> str:
    """The configuration of this side, and its differences."""
    own, other = setup_.what_ifs[index], setup_.what_ifs[1 - index]
    words = "; ".join(own.differences(other)) or "the same settings"
    return f'<h3 class="m-side-head">{"AB"[index]} <small>{escape(words)}</small></h3>'


STEPS = (
    ("Cognition", "A draft is written, quoting the evidence first."),
    ("Monitoring", "Single facts are looked up and combined in code; draft, derivation and other routes vote."),
    (
        "Evaluating",
        "The deficit is named: the draft lacks a fact, background knowledge, fidelity to the passages, or sound logic.",
    ),
    ("Planning", "Each deficit has its own repair: searches, and a directive for the next draft."),
    ("Remediation", "New evidence is added, the draft is rewritten, and the monitor checks it again."),
)


def introduction() -> str:
    """The introduction for a first-time visitor."""
    steps = "".join(f"<li><strong>{escape(name)}</strong><span>{escape(words)}</span></li>" for name, words in STEPS)
    claim = "An ordinary system stops at its first draft. This one asks whether it is right."
    begin = (
        "Choose a question and press <strong>Run</strong>, or take one node at a time with <strong>Next step</strong> "
        "or the right arrow key."
    )
    return f'<div class="m-intro"><h3>{claim}</h3><ol>{steps}</ol><p>{begin}</p></div>'


def status(visit: LoopVisit) -> str:
    """The line as HTML; screen readers announce changes."""
    kind, words = _status(visit)
    return f'<p class="m-status m-is-{kind}" role="status" aria-live="polite">{escape(words)}</p>'


def fetching(name: str) -> str:
    """The status line while a set of questions is being fetched."""
    words = f"Fetching the questions of {escape(name)} from the Hugging Face hub; the first time takes longest."
    return f'<p class="m-status m-is-working" role="status">{words}</p>'


def _status(visit: LoopVisit) -> tuple[str, str]:
    if visit.fault:
        return "failed", visit.fault
    sights = visit.sights
    if not sights:
        if visit.under_way:
            return "working", "Opening the model and the evidence; the first time takes longest."
        stopped = visit.setup is not None
        return ("stopped", "Stopped before it started.") if stopped else ("ready", "Ready.")
    if len(sights) > 1:
        return _of_two(sights)
    return sights[0].status, line(sights[0])


def _of_two(sights: Sequence[LoopView]) -> tuple[str, str]:
    kinds = [sight.status for sight in sights]
    order = ("failed", "working", "stopped", "paused", "done")
    worst = next((kind for kind in order if kind in kinds), "ready")
    both = " ".join(f"{name}: {line(sight)}" for name, sight in zip("AB", sights, strict=False))
    return worst, both


def line(sight: LoopView) -> str:
    """The current activity of one walk, in a sentence."""
    node = spoken(sight.node or "")
    if sight.status == "working":
        doubted = sight.monitored is not None and not sight.monitored.satisfied
        if doubted:
            return "Evaluating: the critic looks for faults."
        plan = sight.plan
        return f"{at_work(sight.node, repaired=plan.deficit if plan is not None else '')}."
    words = {
        "ready": "Ready.",
        "paused": f"Paused; the next step is “{node}”.",
        "stopped": f"Stopped in “{node}”; Run or Next step continues from there." if node else "Stopped.",
        "failed": sight.fault,
        "done": f"Done in {sight.seconds:.1f} s: {_repairs(len(sight.rounds) - 1)}.",
    }
    return words[sight.status]


def _repairs(number: int) -> str:
    return f"{counted(number, 'repair')} made" if number > 0 else "the first draft was kept"


EMBEDDED_SECONDS_A_CALL = 10.0
"""Of SmolLM2-135M on 2 cores, used until something is measured here: the README's recorded run, 32 s for 3.1 calls."""
_CALLS_OF_A_DRAFT = 2
_CALLS_OF_A_REPAIR = 3


def expected_wait(workbench: Workbench, provider: str) -> str:
    """The expected wait in a sentence; empty for a provider that answers within seconds."""
    if provider != EMBEDDED:
        return ""
    a_call = workbench.seconds_a_call(provider) or EMBEDDED_SECONDS_A_CALL
    return (
        f"The model on this machine takes about {a_call:.0f} s per call: expect {_CALLS_OF_A_DRAFT * a_call:.0f} s "
        f"if the first draft is kept, and {_CALLS_OF_A_REPAIR * a_call:.0f} s for every repair."
    )


def spending_cap(workbench: Workbench, provider: str) -> str:
    """The visitor's spending cap in a sentence; empty if calls cost nothing."""
    if provider in {EMBEDDED, ""}:
        return ""
    if workbench.is_capped(provider):
        return f"Your calls stop before they cost more than ${workbench.settings.demo_visitor_usd:g}."
    return "The price of this model is unknown, so no spending cap can be enforced."
