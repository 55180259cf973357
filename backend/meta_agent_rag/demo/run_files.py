"""Reads a benchmark run's files as data: a run folder, or a run that ships with the package.

The benchmark writes them (their contents are described in docs/benchmarks.md); none of its code is imported here.
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from ..agent.state import Round
from ..errors import InputError
from ..retrieval.passage import Found, Passage
from ..shipped import shipped
from ..wording import counted, first_fault

RECORDED: Mapping[str, str] = MappingProxyType(
    {
        "recorded: 2WikiMultiHopQA": "2wikimultihopqa.zip",
        "recorded: HotpotQA": "hotpotqa.zip",
        "recorded: MuSiQue": "musique.zip",
    }
)
"""The files of the packaged runs, by their names in the list and in links; the first is shown by default."""
PASSAGES = "passages.jsonl"
"""The file of a packed run that contains the texts of its evidence."""
LOOP = "metarag"
ONE_PASS = "standard_rag"
RIGHT = 0.5
"""The F1 from which an answer counts as right."""

Row: TypeAlias = Mapping[str, Any]
Place: TypeAlias = Path | zipfile.Path
"""A folder, or a folder in a zip."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A run: `rows` has an entry for each answer, in the order in which they were given.

    `summary` and `config` are empty if the run was stopped before they were written; `plots` are PNG files by name;
    `passages` are those of the evidence by id, if the run was packed with them.
    """

    name: str
    rows: tuple[Row, ...]
    summary: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    plots: Mapping[str, bytes] = field(default_factory=dict)
    passages: Mapping[str, Found] = field(default_factory=dict)

    def answer(self, question_id: str, method: str) -> Row | None:
        """A method's answer to a question; `None` if it has none."""
        return next((row for row in self.rows if (row["id"], row["method"]) == (question_id, method)), None)

    def about(self, part: str) -> Mapping[str, Any]:
        """A part of the configuration; empty if unknown."""
        value = self.config.get(part)
        return value if isinstance(value, dict) else {}


def run_names(results: Path) -> tuple[str, ...]:
    """The runs in `results`, the newest first, after the packaged ones."""
    return (*RECORDED, *sorted((file.parent.name for file in results.glob("*/samples.jsonl")), reverse=True))


def open_run(name: str, results: Path) -> Run:
    """A run by one of the `run_names`. Raises `InputError` if it is missing or cannot be read."""
    if name in RECORDED:
        return _recorded(name)
    if name not in run_names(results):
        raise InputError(f"There is no run {name!r} in {str(results)!r}; choose one from the list.")
    return open_folder(results / name)


def open_folder(folder: Path) -> Run:
    """A run in any folder. Raises `InputError` if there is none, or if it cannot be read."""
    try:
        return _read(folder, folder.name)
    except OSError:
        words = f"There is no run {str(folder)!r}; give a folder with samples.jsonl."
        raise InputError(words) from None


@cache
def _recorded(name: str) -> Run:
    return _read(zipfile.Path(shipped(RECORDED[name])), name)


def rounds_of(row: Row) -> tuple[Round, ...]:
    """The rounds of an answer. Raises `InputError` if the row contains anything else."""
    try:
        return _ROUNDS.validate_python(row.get("rounds") or [])
    except ValidationError as error:
        raise InputError(
            f"The rounds of {row['id']!r} by {row['method']!r} are damaged ({first_fault(error)}); run it again."
        ) from None


_ROUNDS = TypeAdapter(tuple[Round, ...])


def _read(place: Place, name: str) -> Run:
    """The run in a folder; of a question and method the latest row counts, and a torn line is skipped."""
    rows = {
        (row["id"], row["method"]): row for row in _lines(place / "samples.jsonl") if {"id", "method"} <= row.keys()
    }
    if not rows:
        raise InputError(f"The run {name!r} has no answer yet; choose another one, or wait for its first.")
    images: list[Any] = sorted((place / "plots").iterdir(), key=str) if (place / "plots").is_dir() else []
    texts = _lines(place / PASSAGES) if (place / PASSAGES).is_file() else []
    passages = [Passage.of(line["title"], line["text"]) for line in texts]
    return Run(
        name=name,
        rows=tuple(rows.values()),
        summary=_json(place / "summary.json"),
        config=_json(place / "config.json"),
        plots={file.name.removesuffix(".png"): file.read_bytes() for file in images if file.name.endswith(".png")},
        passages={passage.id: Found(passage=passage, score=0.0) for passage in passages},
    )


def _lines(file: Place) -> list[dict[str, Any]]:
    return [line for raw in file.read_bytes().splitlines() if (line := _parsed(raw))]


def _json(file: Place) -> dict[str, Any]:
    return _parsed(file.read_bytes()) if file.is_file() else {}


def _parsed(raw: bytes) -> dict[str, Any]:
    """The object of a JSON text; empty if it is none."""
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


OUTCOMES = ("fixed", "broken", "still right", "still wrong", "not repaired", "error")
"""How an answer changed between its first draft and the end, by exact match."""


def outcome(row: Row) -> str:
    """The outcome of an answer, one of `OUTCOMES`: `fixed` if the first draft was wrong and the answer is right."""
    if row.get("error"):
        return "error"
    rounds = row.get("rounds") or []
    if len(rounds) < 2:
        return "not repaired"
    first, last = ((one.get("em") or 0.0) >= 1.0 for one in (rounds[0], row))
    if first == last:
        return "still right" if last else "still wrong"
    return "fixed" if last else "broken"


def methods(run: Run) -> tuple[str, ...]:
    """The methods of a run; those that repaired something come first."""
    named = tuple(dict.fromkeys(row["method"] for row in run.rows))
    repairing = {row["method"] for row in run.rows if row.get("fired")}
    return tuple(sorted(named, key=lambda name: name not in repairing))


def listed(run: Run, method: str, ended: str = "") -> list[tuple[str, str]]:
    """The answers of a method, with this outcome if one is given, as (label, index in the run).

    Those that a repair fixed come first, then those with the most repairs.
    """
    own = [(place, row) for place, row in enumerate(run.rows) if row["method"] == method]
    found = [(place, row) for place, row in own if ended in {"", outcome(row)}]
    found.sort(key=lambda pair: (outcome(pair[1]) != "fixed", -len(pair[1].get("rounds") or [])))
    return [(_label(row), str(place)) for place, row in found]


def _label(row: Row) -> str:
    f1 = "" if row.get("f1") is None else f" · F1 {100 * row['f1']:.0f}"
    return f"{row.get('question', '')} — {outcome(row)} · {counted(len(row.get('rounds') or []), 'round')}{f1}"


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A recorded answer of the loop: what it shows, and one pass's answer to the same question, if known."""

    shows: str
    run: Run
    row: Row
    one_pass: Row | None


_TOUR = (
    ("HotpotQA", "5abbf9b355429931dba145fe", "Described, not named: the draft stops one step short, repaired"),
    ("2WikiMultiHopQA", "05a2dec4088811ebbd6eac1f6bf848b6", "Reasoning error: repaired"),
    ("2WikiMultiHopQA", "15decb900bda11eba7f7acde48001122", "External only, then reasoning error: repaired"),
    ("MuSiQue", "2hop__16581_16525", "Insufficient knowledge: repaired"),
    ("MuSiQue", "2hop__135652_669373", "Internal only, in a later round"),
    ("2WikiMultiHopQA", "0404d2cc0bb011ebab90acde48001122", "A repair that fails"),
    ("2WikiMultiHopQA", "099f34280bda11eba7f7acde48001122", "A right draft that stays"),
)
"""Data set, question and title: a description, for each deficit a repair, a failure, and a right draft."""


def tour() -> tuple[Stop, ...]:
    """The stops. Raises `InputError` if the packaged runs are damaged, `CorpusError` if they were not installed."""
    stops = []
    for dataset, id_, shows in _TOUR:
        run = _recorded(f"recorded: {dataset}")
        row = run.answer(id_, LOOP)
        if row is None:
            raise InputError(f"The packaged run of {dataset} is damaged: it lacks {id_!r}; reinstall the package.")
        stops.append(Stop(shows=shows, run=run, row=row, one_pass=run.answer(id_, ONE_PASS)))
    return tuple(stops)
