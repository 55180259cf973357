"""The state of the shell's loop and commands, and the actions that a command may request from the loop."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...agent.grounded import GroundedAnswer
from ...chat.coach.coach import CoachReply
from ...chat.session import ChatSession
from ...llm.ledger import LedgerRow, Totals, total
from ...settings import Settings
from ..shared.display import Screen

Load: TypeAlias = Callable[..., Settings]
"""Reloads the settings of this session, with changes as keyword arguments."""


Confirm: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks a question of yes or no."""


@dataclass(kw_only=True)
class Shell:
    """A session at a terminal.

    `changes` are the settings changed during the session, `last` is this process's last answer from documents,
    `coached` the coach's last reply if it came after that, `rows` all calls so far, including those of
    stopped and failed turns and of studies closed since. `confirmed` asks the user a question of yes or no; it is
    `None` if nobody can be asked.
    """

    study: ChatSession
    settings: Settings
    load: Load
    screen: Screen
    changes: dict[str, object] = field(default_factory=dict)
    last: GroundedAnswer | None = None
    coached: CoachReply | None = None
    rows: list[LedgerRow] = field(default_factory=list)
    confirmed: Confirm | None = None

    def __post_init__(self) -> None:
        self.take(self.study)

    def take(self, study: ChatSession) -> None:
        """Continue with a reopened study."""
        self.study = study
        study.conversation.model.ledger.listeners.append(self.rows.append)

    @property
    def totals(self) -> Totals:
        """The cost of this session."""
        return total(self.rows)


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Ends the session."""


@dataclass(frozen=True, kw_only=True)
class Reopen:
    """Reopens the study with changed settings; `said` is shown on success."""

    changes: dict[str, object]
    said: str


NextAction: TypeAlias = Leave | Reopen | None
