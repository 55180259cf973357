"""One request while it is served: the source of its response, its log line, its metrics and its audit row."""

import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..chat.session import Turn
    from ..llm.ledger import LedgerRow
    from ..llm.messages import Reply, Request
    from .access import Client
    from .resources import Service
    from .schemas import AskRequest

CLIENT_WENT = 499
"""The status in logs and records of a request whose client disconnected."""


def new_id() -> str:
    """32 hexadecimal digits that begin with the time, so that ids sort by time."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One model call: its ledger row, the messages, and the reply or error."""

    row: "LedgerRow"
    request: "Request"
    outcome: "Reply | BaseException"


class CallLog:
    """Adds every model call to the request that it was made for; a `Tape`."""

    def keep(self, row: "LedgerRow", request: "Request", outcome: "Reply | BaseException") -> None:
        """See `Tape`."""
        context = CURRENT.get()
        if context is not None:
            context.calls.append(ModelCall(row=row, request=request, outcome=outcome))


@dataclass(kw_only=True)
class RequestContext:
    """One request, filled in by the one task that serves it, with the resources of the service.

    `arrived` is a `time.monotonic` timestamp, `degraded` names tolerated failures. `asks` says that the response gets
    an audit row, `recorded` that this is done or under way. `status` is 0 until the response begins, `headers` are
    added to it.
    """

    service: "Service"
    request_id: str
    endpoint: str
    asks: bool = False
    query_id: str = field(default_factory=new_id)
    arrived: float = field(default_factory=time.monotonic)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    known_client: "Client | None" = None
    asked: "AskRequest | None" = None
    corpus: str | None = None
    degraded: dict[str, str] = field(default_factory=dict)
    calls: list[ModelCall] = field(default_factory=list)
    turn: "Turn | None" = None
    error: str | None = None
    message: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0
    streams: bool = False
    recorded: bool = False

    @property
    def client(self) -> "Client":
        """The client at an address that requires a key."""
        assert self.known_client is not None
        return self.known_client

    @property
    def deadline(self) -> float:
        """The `time.monotonic` timestamp by which the response is due."""
        return self.arrived + self.service.seconds

    def went(self) -> None:
        """Note that the client disconnected before the end."""
        self.error, self.message = "client_went", "The client disconnected before the end."


CURRENT: ContextVar[RequestContext | None] = ContextVar("request", default=None)
"""The request that the running task serves; tasks that it starts inherit it."""
