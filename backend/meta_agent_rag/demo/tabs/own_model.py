"""The panel above the tabs in which a visitor names a model of their own, where DEMO_OWN_MODELS allows it."""

import logging
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ...errors import MetaRagError
from ..cards import html, problem, quiet
from ..own_model import OwnModel
from ..vocabulary import unexpected
from .tab import Tab, Updates, visitor_of

if TYPE_CHECKING:
    import gradio as gr

_LOG = logging.getLogger(__name__)
_PROMISE = "The key is kept in memory until you leave this page, and sent to that address alone."


class OwnModelPanel(Tab):
    """Address, model and key; all tabs of the visitor's page then ask that model."""

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

    async def use(self, request: "gr.Request", address: str, model: str, key: str) -> Updates:
        """Ask the visitor's model from now on; the page does not keep the key."""
        import gradio as gr

        given = OwnModel(base_url=address.strip(), model=model.strip(), key=SecretStr(key.strip()))
        try:
            await self.workbench.bring(visitor_of(request), given)
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            if not isinstance(fault, MetaRagError):
                _LOG.exception("A visitor's model could not be opened.")
            return {"told": problem(unexpected(fault))}
        words = f"New questions are answered by your {given.model}."
        return {"told": html("status", "done", words), "key": "", "forget": gr.update(interactive=True)}

    async def forget(self, request: "gr.Request") -> Updates:
        """Ask the demo's model again."""
        import gradio as gr

        await self.workbench.forget(visitor_of(request))
        return {"told": quiet(_PROMISE), "key": "", "forget": gr.update(interactive=False)}
