"""Everything a run depends on and is not: one frozen value, given to every node by LangGraph."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..llm.client import ModelSession
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.passage import Passage
from ..settings import Settings
from .deficits import DeficitRegistry
from .derivation.operator import Operator
from .oracles import NO_ORACLES, Oracles
from .routes.ballot import Voter


@dataclass(frozen=True, kw_only=True)
class Context:
    """Dependencies and policies of one question's run.

    `evidence` is what the caller supplies; without it `retriever` finds it, and follow-up retrieval is
    possible only then. `oracles` replace judgements by what a benchmark knows. `grounded` switches
    answers from memory off and lets the writer abstain (chat, service); a benchmark wants a best guess.
    `asked` are the user's own words, where the question was made from them. `manner` is told to the writer with
    every draft: how to write for this reader. `deadline` is a
    `time.monotonic` moment.
    """

    settings: Settings
    model: ModelSession
    monitor_encoder: AsyncEncoder
    deficits: DeficitRegistry
    operators: Mapping[str, Operator] = field(default_factory=dict)
    routes: Mapping[str, Voter] = field(default_factory=dict)
    retriever: Retriever | None = None
    evidence: tuple[Passage, ...] | None = None
    oracles: Oracles = NO_ORACLES
    grounded: bool = False
    asked: str = ""
    manner: str = ""
    deadline: float | None = None
