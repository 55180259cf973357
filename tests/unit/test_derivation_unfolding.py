"""Questions whose grammar yields a plan without a model call."""

import pytest

from meta_agent_rag.agent.derivation.unfolding import unfolded


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("Where did Otto Lind's wife study?", ("Who is the wife of Otto Lind?", "Where did # study?")),
        ("When is Otto Lind's father's birthday?", ("Who is the father of Otto Lind?", "When is #'s birthday?")),
        ("Who is Otto Lind's maternal grandfather?", ("Who is the mother of Otto Lind?", "Who is the father of #?")),
        ("Who is Otto Lind's son-in-law?", ("Who is the daughter of Otto Lind?", "Who is the husband or wife of #?")),
        ("Where was the wife of Otto Lind born?", ("Who is the wife of Otto Lind?", "Where was # born?")),
        (
            "Where was the composer of song Long Way Home (Song) born?",
            ("Who is the composer of song Long Way Home (Song)?", "Where was # born?"),
        ),
        (
            "Who bought the company that published Salt Road?",
            ("What is the company that published Salt Road?", "Who bought #?"),
        ),
        (
            "What is the population of the same town where Otto Lind was born?",
            ("What is the town where Otto Lind was born?", "What is the population of #?"),
        ),
        (
            "Who left the city where the founder of Alder Press died?",
            ("Who is the founder of Alder Press?", "What is the city where # died?", "Who left #?"),
        ),
    ],
)
def test_relatives_makers_and_relative_clauses_are_unfolded(question: str, facts: tuple[str, ...]) -> None:
    plan = unfolded(question)
    assert plan is not None
    assert (plan.operator, [chain.facts for chain in plan.chains]) == ("last", [facts])


@pytest.mark.parametrize(
    "question",
    [
        "Who is the father of Otto Lind?",  # one fact
        "When did Otto Lind's brother-in-law die?",  # by a sister or by marriage
        "When did Elizabeth I imprison James VI's mother?",  # a verb before the owner
        "Who was born first, Otto Lind's father or Bo Holt's mother?",  # a choice between two
        "Is the director of film Salt Road the director of film Blue Hill?",  # a yes/no question
        "Which film has the director who was born later, Salt Road or Blue Hill?",
        "When did the person who founded Alder Press die?",  # the end of the clause is ambiguous
        "What year did the mayor of the city where Bo Holt lived resign?",
        "Alder Press is a company by the man who died in which year?",  # the question word comes late
        "Who left the city where the man who founded Alder Press died?",  # a nested clause
        "What's the city where the man who founded Alder Press died?",
        "Where was the director of the film that stars Ada Holm born?",  # the main verb comes late
        "What is the title of the novel that Ada Holm wrote?",  # one fact
        "Who bought the company that makes shoes?",  # no name
        "Who is the president of Norway for whom the treaty was signed in the year of the flood?",  # no end of the name
        "",
    ],
)
def test_other_questions_are_left_to_the_planner(question: str) -> None:
    assert unfolded(question) is None
