"""What a deficit is, what it sees of a draft, and the registry of all deficits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, get_args

from ...discovery import calling, contributed, named, require_functions, require_name, require_result
from ...errors import DuplicateNameError, InputError
from ...text.normalise import normalised
from ..derivation import Derivation, Fact
from ..routes import Vote
from ..routes.vote import upholds
from ..state import NO_DEFICIT, AnswerMode, Draft, Repair, Signals


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A draft that the vote did not elect, and everything known about it.

    `searched` holds the questions of the facts that were already searched; `may_search` says whether a search is
    possible at all, `may_remember` whether answers from memory are allowed. `tried` holds the earlier diagnoses: a
    deficit, and the question of the fact that it concerned.
    """

    question: str
    draft: Draft
    signals: Signals
    derivation: Derivation
    vote: Vote
    searched: frozenset[str]
    remembered: frozenset[str]
    tried: frozenset[tuple[str, str | None]]
    may_search: bool
    may_remember: bool

    @property
    def to_search(self) -> Fact | None:
        """The first open fact that has not been searched yet."""
        if not self.may_search:
            return None
        return next((fact for fact in self.derivation.open_facts if fact.asked not in self.searched), None)

    @property
    def to_remember(self) -> Fact | None:
        """The first open fact not yet recalled from memory, once nothing is left to search."""
        if not self.may_remember or self.to_search is not None:
            return None
        return next((fact for fact in self.derivation.open_facts if fact.asked not in self.remembered), None)

    @property
    def unsettled(self) -> Fact | None:
        """The next open fact to search or recall, if any."""
        return self.to_search or self.to_remember

    @property
    def last_fact(self) -> Fact | None:
        """The fact at the end of the only chain, if the passages give it: its value is the derived answer."""
        plan = self.derivation.plan
        if plan is None or len(plan.chains) != 1 or not self.derivation.facts:
            return None
        last = self.derivation.facts[-1]
        whole = last.index == len(plan.chains[0].facts) - 1
        return last if whole and last.open is None and not last.from_memory else None

    @property
    def follows(self) -> bool:
        """Did the vote elect what follows from the facts?"""
        return bool(self.derivation.answer) and upholds(self.vote, self.derivation.answer)

    @property
    def names_an_earlier_fact(self) -> Fact | None:
        """The fact at which the draft stopped: its answer is the value of an earlier hop."""
        said = normalised(self.draft.short_answer)
        return next((fact for fact in self.derivation.facts[:-1] if said and normalised(fact.value) == said), None)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Why a deficit applies, in one sentence, and the fact concerned; `None` if it concerns the answer as a whole."""

    why: str
    fact: Fact | None = None

    @property
    def about(self) -> str | None:
        """The question of the fact."""
        return self.fact.asked if self.fact is not None else None


Heuristic: TypeAlias = Callable[[Signals], bool]
Rule: TypeAlias = Callable[[Findings], Finding | None]
RESERVED = (NO_DEFICIT, "retrieve", "write", "diagnose", "remediate", "stop")
"""Reserved names: what a diagnosis reports for a sound draft, and the graph's own nodes."""


@dataclass(frozen=True, kw_only=True)
class Deficit:
    """A category of inadequate answers and its repair.

    - `when`: one clause for the critic, completing "the deficit is NAME when ...".
    - `directive`: what the next write is told to do.
    - `answer_mode`: the sources that it may use: `evidence`, `memory` or `evidence_and_memory`.
    - `retrieves`: search with the critic's suggested queries first.
    - `examples`: short cases that the critic sees.
    - `quadrant`: (does memory suffice, does the evidence suffice) in the cases that it is meant for, against which
      a benchmark judges diagnoses; `None` if these two do not determine it.
    - `heuristic`, `priority`: if the critic fails, the deficit with the lowest `priority` whose
      heuristic holds is chosen.
    - `rule`: with DIAGNOSIS=facts, the deficit with the lowest `priority` whose rule finds something is chosen.
    - `last_resort`: chosen if no heuristic holds and no rule finds anything. If no deficit is a last resort, the one
      with the highest `priority` is chosen.
    - `repair`: how a diagnosis by facts is repaired. `rewrite` writes a new draft under the directive, `reread` one
      from the cited passages alone, `look_up` asks for the fact again (from the evidence, or from memory if that is the
      `answer_mode`) and derives the answer, `conclude` takes what follows from the facts, or what the vote elected.
    """

    name: str
    when: str
    directive: str
    answer_mode: AnswerMode
    retrieves: bool
    examples: tuple[str, ...] = ()
    quadrant: tuple[bool, bool] | None = None
    priority: int = 100
    last_resort: bool = False
    heuristic: Heuristic = lambda signals: False
    rule: Rule = lambda findings: None
    repair: Repair = "rewrite"

    def __post_init__(self) -> None:
        require_name("deficit", self.name, RESERVED)
        require_functions("deficit", self, "heuristic", "rule")
        for field in ("when", "directive"):
            if not getattr(self, field).strip():
                raise InputError(f"The deficit {self.name!r} has an empty {field!r}; write one sentence.")
        examples: object = self.examples
        if not isinstance(examples, list | tuple) or not all(isinstance(case, str) for case in examples):
            raise InputError(f"The deficit {self.name!r} must have a list of texts as examples.")
        object.__setattr__(self, "examples", tuple(examples))
        if self.repair not in get_args(Repair):
            raise InputError(
                f"The deficit {self.name!r} has the repair {self.repair!r}; use one of: {', '.join(get_args(Repair))}."
            )
        if self.answer_mode not in ("evidence", "memory", "evidence_and_memory"):
            raise InputError(
                f"The deficit {self.name!r} has the answer_mode {self.answer_mode!r}; "
                "choose 'evidence', 'memory' or 'evidence_and_memory'."
            )


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
