"""An immutable registry of deficits, passed as an argument to whatever derives from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...discovery import calling, contributed, named, require_result
from ...errors import DuplicateNameError, InputError
from ..facts.findings import Finding, Findings
from ..state import Signals
from .deficit import Deficit

ENTRY_POINT_GROUP = "meta_agent_rag.deficits"
_CONSTANT = "DEFICIT"


@dataclass(frozen=True, kw_only=True)
class DeficitRegistry:
    """Deficits sorted by name; names are unique."""

    deficits: tuple[Deficit, ...]

    def __post_init__(self) -> None:
        if not self.deficits:
            raise InputError("At least one deficit is needed; exclude fewer.")
        seen: set[str] = set()
        for deficit in self.deficits:
            if deficit.name in seen:
                raise DuplicateNameError(
                    f"Two deficits are named {deficit.name!r} (built-in, of a package, or in DEFICITS_DIR); rename or "
                    "remove one."
                )
            seen.add(deficit.name)

    def __iter__(self) -> Iterator[Deficit]:
        return iter(self.deficits)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(deficit.name for deficit in self.deficits)

    def __getitem__(self, name: str) -> Deficit:
        return named("deficit", name, {deficit.name: deficit for deficit in self.deficits})

    def without(self, names: Sequence[str]) -> "DeficitRegistry":
        """A copy of the registry without the named deficits, as in the paper's ablations."""
        for name in names:
            self[name]
        return DeficitRegistry(deficits=tuple(deficit for deficit in self.deficits if deficit.name not in names))

    def guess(self, signals: Signals | None) -> Deficit:
        """The deficit chosen by the rules: the lowest priority whose heuristic holds, else the last resort."""
        for deficit in self._by_priority:
            with calling("deficit", deficit.name, deficit.heuristic):
                if signals is not None and deficit.heuristic(signals):
                    return deficit
        return self._last_resort

    def found(self, findings: Findings) -> tuple[Deficit, Finding]:
        """The deficit chosen by the facts: the lowest priority whose rule finds something new, else the last resort."""
        for deficit in self._by_priority:
            with calling("deficit", deficit.name, deficit.rule):
                finding = deficit.rule(findings)
                require_result(finding, Finding, or_none=True)
            if finding is not None and (deficit.name, finding.about) not in findings.tried:
                return deficit, finding
        return self._last_resort, Finding(why="the other routes lead to another answer")

    @property
    def _by_priority(self) -> list[Deficit]:
        return sorted(self.deficits, key=lambda deficit: (deficit.priority, deficit.name))

    @property
    def _last_resort(self) -> Deficit:
        return next((deficit for deficit in self.deficits if deficit.last_resort), self._by_priority[-1])


def discover_deficits(folder: Path | None = None) -> DeficitRegistry:
    """The built-in deficits, those of installed packages, and those of `folder` (DEFICITS_DIR)."""
    return DeficitRegistry(
        deficits=contributed(
            __package__, _CONSTANT, Deficit, group=ENTRY_POINT_GROUP, folder=folder, setting="DEFICITS_DIR"
        )
    )


def as_markdown(deficits: DeficitRegistry) -> str:
    """A Markdown table with one row per deficit."""
    rows = ["| deficit | when | repair | answer mode | retrieves |", "|---|---|---|---|---|"]
    rows += [
        f"| `{deficit.name}` | {deficit.when} | {deficit.directive} | `{deficit.answer_mode}` | "
        f"{'yes' if deficit.retrieves else 'no'} |"
        for deficit in deficits
    ]
    return "\n".join(rows)
