"""What became of the files of an ingestion."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .document import RefusalKind

Status: TypeAlias = Literal["added", "replaced", "moved", "unchanged", "skipped", "pruned", "gone"]
"""`moved`: the same content under a new path, whose old one is gone. `gone`: the file is, the document stays."""


@dataclass(frozen=True, kw_only=True)
class FileOutcome:
    """One file. `reason` is a clause; `refusal` the kind of reason that a parser gave; `broken` makes it a failure."""

    source: str
    status: Status
    reason: str | None = None
    refusal: RefusalKind | None = None
    passages: int = 0
    broken: bool = False


@dataclass(frozen=True, kw_only=True)
class IngestProgress:
    """Progress: files examined, and passages encoded of those known to need it."""

    files: int
    of_files: int
    passages: int
    of_passages: int


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """What an ingestion did. `encoded` counts passages whose vectors had to be computed."""

    corpus: str
    outcomes: tuple[FileOutcome, ...]
    encoded: int
    seconds: float

    @property
    def failed(self) -> bool:
        """Was a file skipped that is broken?"""
        return any(outcome.broken for outcome in self.outcomes)

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many files met each fate."""
        return Counter(outcome.status for outcome in self.outcomes)
