"""The switches of one configuration, and the engine and retriever that they make."""

from dataclasses import dataclass, fields, replace
from typing import Literal

from ...agent.engine import Engine
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...settings import Settings

POLICY_NAMES = {
    "agreement": "the two short answers agree",
    "paper": "their cosine reaches the threshold",
    "calibrated": "a fitted chance of being right",
}


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What a visitor may change of one run; the fields are in the order of the switches."""

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
        """The switches as settings have them."""
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
        """The engine under this configuration."""
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
        """The retriever under this configuration; one that is not hybrid has no such switches."""
        if not isinstance(retriever, HybridRetriever):
            return retriever
        return replace(retriever, fusion=self.fusion, links=self.links)

    def differences(self, other: "WhatIf") -> tuple[str, ...]:
        """How this one differs from another, in words; empty where they are the same."""
        return tuple(
            f"{_NAMES[one.name]}: {_shown(getattr(self, one.name))}"
            for one in fields(self)
            if getattr(self, one.name) != getattr(other, one.name)
        )


_NAMES = {
    "policy": "monitor policy",
    "threshold": "cosine threshold",
    "rounds": "repairs at most",
    "convergence": "convergence",
    "top_k": "passages a search",
    "fusion": "fusion",
    "links": "links",
    "provider": "provider",
}


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
