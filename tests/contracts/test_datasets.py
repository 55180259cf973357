"""The contract of every data set discovered in the folder."""

import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from meta_agent_rag.datasets import Dataset, discover, load_file, load_questions
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.retrieval.passage import passages_of

DATASETS = discover()
every_dataset = pytest.mark.parametrize("dataset", list(DATASETS.values()), ids=list(DATASETS))
OPEN = ("bamboogle", "nq", "popqa", "strategyqa", "triviaqa")
CLOSED = {name: dataset for name, dataset in DATASETS.items() if name not in OPEN}
with_paragraphs = pytest.mark.parametrize("dataset", list(CLOSED.values()), ids=list(CLOSED))

ENCODINGS: dict[str, Callable[[list[object]], bytes]] = {
    "list": lambda rows: json.dumps(rows).encode(),
    "indented list with mark": lambda rows: b"\xef\xbb\xbf" + json.dumps(rows, indent=1, ensure_ascii=False).encode(),
    "lines": lambda rows: b"\n".join(json.dumps(row).encode() for row in rows),
    "lines with mark, CRLF and blanks": lambda rows: (
        b"\xef\xbb\xbf" + b"\r\n\r\n".join(json.dumps(row).encode() for row in rows) + b"\r\n"
    ),
    "gzipped lines": lambda rows: gzip.compress(b"\n".join(json.dumps(row).encode() for row in rows)),
}


def rows_of(dataset: Dataset, count: int = 2) -> list[object]:
    key = field_of(dataset, "_id", "id", "qid", "question_id", "question", "Question")
    return [{**copy.deepcopy(dict(dataset.example)), key: f"{dataset.example[key]}-{n}"} for n in range(count)]


def field_of(dataset: Dataset, *names: str) -> str:
    """The data set's own name for a field, out of these candidates."""
    return next(name for name in names if name in dataset.example)


def test_data_sets_are_discovered() -> None:
    assert {"hotpotqa", "2wikimultihopqa", "musique", "sample", *OPEN} <= set(DATASETS)


@every_dataset
def test_the_example_is_a_question(dataset: Dataset) -> None:
    question = dataset.parse(dataset.example, {})
    assert question is not None, "parse the example: return a Question for a row of this schema"
    assert question.id, "give every question an id"
    assert question.text.strip(), "read the question's text from the row"
    assert question.golds[0] == question.answer, "read a gold answer that is not blank"


@with_paragraphs
def test_the_example_has_two_supporting_paragraphs(dataset: Dataset) -> None:
    question = dataset.parse(dataset.example, {})
    assert question is not None, "parse the example: return a Question for a row of this schema"
    assert question.hops is not None, "state the number of hops, or leave out the paragraphs"
    assert question.hops >= 2, "a multi-hop question has at least two hops"
    assert sum(paragraph.is_supporting for paragraph in question.paragraphs) >= 2, "mark the supporting paragraphs"
    for paragraph in question.paragraphs:
        within = all(0 <= index < len(paragraph.sentences) for index in paragraph.supporting_sentences)
        assert within, "count supporting sentences from 0, within their paragraph"


@every_dataset
def test_a_paragraph_yields_the_same_passage_at_any_position(dataset: Dataset) -> None:
    one, other = (dataset.parse(row, {}) for row in rows_of(dataset))
    assert one is not None, "parse the example: return a Question for a row of this schema"
    assert other is not None, "parse the same row in another order of paragraphs"
    passages = passages_of(one.paragraphs)
    assert len(passages) == len(one.paragraphs), "do not repeat a paragraph"
    assert passages == passages_of(other.paragraphs), "a paragraph's text must not depend on its position"
    assert len({passage.id for passage in passages}) == len(passages), "no two paragraphs have the same title and text"
    assert all(re.fullmatch(r"[a-z0-9-]+-[0-9a-f]{12}", passage.id) for passage in passages), "give titles as text"


@every_dataset
def test_paragraph_texts_read_as_prose(dataset: Dataset) -> None:
    question = dataset.parse(dataset.example, {})
    assert question is not None, "parse the example: return a Question for a row of this schema"
    for paragraph in question.paragraphs:
        assert not re.search(r"\.\S|\s\s|^\s", paragraph.text), "separate sentences by one space"


@pytest.mark.parametrize("encode", list(ENCODINGS.values()), ids=list(ENCODINGS))
def test_every_file_encoding_yields_the_same_questions(encode: Callable[[list[object]], bytes], tmp_path: Path) -> None:
    dataset = DATASETS["hotpotqa"]
    rows = rows_of(dataset, 3)
    path = tmp_path / "rows.any"
    path.write_bytes(encode(rows))
    loaded = load_questions(dataset.name, data_file=path)
    assert loaded.questions == tuple(dataset.parse(row, {}) for row in rows)
    assert loaded.source == "rows.any"
    assert re.fullmatch(r"[0-9a-f]{64}", loaded.sha256)


@every_dataset
def test_the_data_set_of_a_file_is_detected_from_its_fields(dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows_of(dataset)), encoding="utf-8")
    same = load_file(path) == load_questions(dataset.name, data_file=path)
    assert same, "let `example` be a row of the official file: its fields identify the files"


@every_dataset
@pytest.mark.parametrize(
    "fields", [("question", "Question"), ("answer", "Answer", "possible_answers")], ids=["question", "answer"]
)
@pytest.mark.parametrize("value", [None, "\ud800"], ids=repr)
def test_an_invalid_field_is_reported_with_its_row(
    dataset: Dataset, fields: tuple[str, ...], value: object, tmp_path: Path
) -> None:
    rows, field = rows_of(dataset), field_of(dataset, *fields)
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([rows[0], {**dict(dataset.example), field: value}]), encoding="utf-8")
    with pytest.raises(
        DataFileError,
        match=rf"^rows\.json: row 2, field '{field}(\[0\])?': (it is missing|(it must be|expected) .+, found .+)\.$",
    ):
        load_questions(dataset.name, data_file=path)


@pytest.mark.parametrize("name", OPEN)
def test_a_data_set_without_paragraphs_accepts_every_answer_format(name: str) -> None:
    parse = DATASETS[name].parse
    flash = parse({"id": "test_0", "question": "Who?", "golden_answers": ["Ann", "Anna"], "metadata": {}}, {})
    assert flash is not None
    assert (flash.id, flash.golds, flash.paragraphs) == ("test_0", ("Ann", "Anna"), ())
    for answer, golds in (
        ("Ann", ("Ann",)),
        (True, ("yes",)),
        (False, ("no",)),
        (["1969"], ("1969",)),
        ('["Ann", "Anna"]', ("Ann", "Anna")),
        ("[sic]", ("[sic]",)),
        ({"value": "Ann", "aliases": ["Ann", "Anna"], "type": "Freeform"}, ("Ann", "Anna")),
    ):
        one, same = (parse({"question": "Who?", "answer": answer}, {}) for _ in range(2))
        assert one is not None
        assert one == same
        assert one.golds == golds
        assert one.id.startswith(name)


@every_dataset
def test_a_data_set_is_either_on_the_hub_or_packaged(dataset: Dataset) -> None:
    assert (dataset.hub is None) == (dataset.packaged is not None), "name either a place on the hub or a packaged file"
