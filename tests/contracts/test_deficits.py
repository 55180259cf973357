"""The contract of every deficit, built-in or third-party."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from meta_agent_rag.agent.deficits import Deficit, DeficitRegistry, Findings, discover_deficits
from meta_agent_rag.agent.deficits.deficit import as_markdown
from meta_agent_rag.agent.derivation import Chain, Derivation, Fact, Plan
from meta_agent_rag.agent.diagnose import critique_schema
from meta_agent_rag.agent.graph import build_graph
from meta_agent_rag.agent.routes import Vote
from meta_agent_rag.agent.state import AnswerMode, Diagnosis, Draft, Repair, Signals, State
from meta_agent_rag.errors import DuplicateNameError, InputError, UnknownNameError
from meta_agent_rag.prompts import phrase
from tests.loop import FILM_SENTENCE, QUESTION, WRONG, FakeRetriever, ask, critique, passage

DEFICITS = discover_deficits()
SIGNALS = [
    Signals(similarity=similarity, agreement=agreement, verbatim=verbatim, abstained=abstained, evidence_passages=count)
    for similarity, agreement, verbatim, abstained, count in product(
        (None, -1.0, 0.0, 0.4, 1.0), (None, True, False), (None, 0.0, 0.5, 1.0), (True, False), (0, 1, 20)
    )
]
NOTHING = Findings(
    question=QUESTION,
    draft=Draft(answer="She was born in Paris.", short_answer="Paris"),
    signals=SIGNALS[0],
    derivation=Derivation(plan=None),
    vote=Vote(elected="Oslo", route="plain_pass", share=0.5, ballots=(), support=()),
)
_FACTS = ("Who directed The Salt Road?", "Where was # born?")
_CHAIN = Plan(operator="last", chains=(Chain(of="", facts=_FACTS),))
_FIRST = Fact(chain=0, index=0, asked=_FACTS[0], entity="The Salt Road", value="Mira Holt", passage_id="film")
_LAST = Fact(chain=0, index=1, asked="Where was Mira Holt born?", entity="Mira Holt", value="")
FINDINGS = [
    NOTHING,
    *(
        replace(
            NOTHING,
            derivation=Derivation(plan=_CHAIN, facts=(_FIRST, last), answer=last.value, because="it follows"),
            may_search=search,
        )
        for last in (replace(_LAST, open="no passage gives it"), replace(_LAST, value="Oslo", passage_id="birth"))
        for search in (True, False)
    ),
]
"""Findings with and without facts, open ones and settled ones."""


def example(name: str = "example", **fields: Any) -> Deficit:
    given = {"when": "w", "directive": "d", "answer_mode": "evidence", "retrieves": False, **fields}
    return Deficit(name=name, **given)


def test_deficits_are_discovered() -> None:
    builtin = {"external_only", "insufficient_knowledge", "internal_only", "reasoning_error"}
    assert builtin <= set(DEFICITS.names)
    assert len(DEFICITS.names) >= 4
    assert list(DEFICITS.names) == sorted(DEFICITS.names)
    assert len({deficit.priority for deficit in DEFICITS}) == len(DEFICITS.names), "rules need distinct priorities"


@pytest.mark.parametrize("deficit", list(DEFICITS), ids=lambda deficit: deficit.name)
class TestEveryDeficit:
    """What is derived from a deficit, and what it guarantees."""

    def test_schema_graph_and_table_are_derived_from_it(self, deficit: Deficit) -> None:
        names = critique_schema(DEFICITS).model_json_schema()["properties"]["deficit"]["enum"]
        assert deficit.name in names, "the critic must be able to name it: check `discover_deficits`"
        assert deficit.name in build_graph(DEFICITS).get_graph().nodes, "it must be a node: check `build_graph`"
        rows = [row for row in as_markdown(DEFICITS).splitlines() if row.startswith(f"| `{deficit.name}` |")]
        assert len(rows) == 1, "choose another `name`: two rows of the table have it"

    def test_its_heuristic_is_neither_always_true_nor_always_false(self, deficit: Deficit) -> None:
        found = {type(deficit.heuristic(signals)) for signals in SIGNALS}
        assert found == {bool}, "return True or False from `heuristic`, and no other value"
        held = [deficit.heuristic(signals) for signals in SIGNALS]
        assert any(held), "let `heuristic` hold for some signals, or it is useless"
        assert not all(held), "let `heuristic` fail for some signals, or it hides those after it"

    def test_it_detects_nothing_twice(self, deficit: Deficit) -> None:
        for findings in FINDINGS:
            found = deficit.detect(findings)
            assert found is None or isinstance(found, Diagnosis), "return a Diagnosis or None from `detect`"
            if found is not None:
                assert found.rationale.strip(), "say in `rationale`, in one clause, why it applies"
                tried = replace(findings, tried=frozenset({(deficit.name, found.about)}))
                again = [
                    one for one in DEFICITS.detected(tried) if (one.deficit, one.about) == (deficit.name, found.about)
                ]
                assert not again, "the registry leaves out what was tried"

    def test_its_repair_is_one(self, deficit: Deficit) -> None:
        for findings in FINDINGS:
            diagnosis = deficit.detect(findings) or Diagnosis(deficit=deficit.name, rationale="r", source="critic")
            repair = deficit.repair(State(question=QUESTION), replace(findings, diagnosis=diagnosis))
            assert isinstance(repair, Repair), "return a Repair from `repair`, for the critic's diagnoses as well"
            assert repair.adopt is None or repair.ask is None, "adopt an answer or ask for a fact, not both"

    async def test_its_repair_follows_its_fields(self, deficit: Deficit, tmp_path: Path) -> None:
        retriever = FakeRetriever({QUESTION: [passage("film", FILM_SENTENCE)]})
        named = critique(deficit.name, queries=["who directed it"], suggestion="Mind the second hop.")
        run = await ask(tmp_path, {**WRONG, "evaluate": named}, retriever=retriever, without_deficits=())
        shown = run.prompt("evaluate")
        for text in (f"- {deficit.name}: {deficit.when}", *deficit.examples, f'"{deficit.name}"'):
            assert text in shown, f"the critic's prompt lacks {text!r}"
        plan = run.answer.rounds[1].plan
        assert plan is not None, "a diagnosis must lead to a repair"
        assert (plan.deficit, plan.answer_mode in get_args(AnswerMode)) == (deficit.name, True), "see `answer_mode`"
        if plan.repair == "rewrite":
            rewrite = run.prompt("rewrite")
            for text in (plan.directive, phrase(f"mode_{plan.answer_mode}")):
                assert text in rewrite, f"the prompt of the repair lacks {text!r}"
            shows = FILM_SENTENCE in rewrite
            assert shows == (plan.answer_mode != "memory"), "a draft from memory sees no passages, any other does"
        assert (run.answer.stop_reason, run.answer.chosen) == ("satisfied", 1), "the repaired draft is returned"


@pytest.mark.parametrize(
    "fields", [{"adopt": 1934}, {"ask": ["Who?"]}, {"drop": "film"}, {"search": "Oslo"}, {"mode": "fromevidence"}]
)
def test_a_repair_of_the_wrong_kind_is_named(fields: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(fields))):
        Repair(**fields)


def test_the_rules_always_select_a_deficit() -> None:
    by_priority = sorted(DEFICITS, key=lambda deficit: deficit.priority)
    for signals in SIGNALS:
        guessed = DEFICITS.guess(signals)
        holding = [deficit for deficit in by_priority if deficit.heuristic(signals)]
        assert guessed is (holding[0] if holding else by_priority[-1]), "only the last by priority is a last resort"
    assert DEFICITS.guess(None) is by_priority[-1]


def test_a_registry_rejects_emptiness_and_duplicate_or_unknown_names() -> None:
    with pytest.raises(InputError, match="At least one deficit"):
        DeficitRegistry(deficits=())
    with pytest.raises(DuplicateNameError, match="'example'"):
        DeficitRegistry(deficits=(example(), example(when="other")))
    with pytest.raises(UnknownNameError, match=r"'no_such'.*reasoning_error"):
        DEFICITS["no_such"]
