"""The contract of every discovered operator."""

import pytest

from meta_agent_rag.agent.derivation.operator import Operand, Operator, discover_operators
from meta_agent_rag.agent.derivation.plan import tidied
from meta_agent_rag.agent.derivation.plan_checks import directed, fault_of
from meta_agent_rag.agent.derivation.planning import plan_schema

OPERATORS = discover_operators()


def test_operators_are_discovered() -> None:
    assert len(OPERATORS) >= 10


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_its_examples_pass_every_check(operator: Operator) -> None:
    for question, plan in operator.examples:
        assert fault_of(plan, question, OPERATORS) is None, question
        assert tidied(plan) == plan
        assert directed(plan, question) == plan


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_unparsable_values_are_not_compared(operator: Operator) -> None:
    operands = [Operand(of="A", value="???"), Operand(of="B", value="!!!")]
    if operator.compares and operator.name != "same":
        assert operator.combine("Which has more, A or B?", operands) is None


def test_the_planner_may_choose_every_operator() -> None:
    schema = plan_schema(tuple(OPERATORS)).model_json_schema()
    assert schema["properties"]["operator"]["enum"] == list(OPERATORS)
