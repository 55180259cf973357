"""The contract of every discovered operator."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_agent_rag.agent.derivation.derivation import tidied
from meta_agent_rag.agent.derivation.operator import Operand, Operator, Outcome, discover_operators
from meta_agent_rag.agent.derivation.planning import directed, fault_of

OPERATORS = discover_operators()
WITHOUT_EXAMPLES = {"least"}
"""The planner knows `least` from `most`, whose plans have the same form; each example lengthens every prompt."""
EVERY = pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
CONCLUSIONS: Mapping[str, tuple[Sequence[str], str]] = {
    "both": (("yes", "no"), "no"),
    "common": (("poet, painter", "painter and actor"), "painter"),
    "count": (("Ann, Bert and Carl",), "3"),
    "difference": (("12 May 1901", "1911"), "10"),
    "earliest": (("12 May 1901", "1911"), "Ann Bode"),
    "last": (("Oslo",), "Oslo"),
    "latest": (("12 May 1901", "1911"), "Night Train (1950 Film)"),
    "most": (("40 floors", "16 floors"), "Alder Tower"),
    "same": (("Norway", "Norwegian"), "yes"),
}
"""The values at the ends of the chains of an operator's first example, and the answer that follows."""
ANSWERS: Mapping[str, Callable[[str, Sequence[Operand]], bool]] = {
    **dict.fromkeys(("both", "same"), lambda answer, operands: answer in {"yes", "no"}),
    **dict.fromkeys(
        ("earliest", "latest", "least", "most"), lambda answer, operands: answer in {operand.of for operand in operands}
    ),
    "common": lambda answer, operands: all(item in operands[0].value for item in answer.split(", ")),
    "count": lambda answer, operands: answer == operands[0].value or answer.isdecimal(),
    "difference": lambda answer, operands: float(answer) >= 0,
    "last": lambda answer, operands: answer == operands[0].value,
}
"""What the answer of a built-in operator may be, given its operands."""
IN_ANY_ORDER = ("both", "difference", "earliest", "latest", "least", "most", "same")
VALUES = st.one_of(
    st.sampled_from(
        ["1901", "12 May 1901", "40 floors", "1.2 million", "yes", "no", "Norway", "Norwegian", "3rd", "-5"]
    ),
    st.dates().map(str),
    st.integers(0, 3000).map(str),
    st.text(max_size=20),
)
UNREADABLE = st.text(alphabet="?!.;:…()#@", min_size=1, max_size=8)


def operands(values: Sequence[str]) -> list[Operand]:
    """The ends of chains about A, B and so on."""
    return [Operand(of="ABCD"[place], value=value, values=(value,)) for place, value in enumerate(values)]


def question_of(operator: Operator) -> str:
    return operator.examples[0][0] if operator.examples else "Which has fewer floors, A or B?"


def chains_of(operator: Operator) -> int:
    return len(operator.examples[0][1].chains) if operator.examples else 2


def combined(operator: Operator, values: Sequence[str]) -> Outcome | None:
    return operator.combine(question_of(operator), operands(values))


def test_operators_are_discovered() -> None:
    assert len(OPERATORS) >= 10
    assert set(OPERATORS) >= WITHOUT_EXAMPLES | set(CONCLUSIONS) | set(ANSWERS)


@EVERY
def test_it_has_examples_that_pass_every_check(operator: Operator) -> None:
    has = bool(operator.examples)
    assert has == (operator.name not in WITHOUT_EXAMPLES), "give `examples`: a question and the plan for it"
    for question, plan in operator.examples:
        fault = fault_of(plan, question, OPERATORS)
        assert fault is None, f"change the example {question!r} or `check`: {fault}"
        assert tidied(plan) == plan, f"write the plan of {question!r} as {tidied(plan)}"
        assert directed(plan, question) == plan, f"write the plan of {question!r} as {directed(plan, question)}"


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_its_first_example_has_a_conclusion(name: str) -> None:
    values, answer = CONCLUSIONS[name]
    question, plan = OPERATORS[name].examples[0]
    ends = [
        Operand(of=chain.of, value=value, values=(value,)) for chain, value in zip(plan.chains, values, strict=True)
    ]
    outcome = OPERATORS[name].combine(question, ends)
    assert outcome is not None, "let `combine` conclude from the values of its first example"
    assert outcome.answer == answer, f"from {', '.join(values)} follows {answer!r}"
    assert outcome.because, "say in `because` why the answer follows"


@EVERY
@given(data=st.data())
@settings(max_examples=60)
def test_any_values_give_an_answer_that_follows_or_none(operator: Operator, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, min_size=chains_of(operator), max_size=chains_of(operator)))
    outcome = combined(operator, values)
    if outcome is not None:
        assert outcome.answer, "return None from `combine` if there is no answer"
        follows = ANSWERS.get(operator.name)
        assert follows is None or follows(outcome.answer, operands(values)), (
            "the answer does not follow from the values"
        )
        assert combined(operator, values) == outcome, "let `combine` depend on its arguments alone"


@EVERY
@given(data=st.data())
@settings(max_examples=20)
def test_unreadable_values_are_not_compared(operator: Operator, data: st.DataObject) -> None:
    values = data.draw(st.lists(UNREADABLE, min_size=chains_of(operator), max_size=chains_of(operator)))
    if operator.compares and operator.name != "same":  # `same` compares texts as they are
        assert combined(operator, values) is None, "return None for values that cannot be read, or unset `compares`"


@pytest.mark.parametrize("name", IN_ANY_ORDER)
@given(values=st.lists(VALUES, min_size=2, max_size=2))
@settings(max_examples=60)
def test_the_order_of_the_operands_does_not_matter(name: str, values: list[str]) -> None:
    operator = OPERATORS[name]
    orders = [list(order) for order in permutations(operands(values))]
    found = [operator.combine(question_of(operator), order) for order in orders]
    answers = {None if outcome is None else outcome.answer for outcome in found}
    assert len(answers) == 1, "let `combine` give the same answer in any order of the operands"
