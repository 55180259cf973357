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
"""Reads the settings of this session again, with changes as keyword arguments."""


@dataclass(kw_only=True)
class Shell:
    """A session at a terminal.

    `changes` are the settings that the user changed on the way, `last` is the last answer from documents of
    this process, `coached` the coach's last reply where that came after it, `rows` every call so far, those of
    stopped and failed turns and of studies closed since as well.
    """

    study: Study
    settings: Settings
    load: Load
    screen: Screen
    changes: dict[str, object] = field(default_factory=dict)
    last: GroundedAnswer | None = None
    coached: CoachReply | None = None
    rows: list[LedgerRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.take(self.study)

    def take(self, study: Study) -> None:
        """Continue with a reopened study."""
        self.study = study
        study.conversation.model.ledger.listeners.append(self.rows.append)

    @property
    def totals(self) -> Totals:
        """What this session has cost."""
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
