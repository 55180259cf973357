"""What is known of one request while it is served: the source of its log line and of its audit row."""

import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ..agent.grounded import GroundedAnswer
    from ..conversation.socratic.coach import CoachReply
    from ..llm.exchange import Reply, Request
    from ..llm.ledger import LedgerRow


def new_id() -> str:
    """32 hexadecimal digits that begin with the time, so that later ids sort behind earlier ones."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


@dataclass(frozen=True, kw_only=True)
class Client:
    """Who holds a key, and what the key allows. `daily_usd` caps what its questions may cost in a UTC day."""

    id: str
    name: str
    scopes: frozenset[str]
    daily_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One call of a model: its ledger row, what was sent, and the reply or what was raised."""

    row: "LedgerRow"
    request: "Request"
    outcome: "Reply | BaseException"


@dataclass(frozen=True, kw_only=True)
class SmallTalk:
    """What is said to a message that no document is needed for; `intent` is what it wants."""

    text: str
    intent: str


Result: TypeAlias = "GroundedAnswer | CoachReply | SmallTalk"


@dataclass(kw_only=True)
class RequestRecord:
    """One request; filled in as it is served, by the one task that serves it.

    `arrived` is a `time.monotonic` moment, `seconds` are durations by stage, `degraded` names what failed
    and was survived. `filed` says that its audit row was written.
    """

    request_id: str
    endpoint: str
    query_id: str = field(default_factory=new_id)
    answer_id: str = field(default_factory=new_id)
    arrived: float = field(default_factory=time.monotonic)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    client: Client | None = None
    question: str = ""
    source_mode: str = ""
    mode: str = ""
    corpus: str | None = None
    session: str | None = None
    queries: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    degraded: dict[str, str] = field(default_factory=dict)
    calls: list[ModelCall] = field(default_factory=list)
    result: "Result | None" = None
    error: str | None = None
    message: str | None = None
    filed: bool = False

    def took(self, stage: str, seconds: float) -> None:
        """Add to the time of a stage."""
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + seconds, 4)
