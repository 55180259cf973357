"""Plans are tidied and checked in code before any look-up call is made."""

import pytest

from meta_agent_rag.agent.derivation.derivation import Chain, Plan, tidied
from meta_agent_rag.agent.derivation.operator import discover_operators
from meta_agent_rag.agent.derivation.planning import directed, fault_of

OPERATORS = discover_operators()
OLDER = "Which film has the director who is older, Blue Hill or Grey Water?"


def plan(operator: str, *chains: tuple[str, tuple[str, ...]]) -> Plan:
    return Plan(operator=operator, chains=tuple(Chain(of=of, facts=facts) for of, facts in chains))


def both(operator: str, *facts: str) -> Plan:
    names = ("Blue Hill", "Grey Water")
    return plan(operator, *((name, tuple(fact.replace("NAME", name) for fact in facts)) for name in names))


def test_a_reference_in_a_first_fact_is_replaced_by_the_chains_entity() -> None:
    slip = plan("same", ("Red Moth", ("Where is # from?",)), ("The Vales", ("Where is # from?",)))
    assert [chain.facts for chain in tidied(slip).chains] == [
        ("Where is Red Moth from?",),
        ("Where is The Vales from?",),
    ]


def test_a_chain_that_begins_with_a_reference_is_joined_to_the_previous_one() -> None:
    slip = plan("last", ("", ("Who directed Salt Road?",)), ("", ("Where was # born?",)))
    assert tidied(slip) == plan("last", ("", ("Who directed Salt Road?", "Where was # born?")))


@pytest.mark.parametrize(
    ("question", "fact", "mended"),
    [
        (OLDER, "When did # die?", "When was # born?"),
        ("Where did Otto's father die?", "Where was # born?", "Where did # die?"),
        ("Who is the paternal grandfather of Otto?", "Who is the mother of #?", "Who is the father of #?"),
        ("Who is the paternal grandmother of Otto?", "Who is the mother of #?", "Who is the mother of #?"),
        ("Who wrote it?", "When did # die?", "When did # die?"),
    ],
)
def test_a_fact_is_adjusted_to_what_the_question_asks(question: str, fact: str, mended: str) -> None:
    asked = directed(plan("last", ("", ("Who is Otto?", fact))), question)
    assert asked.chains[0].facts[1] == mended


@pytest.mark.parametrize(
    ("question", "operator", "found"),
    [
        ("Which building was completed last, First Canadian Place or Scotia Plaza?", "latest", "latest"),
        ("Which building was completed last, First Canadian Place or Scotia Plaza?", "earliest", "latest"),
        ("Which was published first, Blue Hill or The Last Ship?", "latest", "earliest"),
        ("Which came out after the other, Before Noon or Blue Hill?", "latest", "latest"),
    ],
)
def test_the_words_of_names_give_no_direction(question: str, operator: str, found: str) -> None:
    assert directed(both(operator, "When was NAME completed?"), question).operator == found


def test_the_words_of_names_are_about_no_life_and_no_kin() -> None:
    for question, fact in (
        ("Where is the director of the film Dead Man from?", "Where was # born?"),
        ("Who are the parents of the director of film Mother India?", "Who is the father of #?"),
    ):
        asked = directed(plan("last", ("", ("Who directed it?", fact))), question)
        assert asked.chains[0].facts[1] == fact


def test_yes_and_no_are_not_compared() -> None:
    closed = both("same", "Does NAME play a sport?")
    assert directed(closed, "Do Blue Hill and Grey Water play the same sport?").operator == "both"


@pytest.mark.parametrize(
    ("question", "wrong", "reason"),
    [
        (OLDER, both("earliest", "Who directed NAME?", "When did # die?"), "asks for birth"),
        (OLDER, plan("earliest", ("Blue Hill", ("Who directed Blue Hill?",))), "one chain for each"),
        (OLDER, both("same", "Who directed NAME?"), "yes or no"),
        (
            OLDER,
            plan("earliest", ("Hill", ("When was the Hill made?",)), ("Salt", ("When was the Hill shot?",))),
            "not named",
        ),
        (OLDER, plan("last", ("", ("What two things do you want to know?",))), "names nothing"),
        (
            "Which star of Salt Road was born in 1937?",
            plan(
                "earliest", ("Salt Road", ("Who is the star of Salt Road?",)), ("1937", ("When did Salt Road begin?",))
            ),
            "no choice",
        ),
        (OLDER, plan("last", ("", ("Who played Tom Reed?",))), "names 'Tom Reed'"),
        (
            "Where was the director of Salt Road born?",
            plan("last", ("", ("Who directed Salt Road?", "Who is it?"))),
            "uses",
        ),
        (
            "Where was the director of Salt Road born?",
            plan("last", ("", ("Where was the director of Salt Road born?",))),
            "restates",
        ),
        (
            "Who is the paternal uncle of Otto?",
            plan("last", ("", ("Who is Otto's mother?", "Who is #'s brother?"))),
            "male",
        ),
        ("Who is it?", plan("nonsense", ("", ("Who is Otto?",))), "no operator"),
        ("Who is it?", plan("last", ("", ("Who is Otto?", *["Who is #?"] * 16))), "more than 16 facts"),
        ("Who is it?", plan("last", ("", ("Who is Otto?", f"Who is #{'1' * 5000}?"))), "does not come before"),
    ],
)
def test_invalid_plans_are_reported(question: str, wrong: Plan, reason: str) -> None:
    fault = fault_of(wrong, question, OPERATORS)
    assert fault is not None
    assert reason in fault


def test_a_comparison_of_one_candidate_is_completed_with_the_other() -> None:
    question = "Which band was formed first, Red Moth or The Vales?"
    made = directed(plan("earliest", ("The Vales", ("When was The Vales formed?",))), question)
    assert [(chain.of, chain.facts) for chain in made.chains] == [
        ("The Vales", ("When was The Vales formed?",)),
        ("Red Moth", ("When was Red Moth formed?",)),
    ]
    assert fault_of(made, question, OPERATORS) is None
    unnamed = plan("earliest", ("Blue Sea", ("When was Blue Sea formed?",)))
    assert directed(unnamed, question) == unnamed
