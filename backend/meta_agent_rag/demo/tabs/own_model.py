"""The panel above the tabs in which a visitor names a model of their own, where DEMO_OWN_MODELS allows it."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ...errors import MetaRagError
from ..cards import html, problem, quiet
from ..own_model import OwnModel
from ..vocabulary import unexpected
from .tab import Tab, Tell, Updates, visitor_of

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)
_PROMISE = "The key is kept in memory until you leave this page, and sent to that address alone."


@dataclass(kw_only=True, eq=False)
class OwnModelPanel(Tab):
    """Address, model and key; all `others` of the visitor's page then ask that model."""

    others: Sequence[Tab]

    def lay_out(self) -> None:
        """See `Tab`."""
        import gradio as gr

        parts = self.parts
        with gr.Accordion("Answer with a model of your own", open=False, elem_id="own-model"):
            with gr.Row():
                label = "Address of an OpenAI-compatible server"
                parts["address"] = gr.Textbox(label=label, placeholder="https://…/v1", elem_id="own-address")
                parts["model"] = gr.Textbox(label="Model", elem_id="own-name", min_width=140)
                parts["key"] = gr.Textbox(label="Key", type="password", elem_id="own-key", min_width=140)
            with gr.Row():
                parts["use"] = gr.Button("Use this model", variant="primary", elem_id="own-use")
                parts["forget"] = gr.Button("Forget it", interactive=False, elem_id="own-forget")
            parts["told"] = gr.HTML(quiet(_PROMISE), elem_id="own-told")

    def connect(self, page: "gr.Blocks") -> None:
        """See `Tab`."""
        self.on(self.parts["use"].click, self.use, ["address", "model", "key"])
        self.on(self.parts["forget"].click, self.forget)

    async def use(self, request: "gr.Request", address: str, model: str, key: str) -> AsyncIterator[Updates]:
        """Ask the visitor's model from now on; the page does not keep the key."""
        import gradio as gr

        visitor = visitor_of(request)
        given = OwnModel(base_url=address.strip(), model=model.strip(), key=SecretStr(key.strip()))

        async def work(tell: Tell) -> None:
            try:
                await given.check(self.workbench.settings.demo_own_models)
                await self._end_work(visitor)
                await self.workbench.bring(visitor, given)
            except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
                if not isinstance(fault, MetaRagError):
                    _LOG.exception("A visitor's model could not be opened.")
                tell({"told": problem(unexpected(fault))})
                return
            words = f"New questions are answered by your {given.model}."
            tell({"told": html("status", "done", words), "key": "", "forget": gr.update(interactive=True)})

        async for updates in self.activities.run(visitor, work):  # which ends when the page is closed
            yield updates

    async def _end_work(self, visitor: str) -> None:
        """End what the visitor's other tabs do, since it asks a model that is about to be closed."""
        for tab in self.others:
            await tab.activities.end(visitor)

    async def forget(self, request: "gr.Request") -> Updates:
        """Ask the demo's model again."""
        import gradio as gr

        visitor = visitor_of(request)
        await self.activities.drop(visitor)
        await self._end_work(visitor)
        await self.workbench.forget(visitor)
        return {"told": quiet(_PROMISE), "key": "", "forget": gr.update(interactive=False)}
