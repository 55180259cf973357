"""The tab Tour: recorded answers that show what the loop does, stage by stage, without a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...retrieval.passage import Found
from ...settings import Settings
from ..run_cards import opening, primer
from ..run_files import Stop, recorded_runs, tour
from ..workbench import Workbench
from .parts import Replay, Updates, page, replay_parts, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WHAT = (
    "Recorded answers of a 1.5B model. <em>Next step</em>, or the right arrow key, shows how a draft is questioned and "
    "repaired."
)


def build(workbench: Workbench) -> None:
    """Lay the tab out."""
    import gradio as gr

    stops = tour()
    shown = opening(stops[0]) if stops else ""
    gr.HTML(f'{shown}<p class="m-note">{_WHAT}</p>{primer(recorded_runs())}', elem_id="tour-primer")
    with gr.Row(elem_classes="m-loop"):
        with gr.Column(scale=2, min_width=300, elem_classes="m-controls"):
            labels = [(f"{stop.shows}. {stop.row['question']}", str(place)) for place, stop in enumerate(stops)]
            chosen = gr.Radio(labels, value="0", label="Questions", elem_id="tour-stops")
        with gr.Column(scale=3, min_width=320):
            replay = replay_parts("Opening the first question.", "tour-replay")
    tab = _Tab(replay=replay, stops=stops, settings=workbench.settings, texts=texts_of(workbench))
    quietly: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    page().load(tab.opened, chosen, replay.all, **quietly)
    chosen.input(tab.opened, chosen, replay.all, **quietly)
    replay.on_step(tab.stepping, [chosen])


@dataclass(frozen=True, kw_only=True)
class _Tab:
    """The behaviour of the tab."""

    replay: Replay
    stops: tuple[Stop, ...]
    settings: Settings
    texts: "Mapping[str, Found]"

    def opened(self, place: str | None) -> Updates:
        """A question with the first two steps: the initial evidence, and the first draft."""
        return self._at(place, 2)

    def stepping(self, by: int) -> "Callable[..., Updates]":
        """A button's handler: move N steps."""

        def stepped(place: str | None, step: int) -> Updates:
            return self._at(place, step + by)

        return stepped

    def _at(self, place: str | None, step: int) -> Updates:
        if place is None or not self.stops:
            return self.replay.nothing()
        stop = self.stops[int(place)]
        return self.replay.at(stop.run, stop.row, step, self.settings, self.texts)
