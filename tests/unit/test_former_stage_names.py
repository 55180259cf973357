"""The stage `second_answer` and its prompt, which earlier versions called `reference`."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from benchmarks.recording import Player
from benchmarks.recording.records import read_lines
from benchmarks.run.provenance import changed_files, recorded_settings
from benchmarks.run.serving import Recorded
from benchmarks.speed.rigs.audit_rows import record
from meta_agent_rag.agent.prompting import SecondAnswerReply
from meta_agent_rag.cli.main import app
from meta_agent_rag.discovery import todays_stage
from meta_agent_rag.llm.cache import request_key
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.messages import Message, Request, Sampling
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.llm.stages import stage
from meta_agent_rag.llm.structured import json_schema
from meta_agent_rag.prompts import check_prompts, prompt
from meta_agent_rag.service.audit.reading import as_json
from meta_agent_rag.service.storage.database import open_database
from meta_agent_rag.service.storage.tables import AUDIT
from meta_agent_rag.settings import Settings
from tests.loop import WRONG, ask, settings_in

RECORDED = Path(__file__).parents[2] / "benchmarks" / "recorded"
NOTICE = (
    "The stage 'reference' and its prompt are now called 'second_answer'; settings and prompt files with the former "
    "name are still used."
)
EARLIER_KEY = "dd9985226feaf5031e64617006236b5b36c6e087c600bceb82e5f2d8ce124bbd"
"""The key of the request below in the last version that had the stage `reference`."""


@pytest.fixture(autouse=True)
def _unreported() -> None:
    todays_stage.cache_clear()


def notices(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if "now called" in entry.getMessage()]


def own_prompts(folder: Path, **instructions: str) -> Path:
    folder.mkdir()
    for name, text in instructions.items():
        (folder / f"{name}.yaml").write_text(f"instruction: {text}\n", encoding="utf-8")
    return folder


async def test_a_prompt_file_with_the_former_name_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = own_prompts(tmp_path / "own", reference="Answer in one breath.")
    check_prompts(folder)
    run = await ask(tmp_path, WRONG, f"PROMPTS_DIR={folder}")
    assert "Answer in one breath." in run.prompt("second_answer")
    assert notices(caplog) == [NOTICE]
    listed = CliRunner().invoke(app, ["prompts", "list", "--json", "--set", f"PROMPTS_DIR={folder}"])
    assert [row["name"] for row in json.loads(listed.stdout) if row["own"]] == ["second_answer"]


def test_a_prompt_file_with_the_current_name_takes_precedence(tmp_path: Path) -> None:
    folder = own_prompts(tmp_path / "own", reference="The old one.", second_answer="The new one.")
    check_prompts(folder)
    assert prompt("second_answer", folder).text() == "The new one."


def test_routes_outside_the_tree_may_use_the_former_names() -> None:
    assert prompt("reference") == prompt("second_answer")
    assert stage("reference", Settings.load()) == stage("second_answer", Settings.load())


def test_cached_replies_are_found() -> None:
    request = Request(
        stage="second_answer",
        model="m",
        messages=(Message(role="user", content="u"),),
        max_tokens=400,
        temperature=0.0,
        json_schema=json_schema(SecondAnswerReply),
    )
    assert request_key("e", request) == EARLIER_KEY


async def test_recorded_calls_are_found() -> None:
    player = Player.read(RECORDED / "sample.jsonl.gz")
    settings = recorded_settings(player.run)
    model = LanguageModel(
        settings=settings,
        choice=choose_provider(settings),
        connections=Recorded(settings=settings, run=player.run),
        tape=player,
    )
    calls = [call for kind, call in read_lines(player.path) if kind == "call" and call["row"]["stage"] == "reference"]
    assert len(calls) == 20
    for call in calls:
        session = model.session(call["row"]["question_id"], method=call["row"]["method"])
        asked = [Message(role=role, content=content) for role, content in call["prompt"]]
        _, reply = await session.aparse("second_answer", asked, SecondAnswerReply, sampling=Sampling(logprobs=True))
        assert reply.text == call["reply"]["text"]


def test_a_record_compares_its_prompt_with_that_of_the_current_name(caplog: pytest.LogCaptureFixture) -> None:
    run = Player.read(RECORDED / "2wikimultihopqa.jsonl.gz").run
    assert run["prompts"]["second_answer"] == prompt("second_answer").digest
    changed = [line.split()[0] for line in changed_files(run, Settings.load())]
    assert not {"reference", "second_answer"} & set(changed)
    assert notices(caplog) == [], "nothing for the user to rename"


def test_audit_records_with_the_former_name_are_shown(tmp_path: Path) -> None:
    row = record(1, datetime(2026, 11, 20, tzinfo=UTC))
    row |= {"model_calls": [{**row["model_calls"][0], "stage": "reference"}], "seconds": {"reference": 0.2}}
    asyncio.run(_kept(row, tmp_path))
    archived = tmp_path / "audit-2026-11.jsonl.gz"
    archived.write_bytes(gzip.compress(json.dumps(as_json(row)).encode() + b"\n"))
    data = f"MARAG_DATA_DIR={tmp_path}"
    for words in (["tail", "--set", data], ["read", str(archived)]):
        shown = CliRunner().invoke(app, ["audit", *words], env={"COLUMNS": "200"})
        assert shown.exit_code == 0, shown.output
        assert "Who designed the mill" in shown.stdout
        whole = json.loads(CliRunner().invoke(app, ["audit", *words, "--json"]).stdout)
        (reported,) = whole if isinstance(whole, list) else [whole]
        assert (reported["model_calls"][0]["stage"], reported["seconds"]) == ("reference", {"reference": 0.2}), (
            "as recorded"
        )


async def _kept(row: Mapping[str, Any], folder: Path) -> None:
    async with open_database(settings_in(folder)) as engine, engine.begin() as connection:
        await connection.execute(insert(AUDIT), [row])


def test_a_trace_shows_the_current_name(tmp_path: Path) -> None:
    row = {"id": "q", "method": "metarag", "question": "Where?", "prediction": "Oslo", "rounds": []}
    call = {"question_id": "q", "method": "metarag", "stage": "reference", "model": "m"}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "calls.jsonl").write_text(json.dumps(call) + "\n")
    shown = CliRunner().invoke(app, ["trace", str(tmp_path), "q"], env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "second_answer" in shown.stdout
