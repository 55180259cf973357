"""Today's operators and vote reach the conclusions and elections of the recorded runs from the recorded values."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import pytest

from benchmarks.tools.findings import records
from meta_agent_rag.agent.derivation.derivation import Chain, Fact, Plan
from meta_agent_rag.agent.derivation.derive import apply_operator
from meta_agent_rag.agent.derivation.operator import discover_operators
from meta_agent_rag.agent.routes.vote import Ballot, count

FOLDERS = (".", "one_machine", "open_domain")
CORRECTED = {("Israel", "US")}
"""An election before US and United States were the same country."""
_Value = TypeVar("_Value")


def made(kind: type[_Value], stored: Mapping[str, Any]) -> _Value:
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: value for name, value in stored.items() if name in names})


def rounds(folder: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for record in records(folder):
        for row in record.rows["metarag"]:
            yield from ((row["question"], round_) for round_ in row["rounds"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_operators_conclude_what_was_recorded(folder: str) -> None:
    operators, concluded = discover_operators(), 0
    for question, round_ in rounds(folder):
        stored = round_.get("derivation")
        if not stored or not stored["plan"]:
            continue
        chains = tuple(Chain(of=one["of"], facts=tuple(one["facts"])) for one in stored["plan"]["chains"])
        plan = Plan(operator=stored["plan"]["operator"], chains=chains)
        found = apply_operator(question, plan, [made(Fact, fact) for fact in stored["facts"]], operators)
        assert (found.answer, found.compared) == (stored["answer"], stored["compared"]), question
        concluded += bool(found.answer)
    assert concluded > 10


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_vote_elects_what_was_recorded(folder: str) -> None:
    votes = [vote for _, round_ in rounds(folder) if (vote := round_.get("vote"))]
    assert len(votes) > 50
    for vote in votes:
        elected = count([made(Ballot, one) for one in vote["ballots"]]).elected
        assert elected == vote["elected"] or (vote["elected"], elected) in CORRECTED
