"""What the shell's loop and its commands work on, and what a command may ask of the loop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...agent.grounded import GroundedAnswer
from ...conversation.socratic.coach import CoachReply
from ...conversation.study import Study
from ...llm.ledger import LedgerRow, Totals, total
from ...settings import Settings
from .screen import Screen

Load: TypeAlias = Callable[..., Settings]
"""Reads the settings of this session anew, with changes as keyword arguments."""


@dataclass(kw_only=True)
class Shell:
    """A session at a terminal.

    `changes` are the settings that the user changed on the way, `last` is the last answer from documents of
    this process, `coached` the coach's last reply where that came after it, `closed` what studies cost that
    were reopened since.
    """

    study: Study
    settings: Settings
    load: Load
    screen: Screen
    changes: dict[str, object] = field(default_factory=dict)
    last: GroundedAnswer | None = None
    coached: CoachReply | None = None
    closed: tuple[LedgerRow, ...] = ()

    @property
    def rows(self) -> tuple[LedgerRow, ...]:
        """Every call of this session, those of stopped and failed turns as well."""
        return (*self.closed, *self.study.conversation.model.ledger.rows)

    @property
    def totals(self) -> Totals:
        """What this session has cost."""
        return total(self.rows)


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Ends the session."""


@dataclass(frozen=True, kw_only=True)
class Reopen:
    """Opens the study anew with changed settings; `said` is shown once that has worked."""

    changes: dict[str, object]
    said: str


Wish: TypeAlias = Leave | Reopen | None
