"""The loop: it answers, doubts the answer, names the deficit, and repairs exactly that."""

from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag import Deficit, MetaRagError, Passage, Settings, build_graph, discover_deficits
from tests.acceptance.doors import loop, marag, printed

QUESTION = "Where was the director of The Salt Road born?"
FILM = Passage(id="film", doc_id="film", title="Film", text="The Salt Road is a film that Mira Holt directed.")
BIRTH = Passage(id="birth", doc_id="birth", title="Birth", text="Mira Holt was born in Oslo.")
RIGHT: dict[str, Any] = {
    "steps": ["Mira Holt directed it."],
    "quotes": [BIRTH.text],
    "answer": "Mira Holt was born in Oslo [2].",
    "short_answer": "Oslo",
}
WRONG = {**RIGHT, "quotes": [], "answer": "In the far city of Paris, France.", "short_answer": "Paris"}
SECOND = {"steps": ["She was born in Oslo."], "short_answer": "Oslo", "answer": "Mira Holt was born in Oslo [2]."}
DISTANT = {"steps": ["An entirely unrelated line."], "short_answer": "Bergen", "answer": "Quite another town: Bergen."}
STRICT = ("MONITOR_SIMILARITY_THRESHOLD=0.99",)


def critique(deficit: str, *queries: str) -> dict[str, Any]:
    return {
        "rationale": "The second hop is missing.",
        "deficit": deficit,
        "error_type": "incomplete_reasoning",
        "suggestion": "Read the second passage.",
        "suggested_queries": list(queries),
    }


async def ask(script: dict[str, Any], *assignments: str) -> Any:
    return await loop(script, FILM, BIRTH, question=QUESTION, assignments=assignments)


async def test_a_satisfied_monitor_ends_the_loop_after_one_round() -> None:
    found = await ask({"write": RIGHT, "second_answer": SECOND, "evaluate": critique("reasoning_error")})
    assert (found.short_answer, found.stop_reason, len(found.rounds)) == ("Oslo", "satisfied", 1)
    assert found.rounds[0].diagnosis is None


async def test_a_wrong_draft_is_doubted_diagnosed_and_repaired() -> None:
    script = {"write": WRONG, "second_answer": DISTANT, "evaluate": critique("reasoning_error"), "rewrite": RIGHT}
    found = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=1")
    assert found.short_answer == "Oslo"
    assert [round_.draft.short_answer for round_ in found.rounds] == ["Paris", "Oslo"]
    assert found.rounds[0].diagnosis.deficit == "reasoning_error"
    assert found.fired


@pytest.mark.parametrize("deficit", ["insufficient_knowledge", "internal_only", "external_only", "reasoning_error"])
async def test_each_deficit_has_its_own_repair(deficit: str) -> None:
    script = {
        "write": WRONG,
        "second_answer": DISTANT,
        "evaluate": critique(deficit, "Mira Holt born"),
        "rewrite": RIGHT,
    }
    found = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=1")
    assert found.rounds[0].diagnosis.deficit == deficit
    assert len(found.rounds) == 2
    assert discover_deficits()[deficit].directive


async def test_a_critic_that_finds_nothing_ends_the_loop() -> None:
    found = await ask({"write": WRONG, "second_answer": DISTANT, "evaluate": critique("none")}, *STRICT)
    assert (found.stop_reason, len(found.rounds)) == ("critic_satisfied", 1)


async def test_the_loop_stops_after_the_maximum_of_rounds() -> None:
    drafts = [{**WRONG, "answer": f"Town number {n}, called {n}x{n}.", "short_answer": f"Town {n}"} for n in range(9)]
    script = {
        "write": drafts[0],
        "second_answer": DISTANT,
        "evaluate": critique("reasoning_error"),
        "rewrite": drafts[1:],
    }
    found = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=2")
    assert (found.stop_reason, len(found.rounds)) == ("max_rounds", 3)


async def test_an_answer_that_no_longer_changes_has_converged() -> None:
    script = {"write": WRONG, "second_answer": DISTANT, "evaluate": critique("reasoning_error"), "rewrite": WRONG}
    found = await ask(script, *STRICT)
    assert found.stop_reason == "converged"
    assert len(found.rounds) < 6


async def test_the_best_draft_wins_and_not_simply_the_last() -> None:
    script = {"write": RIGHT, "second_answer": DISTANT, "evaluate": critique("reasoning_error"), "rewrite": WRONG}
    best = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=1")
    last = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=1", "SELECTION=last")
    assert (best.short_answer, last.short_answer) == ("Oslo", "Paris")


async def test_every_round_is_kept_with_its_signals_and_calls() -> None:
    script = {"write": WRONG, "second_answer": DISTANT, "evaluate": critique("reasoning_error"), "rewrite": RIGHT}
    found = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=1")
    for round_ in found.rounds:
        assert round_.signals is not None
        assert round_.draft.answer
    assert found.totals.calls == len(found.calls) > 3
    assert found.totals.cost_usd > 0


async def test_a_cosine_below_0_4_leaves_the_monitor_of_the_paper_unsatisfied() -> None:
    assert Settings.load().monitor_similarity_threshold == 0.4
    script = {"write": WRONG, "second_answer": DISTANT, "evaluate": critique("none")}
    assert (await ask(script, "MONITOR_SIMILARITY_THRESHOLD=-1")).stop_reason == "satisfied"


def test_four_deficits_are_built_in() -> None:
    told = marag("deficits", "list").stdout
    for name in ("insufficient_knowledge", "internal_only", "external_only", "reasoning_error"):
        assert name in told


async def test_a_deficit_is_added_as_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "wrong_entity.py").write_text(
        "from meta_agent_rag import Deficit\n"
        'DEFICIT = Deficit(name="wrong_entity", when="the draft is about a namesake", priority=15,\n'
        '    directive="Use the right person.", answer_mode="evidence", retrieves=False, examples=("one name",))\n'
    )
    assert "wrong_entity" in marag("deficits", "list", "--set", f"DEFICITS_DIR={folder}").stdout
    assert marag("deficits", "check", str(folder)).exit_code == 0
    script = {"write": WRONG, "second_answer": DISTANT, "evaluate": critique("wrong_entity"), "rewrite": RIGHT}
    found = await ask(script, *STRICT, "MAX_METACOGNITIVE_ROUNDS=1", f"DEFICITS_DIR={folder}")
    assert found.rounds[0].diagnosis.deficit == "wrong_entity"
    assert isinstance(discover_deficits(folder)["wrong_entity"], Deficit)


def test_the_graph_is_retrieve_write_diagnose_and_one_node_a_deficit() -> None:
    nodes = set(build_graph().get_graph().nodes)
    assert {"retrieve", "write", "diagnose"} <= nodes
    assert set(discover_deficits().names) <= nodes


async def test_malformed_output_is_asked_again_once_and_never_taken_for_success() -> None:
    found = await ask({"write": ["This is prose.", RIGHT], "second_answer": SECOND})
    assert found.short_answer == "Oslo"


async def test_a_limit_on_costs_refuses_the_call_that_could_pass_it() -> None:
    with pytest.raises(MetaRagError, match=r"(?i)limit"):
        await ask({"write": RIGHT, "second_answer": SECOND}, "COST_LIMIT_USD=0.0000001")


async def test_an_empty_question_is_refused() -> None:
    with pytest.raises(MetaRagError):
        await loop({"write": RIGHT}, FILM, question="  ")


def test_the_trace_shows_every_round(model: Any) -> None:
    shown = marag("ask", "What does a mooring cost?", "--corpus", "library", "--trace").stdout
    assert "Round 0" in shown
    assert "The first draft" in shown
    assert "Monitor." in shown


def test_the_answer_has_rounds_evidence_and_totals_as_json(model: Any) -> None:
    told = printed(marag("ask", "What does a mooring cost?", "--corpus", "library", "--json"))
    assert {"short_answer", "rounds", "evidence", "stop_reason", "totals", "dropped"} <= set(told)


def test_every_call_names_its_limit_and_switches_thinking_off(model: Any) -> None:
    marag("ask", "What does a mooring cost?", "--corpus", "library")
    assert model.bodies
    for body in model.bodies:
        assert body["max_tokens"] > 0
        assert body["thinking"] == {"type": "disabled"}
    assert {body["temperature"] for body in model.bodies} >= {0.0}


def test_all_stages_of_a_question_share_their_beginning(model: Any) -> None:
    marag("ask", "What does a mooring cost?", "--corpus", "library", "--set", "MONITOR_POLICY=agreement")
    firsts = {body["messages"][0]["content"] for body in model.bodies if "<passage" in str(body["messages"])}
    assert len(firsts) == 1
