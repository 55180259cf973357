"""What a deficit is: when it holds, what the next write does about it, and how a rule would guess it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, get_args

from ...discovery import require_functions, require_name
from ...errors import InputError
from ..facts.findings import Finding, Findings
from ..state import NO_DEFICIT, AnswerMode, Repair, Signals

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
