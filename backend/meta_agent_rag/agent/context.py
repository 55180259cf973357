"""Everything a run depends on and is not: one frozen value, given to every node by LangGraph."""

import time
from dataclasses import dataclass

from ..llm.client import ModelSession
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Passage
from ..settings import Settings
from .deficits import DeficitRegistry


@dataclass(frozen=True, kw_only=True)
class Context:
    """Dependencies and policies of one question's run.

    `evidence` is what the caller supplies; without it `retriever` finds it, and follow-up retrieval is
    possible only then. `grounded` switches answers from memory off and lets the writer abstain
    (chat, service); a benchmark wants a best guess. `deadline` is a `time.monotonic` moment.
    """

    settings: Settings
    model: ModelSession
    monitor_encoder: AsyncEncoder
    deficits: DeficitRegistry
    retriever: Retriever | None = None
    evidence: tuple[Passage, ...] | None = None
    grounded: bool = False
    deadline: float | None = None

    def seconds_left(self) -> float:
        """Time until the deadline; infinite where there is none."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    def evidence_tokens(self) -> int:
        """Tokens that evidence may take in a prompt: the setting, or what the model's window leaves."""
        provider = self.model.owner.choice.provider
        window = self.settings.embedded_context_tokens if provider.name == "embedded" else provider.context
        return max(min(self.settings.evidence_tokens, window - _ROOM_FOR_TASK_AND_REPLY), 256)


_ROOM_FOR_TASK_AND_REPLY = 1800
