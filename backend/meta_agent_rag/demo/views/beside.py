"""The part of the tab Runs that shows two methods' answers side by side, of the open run or of it and another."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import MetaRagError
from ...llm.providers import EMBEDDED
from ..components import Updates
from ..loop.status import problem
from ..runs.beside import beside, pairs
from ..runs.files import Run, open_run, run_names
from ..runs.filter import methods
from ..runs.html import quiet
from .replay import FOREIGN

if TYPE_CHECKING:
    import gradio as gr

THIS = ""
"""The option for the open run itself."""


@dataclass(frozen=True, kw_only=True)
class Beside:
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


def laid_out(runs_dir: Path) -> Beside:
    """Lay out the choices and the table."""
    import gradio as gr

    with gr.Row():
        method = gr.Dropdown([], label="A: method of the open run", min_width=200)
        run = gr.Dropdown([("the same run", THIS)], value=THIS, label="B: run", min_width=200)
        other = gr.Dropdown([], label="B: method", min_width=200)
    shown = gr.HTML(quiet("No run is open."), elem_id="runs-beside")
    return Beside(method=method, run=run, other=other, shown=shown, runs_dir=runs_dir)
