"""What LOOP_WITHOUT removes from the loop, part by part."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.llm.messages import Request
from meta_agent_rag.testing import Scripted
from tests.loop import BIRTH, BIRTH_SENTENCE, FILM, QUESTION, FakeRetriever, Run, ask, draft, passage, user_text

BY_GRAMMAR = "Where was the director of The Salt Road born?"
CHAIN = {"chains": [{"of": "", "facts": ["Who directed The Salt Road?", "Where was # born?"]}], "operator": "last"}
OLDER = "Who is older, Ada Roth or Bo Lind?"
AGES = (
    passage("ada", "Ada Roth was born on 8 May 1931 in Oslo."),
    passage("bo", "Bo Lind was born on 2 May 1952 in Bergen."),
)
BIRTHS = {
    "chains": [
        {"of": "Ada Roth", "facts": ["When was Ada Roth born?"]},
        {"of": "Bo Lind", "facts": ["When was Bo Lind born?"]},
    ],
    "operator": "latest",
}


def looked_up(request: Request) -> str:
    said = user_text(request)
    known = {
        "Where was Mira Holt born?": "Oslo",
        "director of The Salt Road?": "Mira Holt",
        "Who directed The Salt Road?": "Mira Holt",
        "When was Ada Roth born?": "8 May 1931",
        "When was Bo Lind born?": "2 May 1952",
    }
    return next((value for asked, value in known.items() if asked in said), "NOT FOUND")


def route(short: str) -> dict[str, Any]:
    return {"steps": ["A step."], "rationale": "So.", "answer": f"It is {short}.", "short_answer": short}


async def without(folder: Path, parts: str, script: Mapping[str, Scripted], **options: Any) -> Run:
    script = {"look_up": looked_up, "route": route("Oslo"), "rewrite": draft("Oslo"), **script}
    return await ask(folder, script, "MONITOR_POLICY=vote", f"LOOP_WITHOUT={parts}", **options)


async def test_without_derivations_only_routes_vote(tmp_path: Path) -> None:
    run = await without(tmp_path, "derivation", {"write": draft("Oslo")})
    assert run.stages == ["write", "route"]
    assert run.answer.stop_reason == "satisfied"


async def test_without_the_grammar_the_model_plans(tmp_path: Path) -> None:
    assert "plan" not in (await without(tmp_path / "whole", "none", {"write": draft("Oslo")})).stages
    run = await without(tmp_path / "less", "grammar", {"write": draft("Oslo"), "plan": CHAIN}, question=BY_GRAMMAR)
    assert run.stages == ["write", "plan", "look_up", "look_up"]


async def test_without_plan_checks_every_well_formed_plan_is_looked_up(tmp_path: Path) -> None:
    strange = {"chains": [{"of": "", "facts": ["When was Bo Lind born?"]}], "operator": "last"}
    asked = "Where was the man who directed The Salt Road born?"
    script = {"write": draft("Oslo"), "plan": strange}
    checked = await without(tmp_path / "whole", "none", script, question=asked)
    assert "look_up" not in checked.stages
    run = await without(tmp_path / "less", "plan_checks", script, question=asked)
    assert run.stages[:3] == ["write", "plan", "look_up"]
    broken = {"chains": [{"of": "", "facts": ["Where was #2 born?"]}], "operator": "last"}
    run = await without(tmp_path / "broken", "plan_checks", {**script, "plan": broken}, question=asked)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert "does not come before it" in (derivation.dropped or "")


@pytest.mark.parametrize(
    ("operator", "chains"),
    [
        ("last", [["When was Ada Roth born?"], ["When was Bo Lind born?"]]),
        ("difference", [["When was Ada Roth born?"]]),
        ("count", [["When was Ada Roth born?"], ["When was Bo Lind born?"]]),
        ("same", [["When was Ada Roth born?"]]),
    ],
)
async def test_a_plan_that_does_not_suit_its_operator_gives_no_answer(
    operator: str, chains: list[list[str]], tmp_path: Path
) -> None:
    plan = {"chains": [{"of": facts[0], "facts": facts} for facts in chains], "operator": operator}
    script = {"write": draft("Ada Roth"), "plan": plan, "route": route("Ada Roth")}
    run = await without(tmp_path, "plan_checks+grammar", script, question=OLDER, evidence=AGES)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert len(derivation.facts) == len(chains)
    assert run.answer.short_answer == "Ada Roth"


async def test_without_operators_no_comparison_is_made_in_code(tmp_path: Path) -> None:
    script = {"write": draft("Bo Lind"), "plan": BIRTHS, "route": route("Bo Lind")}
    whole = await without(tmp_path / "whole", "none", script, question=OLDER, evidence=AGES)
    assert whole.answer.short_answer == "Ada Roth"
    run = await without(tmp_path / "less", "operators", script, question=OLDER, evidence=AGES)
    assert run.answer.short_answer == "Bo Lind"
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert [fact.value for fact in derivation.facts] == ["8 May 1931", "2 May 1952"]
    assert derivation.answer == ""


async def test_without_a_vote_no_route_is_sampled(tmp_path: Path) -> None:
    run = await without(tmp_path, "vote", {"write": draft("Mira Holt")})
    assert "route" not in run.stages
    assert run.answer.short_answer == "Oslo", "the derived answer is weighed against the draft alone"


async def test_without_a_search_an_open_fact_stays_open(tmp_path: Path) -> None:
    found: Mapping[str, Any] = {QUESTION: [FILM], "Where was Mira Holt born?": [BIRTH]}

    def line(request: Request) -> str:
        said = user_text(request)
        if "Where was Mira Holt born?" in said:
            return "Oslo" if BIRTH_SENTENCE in said else "NOT FOUND"
        return "Mira Holt"

    routes = [route("Rome"), route("Madrid"), route("Lima"), route("Bonn"), route("Bern")]
    for parts, queries in (("none", [QUESTION, "Where was Mira Holt born?"]), ("search", [QUESTION])):
        script: Mapping[str, Scripted] = {
            "write": draft("Paris"),
            "look_up": line,
            "recall": "NOT FOUND",
            "route": list(routes),
        }
        retriever = FakeRetriever(found)
        await without(tmp_path / parts, parts, script, retriever=retriever)
        assert retriever.queries == queries


async def test_several_parts_can_be_removed_at_once(tmp_path: Path) -> None:
    run = await without(tmp_path, "derivation+vote", {"write": draft("Oslo"), "plan": CHAIN})
    assert run.stages[0] == "write"
    assert not {"plan", "look_up", "route"} & set(run.stages)
