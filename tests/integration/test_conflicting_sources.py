"""The example deficit `conflicting_sources`: made conflicts that it detects and repairs, and false alarms."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag import Answer, Findings, Passage, discover_deficits
from meta_agent_rag.agent.derivation import Chain, Derivation, Fact, Plan
from meta_agent_rag.agent.state import Draft, Signals
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.testing import Scripted
from tests.integration.test_records_rederived import made
from tests.loop import ask, draft, user_text

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "examples" / "deficits"
RESULTS = ROOT / "benchmarks" / "results"
CONFLICTS = [json.loads(line) for line in (FOLDER / "conflicts.jsonl").read_text(encoding="utf-8").splitlines()]
DEFICIT = discover_deficits(FOLDER)["conflicting_sources"]
NAME = DEFICIT.name
ROUTE = {"steps": [], "rationale": "", "answer": "As it says."}


async def asked(conflict: Mapping[str, Any], folder: Path, *assignments: str) -> Answer:
    """The loop's answer, of a model that believes the first passage as long as it is shown."""
    values = conflict["values"]

    def look_up(request: Any) -> str:
        evidence, _, asked = user_text(request).rpartition("</passage>")
        place = next(place for place, fact in enumerate(conflict["facts"]) if fact.split("#")[-1].strip(" ?") in asked)
        return str(values[place] if values[place] in evidence else conflict["answer"])

    script: Mapping[str, Scripted] = {
        "write": draft(values[-1], answer=f"It is {values[-1]} [1]."),
        "plan": {"chains": [{"of": "", "facts": conflict["facts"]}], "operator": "last"},
        "look_up": look_up,
        "route": {**ROUTE, "short_answer": values[-1]},
    }
    evidence = [Passage.of(title, text) for title, text in conflict["passages"]]
    run = await ask(
        folder, script, "MONITOR_POLICY=vote", *assignments, question=conflict["question"], evidence=evidence
    )
    return run.answer


def is_detected(answer: Answer) -> bool:
    return any(one.diagnosis is not None and one.diagnosis.deficit == NAME for one in answer.rounds)


async def test_it_detects_most_conflicts_and_repairs_what_it_detects(tmp_path: Path) -> None:
    answers = [await asked(conflict, tmp_path, f"DEFICITS_DIR={FOLDER}") for conflict in CONFLICTS]
    detected = [(one, conflict) for one, conflict in zip(answers, CONFLICTS, strict=True) if is_detected(one)]
    assert len(detected) >= 0.8 * len(CONFLICTS) == 24
    for answer, conflict in detected:
        assert answer.short_answer == conflict["answer"], conflict["id"]
        assert "The sources differ" in answer.text
        assert conflict["answer"] in answer.text
        assert conflict["values"][-1] in answer.text


async def test_the_reader_is_told_of_a_conflict_that_the_draft_decides_as_most_passages_do(tmp_path: Path) -> None:
    conflict = {
        "id": "right",
        "question": "When was Harlow Bridge opened?",
        "facts": ["When was Harlow Bridge opened?", "In which year was Harlow Bridge opened, that is #?"],
        "values": ["1931", "1931"],
        "passages": [
            ["Harlow Bridge", "Harlow Bridge was opened in 1931."],
            ["Survey of 1998", "Harlow Bridge was opened in 1934."],
            ["Guide", "Harlow Bridge was opened in 1931, in spring."],
        ],
        "answer": "1931",
    }
    answer = await asked(conflict, tmp_path, f"DEFICITS_DIR={FOLDER}")
    assert (answer.short_answer, is_detected(answer)) == ("1931", True)
    assert "The sources differ" in answer.text


async def test_without_it_the_first_passage_is_believed(tmp_path: Path) -> None:
    for conflict in CONFLICTS[:3]:
        answer = await asked(conflict, tmp_path)
        assert (answer.short_answer, answer.fired) == (conflict["values"][-1], False)


async def test_an_earlier_hop_is_asked_again_without_the_passage_that_is_not_believed(tmp_path: Path) -> None:
    chain = {
        "id": "chain",
        "question": "Which monarch reigned in the year in which Harlow Bridge was opened?",
        "facts": ["When was Harlow Bridge opened?", "Which monarch reigned in #?"],
        "values": ["1931", "Anna"],
        "passages": [
            ["Harlow Bridge", "Harlow Bridge was opened in 1931."],
            ["Survey of 1998", "Harlow Bridge was opened in 1934."],
            ["Anna", "Anna reigned in 1931 and 1932."],
            ["Boris", "Boris reigned in 1934."],
        ],
        "answer": "1934",
    }

    def look_up(request: Any) -> str:
        said = user_text(request)
        if "Which monarch reigned in 19" in said:
            return "Boris" if "reigned in 1934?" in said else "Anna"
        return "1931" if "opened in 1931" in said else "1934"

    script: Mapping[str, Scripted] = {
        "write": draft("Anna", answer="It was Anna [3]."),
        "plan": {"chains": [{"of": "", "facts": chain["facts"]}], "operator": "last"},
        "look_up": look_up,
        "route": lambda request: {
            **ROUTE,
            "short_answer": "Anna" if "opened in 1931" in user_text(request) else "Boris",
        },
    }
    evidence = [Passage.of(title, text) for title, text in chain["passages"]]
    settings = ("MONITOR_POLICY=vote", f"DEFICITS_DIR={FOLDER}")
    run = await ask(tmp_path, script, *settings, question=str(chain["question"]), evidence=evidence)
    assert is_detected(run.answer)
    assert run.answer.short_answer == "Boris"
    assert "opened in 1931" not in run.prompt("look_up", -1), "the passage is set aside"


def recorded_findings() -> list[Findings]:
    """What the recorded runs found in the last round of each question."""
    found: dict[str, Findings] = {}
    for path in [*RESULTS.glob("*.jsonl.gz"), *(RESULTS / "open_domain").glob("*.jsonl.gz")]:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [next(iter(json.loads(line).items())) for line in file]
        questions = {one["id"]: one["text"] for kind, one in lines if kind == "question"}
        texts = {one["id"]: Passage.of(one["title"], one["text"]) for kind, one in lines if kind == "passage"}
        for kind, row in lines:
            if kind == "row" and row["method"] == "metarag" and row["rounds"] and row["rounds"][-1].get("derivation"):
                found[row["id"]] = findings_of(questions[row["id"]], row["rounds"][-1], texts)
    return list(found.values())


def findings_of(question: str, stored: Mapping[str, Any], texts: Mapping[str, Passage]) -> Findings:
    plan = stored["derivation"]["plan"]
    chains = tuple(Chain(of=one["of"], facts=tuple(one["facts"])) for one in plan["chains"]) if plan else ()
    passages = (replace(texts[id_], id=id_) for id_ in stored["evidence_ids"] if id_ in texts)
    return Findings(
        question=question,
        draft=made(Draft, stored["draft"]),
        signals=made(Signals, stored["signals"]),
        derivation=Derivation(
            plan=Plan(operator=plan["operator"], chains=chains) if plan else None,
            facts=tuple(made(Fact, fact) for fact in stored["derivation"]["facts"]),
            answer=stored["derivation"]["answer"],
        ),
        vote=None,
        passages=tuple(Found(passage=passage, score=0.0) for passage in passages),
    )


@pytest.mark.slow
def test_it_fires_on_at_most_two_percent_of_recorded_questions() -> None:
    every = recorded_findings()
    assert len(every) >= 300
    fired = [findings for findings in every if DEFICIT.detect(findings) is not None]
    assert len(fired) <= 0.02 * len(every)
