"""Reads a benchmark run's files as data: a run folder, a zip of one, or a run that ships with the package.

The benchmark writes them (their contents are described in docs/benchmarks.md); none of its code is imported here.
"""

import csv
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from ...agent.state import Round
from ...errors import InputError
from ...retrieval.passage import Found, Passage
from ...shipped import shipped
from ...wording import first_fault

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
_MOST_BYTES = 64 * 1024 * 1024
_LONGEST_ROW = 1_000_000
_PLOTS = 12
_FOLDERS = 200

Row: TypeAlias = Mapping[str, Any]
Place: TypeAlias = Path | zipfile.Path
"""A folder, or a folder in a zip."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A run: `rows` has an entry for each answer, in the order in which they were given.

    `summary` and `config` are empty if the run was stopped before they were written; `tables` are those of the
    report by name, header first; `plots` are PNG files by name; `passages` are those of the evidence by id, if the
    run was packed with them. A run that is not `linked` has no address.
    """

    name: str
    rows: tuple[Row, ...]
    linked: bool = True
    summary: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    plots: Mapping[str, bytes] = field(default_factory=dict)
    passages: Mapping[str, Found] = field(default_factory=dict)

    @property
    def provider(self) -> str:
        """The name of the provider that answered; empty if unknown."""
        return str(mapping(self.config.get("provider")).get("name") or "")

    def answer(self, question_id: str, method: str) -> Row | None:
        """A method's answer to a question; `None` if it has none."""
        return next((row for row in self.rows if (row["id"], row["method"]) == (question_id, method)), None)

    def setting(self, name: str) -> Any:
        """A setting of the run; `None` if unknown."""
        return mapping(self.config.get("settings")).get(name)


def run_names(results: Path) -> tuple[str, ...]:
    """The runs in `results`, the newest first, after the packaged ones."""
    try:
        folders = sorted((file.parent.name for file in results.glob("*/samples.jsonl")), reverse=True)
    except OSError:
        folders = []
    return (*RECORDED, *folders[:_FOLDERS])


def recorded_runs() -> tuple[Run, ...]:
    """The packaged runs. Raises `InputError`, or `CorpusError` if they were not installed."""
    return tuple(_recorded(name) for name in RECORDED)


def open_run(name: str, results: Path) -> Run:
    """A run by one of the `run_names`. Raises `InputError` if it is missing or cannot be read."""
    if name in RECORDED:
        return _recorded(name)
    if name not in run_names(results):
        raise InputError(f"There is no run {name!r} in {str(results)!r}; choose one from the list.")
    samples = results / name / "samples.jsonl"
    return _kept(results / name, samples.stat().st_mtime_ns)


def open_folder(folder: Path) -> Run:
    """A run in any folder. Raises `InputError` if there is none, or if it cannot be read."""
    try:
        return _kept(folder, (folder / "samples.jsonl").stat().st_mtime_ns)
    except FileNotFoundError:
        raise InputError(
            f"There is no run {str(folder)!r}; give a folder with samples.jsonl, or a zip of one."
        ) from None
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"{str(folder)!r} is not a run ({reason}); give a folder with samples.jsonl, or a zip of one."
        ) from None


def calls_of(folder: Path, row: Row) -> tuple[Mapping[str, Any], ...]:
    """The model calls of an answer from a run's ledger, in order; empty if the ledger is missing."""
    try:
        lines = (folder / "calls.jsonl").read_bytes().split(b"\n")
    except OSError:
        return ()
    own = (json.dumps(row["id"]).encode(), json.dumps(row["method"]).encode())
    found = (_call(line) for line in lines if all(part in line for part in own))
    return tuple(call for call in found if (call.get("question_id"), call.get("method")) == (row["id"], row["method"]))


def _call(line: bytes) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(line))
    except ValueError:
        return {}


def open_zip(file: Path) -> Run:
    """A zipped run folder, regardless of the folder's name in the zip. Raises `InputError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise InputError(f"{file.name!r} unpacks to more than {_MOST_BYTES >> 20} MB; zip a single run.")
            samples = next((name for name in archive.namelist() if name.split("/")[-1] == "samples.jsonl"), None)
            if samples is None:
                raise InputError(f"{file.name!r} contains no samples.jsonl; zip the folder of a benchmark run.")
            return _read(zipfile.Path(archive, samples.removesuffix("samples.jsonl")), file.stem, linked=False)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{file.name!r} cannot be opened ({error}); zip the folder of a benchmark run.") from None


def rounds_of(row: Row) -> tuple[Round, ...]:
    """The rounds of an answer. Raises `InputError` if the row contains anything else."""
    try:
        return _ROUNDS.validate_python(row.get("rounds") or [])
    except ValidationError as error:
        raise InputError(
            f"The rounds of {row['id']!r} by {row['method']!r} are damaged ({first_fault(error)}); run it again."
        ) from None


_ROUNDS = TypeAdapter(tuple[Round, ...])


@lru_cache(maxsize=len(RECORDED))
def _recorded(name: str) -> Run:
    return replace(open_zip(shipped(RECORDED[name])), name=name, linked=True)


@lru_cache(maxsize=4)
def _kept(folder: Path, _changed: int) -> Run:
    return _read(folder, folder.name)


def _read(place: Place, name: str, *, linked: bool = True) -> Run:
    rows = tuple(_rows((place / "samples.jsonl").read_bytes()))
    if not rows:
        raise InputError(f"The run {name!r} has no answer yet; choose another one, or wait for its first.")
    tables, plots = _files(place / "tables", ".csv"), _files(place / "plots", ".png")
    return Run(
        name=name,
        rows=rows,
        linked=linked,
        summary=_json(place / "summary.json"),
        config=_json(place / "config.json"),
        tables={stem: tuple(csv.reader(io.StringIO(raw.decode("utf-8", "replace")))) for stem, raw in tables.items()},
        plots=dict(list(plots.items())[:_PLOTS]),
        passages=_passages(place / PASSAGES),
    )


def _passages(file: Place) -> dict[str, Found]:
    """The passages by id; empty if the run was packed without them; invalid lines are skipped."""
    try:
        lines = [mapping(json.loads(line)) for line in file.read_bytes().splitlines()]
        passages = [Passage.of(str(line["title"]), str(line["text"])) for line in lines]
    except (OSError, KeyError, ValueError):
        return {}
    return {passage.id: Found(passage=passage, score=0.0) for passage in passages}


def _rows(raw: bytes) -> list[Row]:
    """The complete rows, the latest of each question and method; a torn line is skipped, as in a resumed run."""
    found: dict[tuple[str, str], Row] = {}
    for line in raw.split(b"\n"):
        try:
            row = json.loads(line) if line.strip() and len(line) <= _LONGEST_ROW else None
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("id"), str) and isinstance(row.get("method"), str):
            found[row["id"], row["method"]] = row
    return list(found.values())


def _json(file: Place) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(file.read_bytes()))
    except (OSError, KeyError, ValueError):
        return {}


def _files(folder: Place, suffix: str) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    found = {file.name.removesuffix(suffix): file for file in folder.iterdir() if file.name.endswith(suffix)}
    return {stem: found[stem].read_bytes() for stem in sorted(found)}


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one: a file may contain anything."""
    return value if isinstance(value, dict) else {}
