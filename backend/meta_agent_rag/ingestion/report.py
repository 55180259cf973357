"""The results for the files of an ingestion."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .document import RefusalKind

Status: TypeAlias = Literal["added", "replaced", "moved", "unchanged", "skipped", "pruned", "gone"]
"""`moved`: the same content at a new path, the old one gone. `gone`: the file is gone, the document is kept."""


@dataclass(frozen=True, kw_only=True)
class FileOutcome:
    """One file. `reason` is a clause; `refusal` the kind of a parser's reason; `broken` makes it a failure."""

    source: str
    status: Status
    reason: str | None = None
    refusal: RefusalKind | None = None
    passages: int = 0
    broken: bool = False


@dataclass(frozen=True, kw_only=True)
class IngestProgress:
    """Progress: files examined, and passages encoded out of those known to need it."""

    files: int
    of_files: int
    passages: int
    of_passages: int


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """The result of an ingestion. `encoded` counts passages whose vectors had to be computed."""

    corpus: str
    outcomes: tuple[FileOutcome, ...]
    encoded: int
    seconds: float

    @property
    def failed(self) -> bool:
        """Was a broken file skipped?"""
        return any(outcome.broken for outcome in self.outcomes)

    @property
    def counts(self) -> Mapping[Status, int]:
        """The number of files per status."""
        return Counter(outcome.status for outcome in self.outcomes)
