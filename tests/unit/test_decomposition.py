"""Gold decompositions as chains, and derivations evaluated against them."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.analyses.derivation import ANALYSIS
from benchmarks.rows.decomposition import asks_for, gives, gold_chains
from meta_agent_rag.agent.derivation.derivation import Chain, Plan
from meta_agent_rag.agent.derivation.operator import discover_operators
from tests.benchmark_rows import arm, material, round_of, row

OPERATORS = discover_operators()
QUESTION = "Which film has the director who died first, Blue Hill or Grey Water?"
FACTS = (
    ("Blue Hill", "director", "Ann Bode"),
    ("Grey Water (1950 film)", "director", "Karl Lutz"),
    ("Ann Bode", "date of death", "3 May 1990"),
    ("Karl Lutz (director)", "date of death", "1981"),
)


def looked_up(chain: int, index: int, value: str, fault: str | None = None) -> dict[str, Any]:
    return {"chain": chain, "index": index, "value": value, "open": fault}


def derivation(operator: str, facts: list[dict[str, Any]], answer: str, *asked: str) -> dict[str, Any]:
    asked = asked or ("Who directed NAME?", "When did # die?")
    chains = [
        {"of": name, "facts": [fact.replace("NAME", name) for fact in asked]} for name in ("Grey Water", "Blue Hill")
    ]
    return {"plan": {"operator": operator, "chains": chains}, "facts": facts, "answer": answer, "dropped": None}


FOUND = [
    looked_up(0, 0, "Karl Lutz"),
    looked_up(0, 1, "1981"),
    looked_up(1, 0, "Ann Bode"),
    looked_up(1, 1, "3 May 1990"),
]


def test_facts_form_chains() -> None:
    one, other = gold_chains(FACTS)
    assert [fact.value for fact in one] == ["Ann Bode", "3 May 1990"]
    assert [fact.value for fact in other] == ["Karl Lutz", "1981"], "a parenthesised qualifier may be missing"


def test_values_of_one_relation_form_one_fact() -> None:
    ((fact,),) = gold_chains([("A Day", "country", "Canadian"), ("A Day", "country", "British")])
    assert fact.value == "Canadian, British"


def test_a_plan_with_more_chains_than_the_gold_one_does_not_give_its_answer() -> None:
    asked = "How many years after Ann Bode did Karl Lutz die?"
    chain = Chain(of="Ann Bode", facts=("When did Ann Bode die?",))
    plan = Plan(operator="difference", chains=(chain, replace(chain, of="Karl Lutz")))
    assert gives(plan, asked, "9", gold_chains(FACTS[2:3]), OPERATORS) is False
    assert gives(plan, asked, "9", gold_chains(FACTS[2:]), OPERATORS) is True


def test_unlisted_relations_are_recognised_by_their_words() -> None:
    (((fact,),)) = gold_chains([("Salt Road", "production company", "Lund Films")])
    assert asks_for("Which company produced Salt Road?", fact)
    assert not asks_for("Who wrote Salt Road?", fact)


@pytest.mark.parametrize(
    ("stage", "held"),
    [
        ("derived", derivation("earliest", FOUND, "Grey Water")),
        ("operator", derivation("latest", FOUND, "Blue Hill")),
        ("plan", derivation("earliest", FOUND[:1], "Blue Hill", "When did NAME die?")),
        ("open fact", derivation("earliest", [*FOUND[:3], looked_up(1, 1, "", "no passage gives it")], "")),
        ("wrong fact", derivation("earliest", [*FOUND[:3], looked_up(1, 1, "1970")], "Blue Hill")),
        ("conclusion", derivation("earliest", FOUND, "")),
        ("no plan", {"plan": None, "facts": [], "answer": "", "dropped": "it restates the question"}),
    ],
)
def test_the_first_failing_stage_is_identified(stage: str, held: dict[str, Any]) -> None:
    answered = row(
        "1", [round_of(0, "x", 0.0, derivation=held)], question=QUESTION, gold="Grey Water", gold_facts=FACTS
    )
    found: Any = ANALYSIS.measure(material([arm("metarag")], [answered], n=1))["metarag"]
    assert [name for name, one in found["stages"].items() if one["n"]] == [stage]
    assert found["stages"][stage]["f1_lost"] == 100.0
    assert found["facts"] == 4
    assert ANALYSIS.tables({"metarag": found})


def test_facts_are_credited_to_the_chain_that_asks_for_them() -> None:
    held = derivation("earliest", [*FOUND[:3], looked_up(1, 1, "1970")], "Blue Hill")
    answered = row(
        "1", [round_of(0, "x", 0.0, derivation=held)], question=QUESTION, gold="Grey Water", gold_facts=FACTS
    )
    found: Any = ANALYSIS.measure(material([arm("metarag")], [answered], n=1))["metarag"]
    assert (found["facts_right"], found["plan_right"], found["operator_right"]) == (0.75, 1.0, 1.0)


def test_rows_without_a_decomposition_are_excluded() -> None:
    answered = row("1", [round_of(0, "x", 0.0, derivation=derivation("earliest", FOUND, "Grey Water"))])
    assert ANALYSIS.measure(material([arm("metarag")], [answered], n=1)) == {}
