"""The what-if controls of one configuration, and their way back to a `WhatIf`."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ...agent.monitoring.monitor import POLICIES
from ..workbench import Workbench
from .what_if import POLICY_NAMES, WhatIf


def switches(workbench: Workbench, start: WhatIf, *, name: str) -> list[Any]:
    """Controls in the order of the fields of `WhatIf`; `name` begins their ids, which a page has once each."""
    import gradio as gr

    def id_(field: str) -> str:
        return f"{name}-{field}"

    policies = [known for known in POLICIES if known != "calibrated" or workbench.settings.monitor_calibration]
    return [
        gr.Dropdown(
            [(f"{known}: {POLICY_NAMES.get(known, known)}", known) for known in sorted(policies)],
            value=start.policy,
            label="The monitor is satisfied where",
            elem_id=id_("policy"),
        ),
        gr.Slider(
            -1.0,
            1.0,
            value=start.threshold,
            step=0.05,
            label="Cosine threshold",
            info="In force under the policy “paper”.",
            elem_id=id_("threshold"),
        ),
        gr.Slider(
            0,
            10,
            value=start.rounds,
            step=1,
            label="Repairs at most",
            info="0: no second thoughts.",
            elem_id=id_("rounds"),
        ),
        gr.Slider(
            0.0,
            1.0,
            value=start.convergence,
            step=0.05,
            label="Converged at",
            info="Likeness of two drafts at which repairing ends.",
            elem_id=id_("convergence"),
        ),
        gr.Slider(1, 20, value=start.top_k, step=1, label="Passages a search brings", elem_id=id_("top-k")),
        gr.Radio(
            [("reciprocal ranks", "rrf"), ("weighted blend", "blend")],
            value=start.fusion,
            label="Fusion of the two searches",
            info="Over a corpus.",
            elem_id=id_("fusion"),
        ),
        gr.Checkbox(value=start.links, label="Follow links across hops", info="Over a corpus.", elem_id=id_("links")),
        gr.Dropdown(workbench.provider_names(), value=start.provider, label="Model", elem_id=id_("provider")),
    ]


def what_if(values: Sequence[Any]) -> WhatIf:
    """The configuration that the controls' values make."""
    named = dict(zip((field.name for field in fields(WhatIf)), values, strict=True))
    return WhatIf(**{**named, "rounds": int(named["rounds"]), "top_k": int(named["top_k"])})
