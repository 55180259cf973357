"""The contract of every schema for imported predictions."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.importing.files import imported
from benchmarks.importing.schemas import Schema, discover_schemas
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import DataFileError, UnknownNameError

SCHEMAS = discover_schemas()
OF_ROWS = [schema for schema in SCHEMAS.values() if schema.name != "official"]
QUESTION = Question(id="q1", text="Where?", answer="Oslo", paragraphs=())


def written(folder: Path, content: object) -> Path:
    file = folder / "predictions.json"
    file.write_text(json.dumps(content))
    return file


OBJECTS = {"official", "by_id"}
"""Schemas of one object by id, which has neither damaged rows nor duplicates."""


def rows_of(example: Any) -> list[Any]:
    """The rows of an example, for changing in place."""
    return example["per_question"] if isinstance(example, dict) else example  # type: ignore[no-any-return]


def test_schemas_are_discovered() -> None:
    assert set(SCHEMAS) >= {"flashrag", "hipporag", "mothrag", "official", "plain"}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_its_example_is_recognised(schema: Schema, tmp_path: Path) -> None:
    found = imported(written(tmp_path, schema.example), [QUESTION], name="theirs")
    assert found.schema == schema.name
    assert found.predictions["q1"].text == "Oslo"
    assert found.unknown == 0


@pytest.mark.parametrize(
    "schema", [one for one in SCHEMAS.values() if one.name not in OBJECTS], ids=lambda one: one.name
)
def test_a_damaged_row_is_reported(schema: Schema, tmp_path: Path) -> None:
    example = json.loads(json.dumps(schema.example))
    rows = rows_of(example)
    rows.append(dict.fromkeys(rows[0], 7))
    with pytest.raises(DataFileError, match=rf"predictions.json: row 2, read as '{schema.name}', field "):
        imported(written(tmp_path, example), [QUESTION], name="theirs")


@pytest.mark.parametrize(
    "schema", [one for one in SCHEMAS.values() if one.name not in OBJECTS], ids=lambda one: one.name
)
def test_a_duplicate_answer_is_rejected(schema: Schema, tmp_path: Path) -> None:
    example = json.loads(json.dumps(schema.example))
    rows = rows_of(example)
    rows.append(rows[0])
    with pytest.raises(DataFileError, match="row 2 answers 'q1' a second time"):
        imported(written(tmp_path, example), [QUESTION], name="theirs")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_predictions_that_answer_no_question_are_rejected(schema: Schema, tmp_path: Path) -> None:
    other = Question(id="other", text="When?", answer="1950", paragraphs=())
    with pytest.raises(DataFileError, match="answers none of these 1 questions"):
        imported(written(tmp_path, schema.example), [other], name="theirs")


def test_an_unrecognised_file_lists_the_known_schemas(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"fits none of the known schemas .*flashrag \(FlashRAG: intermediate_data"):
        imported(written(tmp_path, [{"id": "q1"}]), [QUESTION], name="theirs")
    with pytest.raises(UnknownNameError, match="'other'"):
        imported(written(tmp_path, []), [QUESTION], name="theirs", schema="other")


def test_rows_match_by_question_text_and_by_id_only_if_text_is_missing_or_ambiguous(tmp_path: Path) -> None:
    twin = Question(id="q2", text="where?", answer="Rome", paragraphs=())
    third = Question(id="0", text="Who?", answer="Mira", paragraphs=())
    rows = [
        {"id": "q2", "question": " Where? ", "output": {"pred": "Rome"}},
        {"id": "0", "question": "Another question?", "output": {"pred": "no"}},
        {"id": "elsewhere", "question": "WHO?", "output": {"pred": "Mira"}},
    ]
    found = imported(written(tmp_path, rows), [QUESTION, twin, third], name="theirs")
    assert {id_: one.text for id_, one in found.predictions.items()} == {"q2": "Rome", "0": "Mira"}
    assert found.unknown == 1
