"""Loading data sets: each schema, malformed files, aliases, the hub's format, and the sampling of questions."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.run.sampling import by_position, draw
from meta_agent_rag.datasets import Question, discover, load_questions
from meta_agent_rag.errors import DataFileError, InputError

NAME = "hotpotqa"
ROW: dict[str, Any] = dict(discover()[NAME].example)
LINE = json.dumps(ROW)


def with_field(**changes: object) -> bytes:
    return json.dumps([{**ROW, **changes}]).encode()


def without(field: str) -> bytes:
    return json.dumps([{name: value for name, value in ROW.items() if name != field}]).encode()


MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", r"is empty; expected a JSON list or JSON Lines"),
    "cut short": (b'[{"_id": "1", "quest', r"is not JSON .* check that it is complete"),
    "second line torn": (f'{LINE}\n{{"_id": "2"'.encode(), r"row 2: expected one JSON object per line"),
    "one object": (json.dumps({"data": [ROW]}, indent=2).encode(), r"contains a single JSON object; expected a list"),
    "a list of lists": (b"[[1, 2]]", r"row 1, it must be an object, found \[1, 2\]"),
    "Latin-1": ('["é"]'.encode("latin-1"), r"is not UTF-8"),
    "damaged gzip": (gzip.compress(LINE.encode())[:-9], r"is a damaged gzip file"),
    "no answer": (without("answer"), r"row 1, field 'answer': it is missing"),
    "empty answer": (with_field(answer=" "), r"field 'answer': expected some text"),
    "context without text": (with_field(context=[["A", [" "]]]), r"field 'context': expected at least one paragraph"),
    "sentence a number": (with_field(context=[["A", ["b", 3]]]), r"field 'context\[0\]\[1\]\[1\]': it must be text"),
    "hub columns of unequal length": (
        with_field(context={"title": ["A", "B"], "sentences": [["a"]]}),
        r"field 'context': expected equally many entries in title and sentences",
    ),
    "duplicate ids": (
        json.dumps([ROW, {**ROW, "_id": "b"}, ROW]).encode(),
        r"row 3, field 'id': .* row 1 also has 'hotpot-1'",
    ),
}


@pytest.mark.parametrize(("content", "message"), list(MALFORMED.values()), ids=list(MALFORMED))
def test_a_malformed_file_is_reported_in_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "given.json"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=message) as raised:
        load_questions(NAME, data_file=path)
    assert str(raised.value).startswith("given.json")
    assert "\n" not in str(raised.value)
    assert str(raised.value).endswith(".")


def load(tmp_path: Path, *rows: object, name: str = NAME) -> tuple[Question, ...]:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return load_questions(name, data_file=path).questions


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    (question,) = load(tmp_path, {**ROW, "answer": "one\u0085two\u2028three"})
    assert question.answer == "one\u0085two\u2028three"


def test_facts_outside_the_context_are_tolerated_and_kept(tmp_path: Path) -> None:
    facts = [["Nowhere", 0], ["Ida Renn", 9], ["Ida Renn", -1], ["Aurel (opera)", 1]]
    (question,) = load(tmp_path, {**ROW, "supporting_facts": facts})
    opera, composer = question.paragraphs
    assert opera.supporting_sentences == {1}
    assert composer.is_supporting
    assert composer.supporting_sentences == frozenset()
    assert question.supporting_facts == tuple((title, index) for title, index in facts)


@pytest.mark.parametrize("name", [NAME, "2wikimultihopqa"])
def test_the_hub_format_yields_the_same_question(name: str, tmp_path: Path) -> None:
    official: dict[str, Any] = dict(discover()[name].example)
    titles, sentences = zip(*official["context"], strict=True)
    fact_titles, indices = zip(*official["supporting_facts"], strict=True)
    hub = {field: value for field, value in official.items() if field != "_id"} | {
        "id": official["_id"],
        "context": {"title": titles, "sentences": sentences},
        "supporting_facts": {"title": fact_titles, "sent_id": indices},
    }
    assert load(tmp_path, hub, name=name) == load(tmp_path, official, name=name)


def test_hotpotqa_joins_sentences_directly_and_2wiki_with_a_space(tmp_path: Path) -> None:
    context = [["Skunk Fu!", ['It is called "Skunk Fu!', '".', " It ended."]]]
    (hotpot,) = load(tmp_path, {**ROW, "context": context})
    assert hotpot.paragraphs[0].text == 'It is called "Skunk Fu!". It ended.'
    (two_wiki,) = load(tmp_path, {**ROW, "context": [["A", ["One.", "Two.", "", " Three."]]]}, name="2wikimultihopqa")
    assert two_wiki.paragraphs[0].text == "One. Two. Three."


def test_musique_reads_hops_and_aliases_and_skips_unanswerable_questions(tmp_path: Path) -> None:
    row: dict[str, Any] = dict(discover()["musique"].example)
    rows = [{**row, "id": "4hop3__1_2"}, {**row, "id": "3hop1__1", "answerable": False}, {**row, "id": "other"}]
    questions = load(tmp_path, *rows, name="musique")
    assert [(question.id, question.hops, question.type) for question in questions] == [
        ("4hop3__1_2", 4, "4hop3"),
        ("other", None, None),
    ]
    assert questions[0].golds == ("the Tarn", "Tarn River")
    assert [paragraph.is_supporting for paragraph in questions[0].paragraphs] == [True, True, False]
    with pytest.raises(DataFileError, match="no answerable question of 'musique'"):
        load(tmp_path, {**row, "answerable": False}, name="musique")


def write_aliases(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "id_aliases.json"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def two_wiki_file(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([{**discover()["2wikimultihopqa"].example, **changes}]), encoding="utf-8")
    return path


def test_aliases_and_demonyms_are_found_by_answer_id(tmp_path: Path) -> None:
    aliases = write_aliases(
        tmp_path,
        {"Q_id": "Q1", "aliases": ["O. Hale", "Otto Hale", " "], "demonyms": ["Haler"]},
        {"Q_id": "Q2", "aliases": ["other"], "demonyms": []},
    )
    loaded = load_questions("2wikimultihopqa", data_file=two_wiki_file(tmp_path), aliases_file=aliases)
    assert loaded.questions[0].golds == ("Otto Hale", "O. Hale", "Haler")
    assert loaded.aliases_sha256 is not None


def test_aliases_that_match_nothing_are_an_error(tmp_path: Path) -> None:
    aliases = write_aliases(tmp_path, {"Q_id": "Q1", "aliases": ["x"], "demonyms": []})
    with pytest.raises(DataFileError, match="field 'answer_id'"):
        load_questions("2wikimultihopqa", data_file=two_wiki_file(tmp_path, answer_id=None), aliases_file=aliases)


def test_aliases_are_rejected_for_a_data_set_without_support(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not support a file of aliases"):
        load_questions("musique", aliases_file=write_aliases(tmp_path, {}))


def test_the_same_data_gzipped_have_the_same_checksum(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_bytes(f"[{LINE}]".encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert load_questions(NAME, data_file=plain).sha256 == load_questions(NAME, data_file=packed).sha256


# -- the hub, in a separate process: its address is read at import, and an unreachable hub is slow to detect

Done = subprocess.CompletedProcess[str]
HUB_CODE = """
import sys
from meta_agent_rag.datasets import load_questions
from meta_agent_rag.errors import DataFileError
try:
    print(len(load_questions("hotpotqa").questions))
except DataFileError as error:
    sys.exit(str(error))
"""


def with_an_unreachable_hub(code: str, home: Path, *more: str, hub: str = "http://127.0.0.1:9") -> Done:
    environment = {**os.environ, "HF_ENDPOINT": hub, "HF_HOME": str(home), "HF_HUB_OFFLINE": ""}
    command = [sys.executable, "-c", code, *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_an_unreachable_hub_is_reported_in_one_sentence_with_a_remedy(tmp_path: Path) -> None:
    started = time.monotonic()
    result = with_an_unreachable_hub(HUB_CODE, tmp_path)
    assert time.monotonic() - started < 40
    assert result.returncode == 1
    assert "does not respond and no cached copy can be read" in result.stderr
    assert result.stderr.strip().endswith("download the official file and pass it with --data-file.")
    assert "Traceback" not in result.stderr


# -- which questions a run takes


def questions(count: int) -> tuple[Question, ...]:
    return tuple(Question(id=f"q{n}", text="?", answer="a", paragraphs=()) for n in range(count))


@given(st.integers(1, 40), st.integers(1, 60), st.integers())
def test_a_sample_is_reproducible_in_file_order_and_without_duplicates(count: int, n: int, seed: int) -> None:
    file = questions(count)
    drawn = draw(file, n, seed)
    assert drawn == draw(file, n, seed)
    assert len(drawn) == min(n, count)
    assert list(drawn) == [question for question in file if question in drawn]


def test_a_smaller_sample_is_a_subset_of_a_larger_one_and_seeds_differ() -> None:
    file = questions(200)
    assert {q.id for q in draw(file, 20, 42)} < {q.id for q in draw(file, 50, 42)}
    assert draw(file, 20, 42) != draw(file, 20, 43)
    # Pinned: a different sample would make recorded runs irreproducible.
    assert [q.id for q in draw(questions(10), 3, 42)] == ["q3", "q5", "q8"]


def test_positions_start_at_one_and_include_both_ends() -> None:
    file = questions(5)
    assert by_position(file, "2-4") == file[1:4]
    assert by_position(file, "1-5") == file
    assert by_position(file, " 3-3 ") == file[2:3]


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ("3", "Write the range as A-B"),
        ("9" * 5000 + "-1", "Write the range as A-B"),
        ("\u0661-\u0662", "Write the range as A-B"),
        ("0-3", "count from 1"),
        ("4-2", "ends before it starts; write 2-4"),
        ("2-6", "beyond the 5 questions"),
    ],
)
def test_an_invalid_range_is_explained(positions: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        by_position(questions(5), positions)
