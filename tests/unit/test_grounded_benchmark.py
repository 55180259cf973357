"""The benchmark of grounded answers: which questions are asked, the rows, and the shares over rows."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.grounded import GroundedRow, app, evidence_for, levels, quality, read_rows, reasons, row
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, checked
from meta_agent_rag.datasets import Paragraph, Question
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.testing import ScriptedModel
from tests.loop import BIRTH_SENTENCE, FILM_SENTENCE, QUESTION, draft, second_answer, settings_in

ASKED = Question(
    id="q",
    text=QUESTION,
    answer="Oslo",
    paragraphs=(
        Paragraph(title="The Salt Road", sentences=(FILM_SENTENCE,), is_supporting=True),
        Paragraph(title="Mira Holt", sentences=(BIRTH_SENTENCE,), is_supporting=True),
        Paragraph(title="Letters", sentences=("A letter says that the sea is a person.",), is_supporting=False),
    ),
    supporting_facts=(("The Salt Road", 0), ("Mira Holt", 0)),
)
ROW = GroundedRow(
    id="q", answerable=True, drafted="Oslo", draft_f1=1.0, shown="Oslo", shown_f1=1.0, refused=None, level="high",
    score=0.9, p_correct=0.8, calls=4, prompt_tokens=900, completion_tokens=90,
)  # fmt: skip
WRONG = replace(ROW, drafted="Bergen", draft_f1=0.0, shown="Bergen", shown_f1=0.0, level="low")
WITHHELD = replace(ROW, shown="", shown_f1=0.0, refused="unsupported", level=None)


@pytest.mark.parametrize(
    ("written", "refused", "right"),
    [
        (draft("Oslo", quotes=[BIRTH_SENTENCE], answer="Mira Holt was born in Oslo [2]."), None, (True, True)),
        (
            draft("Oslo", quotes=["No such sentence."], answer="She was born in Oslo [2]."),
            "invented_quotes",
            (True, False),
        ),
        (draft("", quotes=[], answer="NOT FOUND"), "not_found", (False, False)),
    ],
)
async def test_a_row_has_the_draft_and_the_shown_answer(
    tmp_path: Path, written: Mapping[str, Any], refused: str | None, right: tuple[bool, bool]
) -> None:
    settings = settings_in(tmp_path, "MAX_METACOGNITIVE_ROUNDS=0", "CLAIM_CHECK=exact", "MONITOR_POLICY=agreement")
    script = {"write": written, "second_answer": second_answer("Oslo")}
    encoder = AsyncEncoder(HashEncoder())
    async with open_engine(settings, model=ScriptedModel(script), monitor_encoder=encoder) as engine:
        answer = await engine.answer(ASKED.text, evidence=evidence_for(ASKED, answerable=True), grounded=True)
        found = row(ASKED, await checked(engine, answer, Checks.of(settings)), answerable=True)
    assert found.refused == refused
    assert (found.draft_is_right, found.shown_is_right) == right
    assert found.calls == 2
    assert found.shown == ("Oslo" if refused is None else "")


def test_shares_are_computed_over_the_rows() -> None:
    others = [replace(one, answerable=False) for one in (WITHHELD, WITHHELD, ROW)]
    table = quality([ROW, ROW, WRONG, WITHHELD, *others])
    shares = {cells[0]: cells[1:3] for cells in table.rows}
    assert shares["answerable questions shown an answer"] == ("3", "4")
    assert shares["right drafts withheld"] == ("1", "3")
    assert shares["wrong among shown answers"] == ("1", "3")
    assert shares["unanswerable questions refused"] == ("2", "3")
    assert shares["wrong among shown answers, unanswerable questions included"] == ("2", "4"), (
        "an answer that is right by chance is supported by no passage"
    )
    assert [cells[:3] for cells in levels([ROW, WRONG, WITHHELD]).rows] == [
        ("high", "1", "1"), ("medium", "0", "0"), ("low", "0", "1"),
    ]  # fmt: skip
    assert reasons([ROW, WITHHELD, *others]).rows == [("unsupported", "1", "0", "2")]


def test_a_file_is_read_whatever_its_texts_and_its_last_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    odd = replace(ROW, drafted="one\u2028line")
    file.write_text(json.dumps(vars(odd), ensure_ascii=False) + '\n{"id": "to', "utf-8")
    assert read_rows(file) == [odd]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("", ["--report"], "There are no rows yet"),
        ('{"id": "q"}\n', ["--report"], "line 1, is not a row"),
        ("", ["--answerable", "3"], "Write the range as A-B"),
        ("", ["--dataset", "hotpot", "--answerable", "1-2"], "hotpotqa"),
    ],
)
def test_invalid_input_is_rejected_with_a_remedy(
    tmp_path: Path, content: str, options: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_PROVIDER", "embedded")
    monkeypatch.setenv("MONITOR_ENCODER", "hash-64")
    file = tmp_path / "rows.jsonl"
    file.write_text(content, "utf-8")
    done = CliRunner().invoke(app, [str(file), *options])
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert "Traceback" not in done.output
