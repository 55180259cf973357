"""The switches of one configuration, and the engine and retriever that they configure."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from ...agent.engine import Engine
from ...agent.monitor import POLICIES
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...settings import Settings
from ..workbench import Workbench

POLICY_NAMES = {
    "agreement": "the two short answers agree",
    "paper": "their cosine reaches the threshold",
    "calibrated": "a fitted probability of being correct",
}


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The settings of a run that a visitor may change; the fields are in the order of the switches."""

    policy: str
    threshold: float
    rounds: int
    convergence: float
    top_k: int
    fusion: Literal["rrf", "blend"]
    links: bool
    provider: str

    @classmethod
    def of(cls, settings: Settings, provider: str) -> "WhatIf":
        """The switches set as in the settings."""
        return cls(
            policy=settings.monitor_policy,
            threshold=settings.monitor_similarity_threshold,
            rounds=settings.max_metacognitive_rounds,
            convergence=settings.convergence_threshold,
            top_k=settings.retrieval_top_k,
            fusion=settings.fusion,
            links=settings.links,
            provider=provider,
        )

    def engine(self, engine: Engine) -> Engine:
        """The engine with this configuration."""
        changed = {
            "monitor_policy": self.policy,
            "monitor_similarity_threshold": self.threshold,
            "max_metacognitive_rounds": self.rounds,
            "convergence_threshold": self.convergence,
            "retrieval_top_k": self.top_k,
            "fusion": self.fusion,
            "links": self.links,
        }
        return replace(engine, settings=engine.settings.model_copy(update=changed))

    def retriever(self, retriever: Retriever) -> Retriever:
        """The retriever with this configuration; one that is not hybrid has no such switches."""
        if not isinstance(retriever, HybridRetriever):
            return retriever
        return replace(retriever, fusion=self.fusion, links=self.links)

    def differences(self, other: "WhatIf") -> tuple[str, ...]:
        """The differences from another one in words; empty if they are the same."""
        return tuple(
            f"{_NAMES[one.name]}: {_shown(getattr(self, one.name))}"
            for one in fields(self)
            if getattr(self, one.name) != getattr(other, one.name)
        )


_NAMES = {
    "policy": "monitor policy",
    "threshold": "cosine threshold",
    "rounds": "maximum repairs",
    "convergence": "convergence",
    "top_k": "passages per search",
    "fusion": "fusion",
    "links": "links",
    "provider": "provider",
}


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def switches(workbench: Workbench, start: WhatIf, *, name: str) -> list[Any]:
    """Controls in the order of the fields of `WhatIf`; `name` is the prefix of their ids, which must be unique."""
    import gradio as gr

    def id_(field: str) -> str:
        return f"{name}-{field}"

    policies = [known for known in POLICIES if known != "calibrated" or workbench.settings.monitor_calibration]
    return [
        gr.Dropdown(
            [(f"{known}: {POLICY_NAMES.get(known, known)}", known) for known in sorted(policies)],
            value=start.policy,
            label="The monitor is satisfied if",
            elem_id=id_("policy"),
        ),
        gr.Slider(
            -1.0,
            1.0,
            value=start.threshold,
            step=0.05,
            label="Cosine threshold",
            info="Applies to the policy “paper”.",
            elem_id=id_("threshold"),
        ),
        gr.Slider(
            0,
            10,
            value=start.rounds,
            step=1,
            label="Maximum repairs",
            info="0: the first draft is final.",
            elem_id=id_("rounds"),
        ),
        gr.Slider(
            0.0,
            1.0,
            value=start.convergence,
            step=0.05,
            label="Converged at",
            info="Similarity of two drafts at which repairing stops.",
            elem_id=id_("convergence"),
        ),
        gr.Slider(1, 20, value=start.top_k, step=1, label="Passages per search", elem_id=id_("top-k")),
        gr.Radio(
            [("reciprocal ranks", "rrf"), ("weighted blend", "blend")],
            value=start.fusion,
            label="Fusion of the two searches",
            info="With a corpus.",
            elem_id=id_("fusion"),
        ),
        gr.Checkbox(value=start.links, label="Follow links across hops", info="With a corpus.", elem_id=id_("links")),
        gr.Dropdown(workbench.provider_names(), value=start.provider, label="Model", elem_id=id_("provider")),
    ]


def what_if(values: Sequence[Any]) -> WhatIf:
    """The configuration set by the controls."""
    named = dict(zip((field.name for field in fields(WhatIf)), values, strict=True))
    return WhatIf(**{**named, "rounds": int(named["rounds"]), "top_k": int(named["top_k"])})
