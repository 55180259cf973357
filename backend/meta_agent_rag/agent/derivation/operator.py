"""The definition of an operator: a way to combine the values at the ends of a plan's chains, in code.

What the operators share is here too: the checks of their plans.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ...discovery import by_name, contributed, require_functions, require_name
from ...errors import InputError
from ...text.normalise import normalised
from .derivation import Chain, Plan

ENTRY_POINT_GROUP = "meta_agent_rag.operators"
_PACKAGE = f"{__package__}.operators"
_CONSTANT = "OPERATOR"
_CHOICE = re.compile(r"\b(?:or|and|between|both)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Operand:
    """The end of a chain: what it is `of`, its last value, and all its values in order."""

    of: str
    value: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The conclusion from the operands: the answer, and one sentence that explains it."""

    answer: str
    because: str

    def __post_init__(self) -> None:
        for field in ("answer", "because"):
            if not isinstance(value := getattr(self, field), str):
                raise TypeError(f"the {field!r} of an outcome must be a text, not {value!r}")


Combine: TypeAlias = Callable[[str, Sequence[Operand]], Outcome | None]
"""Maps the question and the operands to a conclusion; `None` if the values do not allow one."""
Check: TypeAlias = Callable[[str, Plan], str | None]
"""Maps the question and a plan to the plan's fault, worded as a clause; `None` if it has none."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator by name.

    - `when`: one clause for the planner, completing "use NAME when ...".
    - `examples`: invented questions, each with its plan, that the planner sees.
    - `combine`, `check`: see their types.
    - `compares`: its answers rest on values compared in code, and outrank a vote.
    """

    name: str
    when: str
    combine: Combine
    check: Check
    examples: tuple[tuple[str, Plan], ...] = ()
    compares: bool = False

    def __post_init__(self) -> None:
        require_name("operator", self.name)
        require_functions("operator", self, "combine", "check")
        if not self.when.strip():
            raise InputError(f"The operator {self.name!r} has an empty 'when'; write one clause.")
        for question, plan in self.examples:
            if plan.operator != self.name:
                raise InputError(
                    f"The example {question!r} of the operator {self.name!r} has the plan of {plan.operator!r}; "
                    "give each operator its own examples."
                )


def one_chain(question: str, plan: Plan) -> str | None:
    """The check of operators that read a single chain."""
    return "it needs exactly one chain" if len(plan.chains) != 1 else None


def two_chains(question: str, plan: Plan) -> str | None:
    """The check of operators that relate two or more chains."""
    return "it needs one chain for each of the things that are compared" if len(plan.chains) < 2 else None


def candidates(question: str, plan: Plan) -> str | None:
    """The check of operators that choose one of the things that the question names."""
    if fault := two_chains(question, plan):
        return fault
    if not _CHOICE.search(question):
        return "the question offers no choice between things that it names"
    asked = f" {normalised(question)} "
    names = [normalised(chain.of) for chain in plan.chains]
    if len(set(names)) < len(names):
        return "two chains are of the same candidate"
    for chain, name in zip(plan.chains, names, strict=True):
        if not name or f" {name} " not in asked:
            return f"the candidate {chain.of!r} is not named in the question"
    return None


Operators: TypeAlias = Mapping[str, Operator]


def discover_operators(folder: Path | None = None) -> Operators:
    """The built-in operators, those of installed packages, and those of `folder` (OPERATORS_DIR), by name.

    Raises `DuplicateNameError`, and `InputError` for a file that cannot be loaded.
    """
    found = contributed(_PACKAGE, _CONSTANT, Operator, group=ENTRY_POINT_GROUP, folder=folder, setting="OPERATORS_DIR")
    return by_name(found, "operators")


def two_candidates(operator: str, one: str, other: str, *facts: str) -> Plan:
    """The plan of an example: the same facts for both candidates; `NAME` stands for the candidate."""
    return Plan(
        operator=operator,
        chains=tuple(
            Chain(of=name, facts=tuple(fact.replace("NAME", name) for fact in facts)) for name in (one, other)
        ),
    )
