"""What a deficit is, what it sees of a draft, and the registry of all deficits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ...discovery import calling, contributed, named, require_functions, require_name, require_result
from ...errors import DuplicateNameError, InputError
from ...retrieval.passage import Found
from ...text.normalise import normalised
from ..derivation import Derivation, Fact
from ..routes import Vote
from ..routes.vote import same, upholds
from ..state import NO_DEFICIT, AnswerMode, Diagnosis, Draft, Repair, Signals, State


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A draft that may be inadequate, and everything known about it.

    - `question`, `passages`: what was asked, and the passages that prompts show, with their scores.
    - `draft`, `drafts`: the draft, and all drafts so far, the earliest first.
    - `signals`: the monitor's measurements.
    - `derivation`: the plan, the facts with their values and passages (`facts`), and the answer that follows.
    - `vote`: the ballots, and the elected answer; `None` if the monitor takes no vote.
    - `searched`, `remembered`: the questions of the facts that were already searched, or recalled from memory.
    - `tried`: the earlier diagnoses: a deficit, and the question of the fact that it concerned. None is made twice.
    - `may_search`, `may_remember`: whether a search is possible, and whether answers from memory are allowed.
    - `diagnosis`: for `repair`, what is to be repaired.
    """

    question: str
    draft: Draft
    signals: Signals
    derivation: Derivation
    vote: Vote | None
    passages: tuple[Found, ...] = ()
    drafts: tuple[Draft, ...] = ()
    searched: frozenset[str] = frozenset()
    remembered: frozenset[str] = frozenset()
    tried: frozenset[tuple[str, str | None]] = frozenset()
    may_search: bool = True
    may_remember: bool = True
    diagnosis: Diagnosis | None = None

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of the derivation."""
        return self.derivation.facts

    @property
    def about(self) -> str | None:
        """The question of the fact to repair, if the diagnosis is about one."""
        return self.diagnosis.about if self.diagnosis is not None else None

    @property
    def by_facts(self) -> bool:
        """Whether rules made the diagnosis, not the critic."""
        return self.diagnosis is not None and self.diagnosis.source == "facts"

    @property
    def voted(self) -> tuple[str, ...]:
        """The routes that have cast a ballot."""
        return tuple(dict.fromkeys(ballot.route for ballot in self.vote.ballots)) if self.vote is not None else ()

    @property
    def to_search(self) -> Fact | None:
        """The first open fact that has not been searched yet."""
        if not self.may_search:
            return None
        return next((fact for fact in self.derivation.open_facts if fact.asked not in self.searched), None)

    @property
    def found_since(self) -> Fact | None:
        """The first fact that a search between calls has found, if another answer follows from it and was elected."""
        if not self.follows or same(self.draft.short_answer, self.derivation.answer):
            return None
        return next((fact for fact in self.facts if fact.searched and fact.open is None), None)

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
        if plan is None or len(plan.chains) != 1 or not self.facts:
            return None
        last = self.facts[-1]
        whole = last.index == len(plan.chains[0].facts) - 1
        return last if whole and last.open is None and not last.from_memory else None

    @property
    def follows(self) -> bool:
        """Whether the vote elected what follows from the facts."""
        return bool(self.derivation.answer) and self.vote is not None and upholds(self.vote, self.derivation.answer)

    @property
    def names_an_earlier_fact(self) -> Fact | None:
        """The fact at which the draft stopped: its answer is the value of an earlier hop."""
        said, plan = normalised(self.draft.short_answer), self.derivation.plan
        earlier = self.facts[:-1] if plan is not None and len(plan.chains) == 1 else ()
        return next((fact for fact in earlier if said and normalised(fact.value) == said), None)


Heuristic: TypeAlias = Callable[[Signals], bool]
Detect: TypeAlias = Callable[[Findings], Diagnosis | None]
MakeRepair: TypeAlias = Callable[[State, Findings], Repair]
RESERVED = (NO_DEFICIT, "retrieve", "write", "diagnose", "remediate", "stop")
"""Reserved names: what a diagnosis reports for a sound draft, and the graph's own nodes."""


@dataclass(frozen=True, kw_only=True)
class Deficit:
    """A category of inadequate answers and its repair.

    - `detect`: in code, why a draft has it, or `None`; with DIAGNOSIS=facts.
    - `speaks`: when `detect` is asked: `after` the vote has rejected the draft, or `before` a draft is accepted, too.
    - `priority`: of several deficits that apply, the one with the lowest is chosen.
    - `repair`: what to do about it: see `Repair`. By default, a new draft is written under the directive.
    - `when`: one clause for the critic, completing "the deficit is NAME when ...".
    - `examples`: short cases that the critic sees.
    - `directive`, `answer_mode`: how the next draft is written, and from what: `evidence`, `memory` or
      `evidence_and_memory`.
    - `retrieves`: search with the queries of the diagnosis first.
    - `quadrant`: (does memory suffice, does the evidence suffice) in the cases that it is meant for, against which
      a benchmark judges diagnoses; `None` if these two do not determine it.
    - `heuristic`: used if the critic fails.
    - `last_resort`: chosen if nothing else applies; if no deficit is one, the one with the highest `priority` is.
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
    speaks: Literal["before", "after"] = "after"
    heuristic: Heuristic = lambda signals: False
    detect: Detect = lambda findings: None
    repair: MakeRepair = lambda state, findings: Repair()

    def __post_init__(self) -> None:
        require_name("deficit", self.name, RESERVED)
        require_functions("deficit", self, "heuristic", "detect", "repair")
        for field in ("when", "directive"):
            if not getattr(self, field).strip():
                raise InputError(f"The deficit {self.name!r} has an empty {field!r}; write one sentence.")
        examples: object = self.examples
        if not isinstance(examples, list | tuple) or not all(isinstance(case, str) for case in examples):
            raise InputError(f"The deficit {self.name!r} must have a list of texts as examples.")
        object.__setattr__(self, "examples", tuple(examples))
        for field, known in (("speaks", ("before", "after")), ("answer_mode", get_args(AnswerMode))):
            if getattr(self, field) not in known:
                raise InputError(
                    f"The deficit {self.name!r} has the {field} {getattr(self, field)!r}; choose one of: "
                    f"{', '.join(known)}."
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

    def detected(self, findings: Findings, *, before: bool = False) -> Iterator[Diagnosis]:
        """What the deficits detect and was not tried before, by priority; if `before`, only of those that speak then.

        Raises `ExtensionError` if a deficit's `detect` fails.
        """
        for deficit in self._by_priority:
            if before and deficit.speaks != "before":
                continue
            with calling("deficit", deficit.name, deficit.detect):
                found = deficit.detect(findings)
                require_result(found, Diagnosis, or_none=True)
            if found is not None and (deficit.name, found.about) not in findings.tried:
                yield replace(found, deficit=deficit.name)

    def by_facts(self, findings: Findings) -> Diagnosis:
        """What the first deficit detects, else the last resort."""
        nothing = Diagnosis(deficit=self._last_resort.name, rationale="the other routes lead to another answer")
        return next(self.detected(findings), nothing)

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
