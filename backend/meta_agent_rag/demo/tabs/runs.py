"""The tab Runs: a benchmark run's scores, and a replay of each of its answers without calls."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MetaRagError
from ...retrieval.passage import Found
from ...settings import Settings
from ..cards import problem
from ..run_cards import about, plots, quality, quiet, table
from ..run_files import (
    RECORDED,
    SHOWN,
    Filter,
    Row,
    Run,
    answer_to,
    choices,
    counted,
    listed,
    methods,
    open_run,
    open_zip,
    run_names,
)
from ..workbench import Workbench
from .parts import (
    EVERY_STEP,
    FOREIGN,
    ComparisonPanel,
    Parts,
    Replay,
    Updates,
    comparison_panel,
    page,
    replay_parts,
    texts_of,
    uploaded_files,
)

if TYPE_CHECKING:
    import gradio as gr

_PARTS = ("method", "outcome", "deficit", "hops")
_FOREIGN = (*FOREIGN, csv.Error)
_OTHER = "This run was written by another version or is damaged; run it again."


@dataclass(frozen=True, kw_only=True)
class _Parts(Parts):
    """The components of the tab."""

    run: "gr.State"
    name: "gr.Dropdown"
    upload: "gr.UploadButton"
    about: "gr.HTML"
    method: "gr.Dropdown"
    outcome: "gr.Dropdown"
    deficit: "gr.Dropdown"
    hops: "gr.Dropdown"
    count: "gr.HTML"
    answers: "gr.Radio"
    replay: Replay
    table: "gr.Dropdown"
    cells: "gr.HTML"
    scores: "gr.HTML"
    plots: "gr.HTML"
    beside: ComparisonPanel

    @property
    def filters(self) -> list[Any]:
        """The parts of the filter, in the order of `_PARTS`."""
        return [getattr(self, name) for name in _PARTS]

    @property
    def all(self) -> list[Any]:
        """Every component, those of the replay included."""
        groups = (self.replay, self.beside)
        return [*(part for part in super().all if part not in groups), *self.replay.all, *self.beside.all]


def build(workbench: Workbench) -> None:
    """Lay the tab out."""
    import gradio as gr

    parts = _laid_out(workbench.runs_dir)
    tab = _Tab(parts=parts, runs_dir=workbench.runs_dir, settings=workbench.settings, texts=texts_of(workbench))
    quietly: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    def arrived(request: gr.Request) -> Updates:
        asked = request.query_params
        names = run_names(workbench.runs_dir)
        name = asked.get("run") or next(iter(RECORDED))
        chosen = gr.update(choices=list(names), value=name if name in names else None)
        return {parts.name: chosen, **tab.opened(name, asked.get("question") or "", asked.get("method") or "")}

    page().load(arrived, outputs=parts.all, **quietly)
    parts.name.input(tab.opened, parts.name, parts.all, api_visibility="private")
    parts.upload.upload(tab.uploaded, parts.upload, parts.all, api_visibility="private")
    for part in parts.filters:
        part.input(tab.filtered, [parts.run, *parts.filters], parts.all, **quietly)
    parts.answers.input(tab.replayed, [parts.run, parts.answers], parts.replay.all, **quietly)
    parts.replay.on_step(tab.stepping, [parts.run, parts.answers])
    pair = parts.beside
    pair.run.input(pair.another, [parts.run, pair.method, pair.run], pair.all, **quietly)
    for part in (pair.method, pair.other):
        part.input(pair.compared, [parts.run, pair.method, pair.run, pair.other], pair.all, **quietly)
    parts.table.input(tab.tabled, [parts.run, parts.table], parts.cells, **quietly)


@dataclass(frozen=True, kw_only=True)
class _Tab:
    """The behaviour of the tab; a fault is shown instead of the run's description."""

    parts: _Parts
    runs_dir: Path
    settings: Settings
    texts: Mapping[str, Found]

    def opened(self, name: str, question: str = "", method: str = "") -> Updates:
        """Open a run of the list, with the requested answer or the most repaired one."""
        return self._tried(lambda: open_run(name, self.runs_dir), question, method)

    def uploaded(self, file: str) -> Updates:
        """Open a run from the visitor's own machine."""
        return self._tried(lambda: open_zip(*uploaded_files([file])), "", "")

    def filtered(self, run: Run | None, *wanted: str) -> Updates:
        """The answers that match the filter, the first of them replayed."""
        if run is None:
            return {}
        try:
            return self._listing(run, Filter(**dict(zip(_PARTS, wanted, strict=True))))
        except _FOREIGN:
            return self._closed(_OTHER)

    def replayed(self, run: Run | None, place: str | None) -> Updates:
        """An answer with all its steps."""
        return self._replay(run, place, EVERY_STEP)

    def stepping(self, by: int) -> Callable[..., Updates]:
        """A button's handler: move N steps."""

        def stepped(run: Run | None, place: str | None, step: int) -> Updates:
            return self._replay(run, place, step + by)

        return stepped

    def tabled(self, run: Run | None, name: str | None) -> Updates:
        """A table of the report."""
        rows = run.tables.get(name or "", ()) if run is not None else ()
        return {self.parts.cells: table(rows, _words(name or ""))}

    def _tried(self, opening: Callable[[], Run], question: str, method: str) -> Updates:
        try:
            run = opening()
            return self._whole(run, question, method)
        except MetaRagError as fault:
            return self._closed(str(fault))
        except _FOREIGN:
            return self._closed(_OTHER)

    def _closed(self, words: str) -> Updates:
        return {**self._whole(_NO_RUN, "", ""), self.parts.run: None, self.parts.about: problem(words)}

    def _whole(self, run: Run, question: str, method: str) -> Updates:
        import gradio as gr

        parts, found = self.parts, answer_to(run, question, method)
        wanted = Filter(method=found["method"] if found is not None else next(iter(methods(run)), ""))
        values = {"method": wanted.method}
        names = list(run.tables)
        name = "quality" if "quality" in names else next(iter(names), None)
        return {
            parts.run: run,
            parts.about: about(run),
            **{
                getattr(parts, part): gr.update(choices=list(could), value=values.get(part, ""))
                for part, could in choices(run).items()
            },
            **self._listing(run, wanted, found),
            parts.table: gr.update(choices=[(_words(one), one) for one in names], value=name),
            **self.tabled(run, name),
            parts.scores: quality(run),
            parts.plots: plots(run),
            **parts.beside.opened(run),
        }

    def _listing(self, run: Run, wanted: Filter, found: Row | None = None) -> Updates:
        import gradio as gr

        labelled, many = listed(run, wanted), counted(run, wanted)
        place = str(run.rows.index(found)) if found is not None else labelled[0][1] if labelled else None
        count = f"{many} of {len(run.rows)} answers" + (f", the first {SHOWN} shown" if many > SHOWN else "")
        none = 'No answer matches; set a part of the filter to "any".'
        return {
            self.parts.count: quiet(f"{count}." if many else none),
            self.parts.answers: gr.update(choices=labelled, value=place),
            **self.replayed(run, place),
        }

    def _replay(self, run: Run | None, place: str | None, step: int) -> Updates:
        if run is None or place is None:
            return self.parts.replay.nothing()
        return self.parts.replay.at(run, run.rows[int(place)], step, self.settings, self.texts)


_NO_RUN = Run(name="", rows=())


def _words(name: str) -> str:
    return name.replace("-", " ")


def _laid_out(runs_dir: Path) -> _Parts:
    import gradio as gr

    run = gr.State(None)
    with gr.Row():
        name = gr.Dropdown(list(RECORDED), value=next(iter(RECORDED)), label="Run", scale=4)
        upload = gr.UploadButton("Open a packed run (.zip)", file_types=[".zip"], size="sm", scale=1, min_width=200)
    about = gr.HTML(quiet("Opening the recorded run."), elem_id="runs-about")
    with gr.Tabs():
        with gr.Tab("Answers"):
            with gr.Row():
                filters = [
                    gr.Dropdown([("any", "")], value="", label=label, min_width=140)
                    for label in ("Method", "Repair", "Deficit", "Hops")
                ]
            count = gr.HTML(elem_id="runs-count")
            with gr.Row():
                with gr.Column(scale=2, min_width=300):
                    answers = gr.Radio([], label="Answers", elem_id="runs-answers")
                with gr.Column(scale=3, min_width=320):
                    replay = replay_parts("Choose an answer to replay its rounds; no model is called.", "runs-replay")
        with gr.Tab("Scores"):
            scores = gr.HTML(quiet("No run is open."), elem_id="runs-scores")
        with gr.Tab("Tables"):
            chosen_table = gr.Dropdown([], label="Table of the report")
            cells = gr.HTML(elem_id="runs-table")
        with gr.Tab("Plots"):
            drawn = gr.HTML(quiet("No run is open."), elem_id="runs-plots")
        with gr.Tab("Compare"):
            pair = comparison_panel(runs_dir)
    return _Parts(
        run=run, name=name, upload=upload, about=about, method=filters[0], outcome=filters[1],
        deficit=filters[2], hops=filters[3], count=count, answers=answers, replay=replay,
        table=chosen_table, cells=cells, scores=scores, plots=drawn, beside=pair,
    )  # fmt: skip
