"""Reads a benchmark run's files as data: a run folder, a zip of one, or a run that ships with the package.

The benchmark writes them (their contents are described in docs/benchmarks.md); none of its code is imported here.
"""

import csv
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from ..agent.state import NO_DEFICIT, Round
from ..errors import InputError
from ..retrieval.passage import Found, Passage
from ..shipped import shipped
from ..wording import first_fault
from .vocabulary import spoken

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
    return open_folder(results / name)


def open_folder(folder: Path) -> Run:
    """A run in any folder. Raises `InputError` if there is none, or if it cannot be read."""
    try:
        return _kept(folder, (folder / "samples.jsonl").stat().st_mtime_ns)
    except OSError:
        words = f"There is no run {str(folder)!r}; give a folder with samples.jsonl, or a zip of one."
        raise InputError(words) from None


def calls_of(folder: Path, row: Row) -> tuple[Mapping[str, Any], ...]:
    """The model calls of an answer from a run's ledger, in order; empty if the ledger is missing."""
    try:
        lines = (folder / "calls.jsonl").read_bytes().split(b"\n")
    except OSError:
        return ()
    own = (json.dumps(row["id"]).encode(), json.dumps(row["method"]).encode())
    found = (mapping(_parsed(line)) for line in lines if all(part in line for part in own))
    return tuple(call for call in found if (call.get("question_id"), call.get("method")) == (row["id"], row["method"]))


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
        row = _parsed(line) if len(line) <= _LONGEST_ROW else None
        if isinstance(row, dict) and isinstance(row.get("id"), str) and isinstance(row.get("method"), str):
            found[row["id"], row["method"]] = row
    return list(found.values())


def _parsed(raw: bytes) -> Any:
    """The value of a JSON text; `None` if it is none."""
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _json(file: Place) -> Mapping[str, Any]:
    try:
        return mapping(_parsed(file.read_bytes()))
    except (OSError, KeyError):
        return {}


def _files(folder: Place, suffix: str) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    found = {file.name.removesuffix(suffix): file for file in folder.iterdir() if file.name.endswith(suffix)}
    return {stem: found[stem].read_bytes() for stem in sorted(found)}


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one: a file may contain anything."""
    return value if isinstance(value, dict) else {}


NOT_REPAIRED = "not repaired"
OUTCOMES = ("fixed", "broken", "still right", "still wrong", NOT_REPAIRED, "error")
"""How an answer changed between its first draft and the end, by exact match."""

ANY = ""
SHOWN = 200
"""The number of answers listed at once."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The conditions for an answer; an empty one matches all."""

    method: str = ANY
    outcome: str = ANY
    deficit: str = ANY
    hops: str = ANY

    def takes(self, row: Row) -> bool:
        """Does the answer meet all conditions?"""
        return (
            self.method in {ANY, row["method"]}
            and self.outcome in {ANY, outcome(row)}
            and (self.deficit == ANY or self.deficit in deficits(row))
            and self.hops in {ANY, str(row.get("hops"))}
        )


def outcome(row: Row) -> str:
    """The outcome of an answer, one of `OUTCOMES`: `fixed` if the first draft was wrong and the answer is right."""
    if row.get("error"):
        return "error"
    rounds = row.get("rounds") or []
    if len(rounds) < 2:
        return NOT_REPAIRED
    first, last = _right(rounds[0]), _right(row)
    if first == last:
        return "still right" if last else "still wrong"
    return "fixed" if last else "broken"


def deficits(row: Row) -> tuple[str, ...]:
    """The deficits that were found or repaired, without duplicates."""
    found = (
        (round_.get(part) or {}).get("deficit")
        for round_ in row.get("rounds") or []
        for part in ("plan", "diagnosis")
    )  # fmt: skip
    return tuple(dict.fromkeys(name for name in found if name))


def methods(run: Run) -> tuple[str, ...]:
    """The methods of a run; those that repaired something come first."""
    named = tuple(dict.fromkeys(row["method"] for row in run.rows))
    repairing = {row["method"] for row in run.rows if row.get("fired")}
    return tuple(sorted(named, key=lambda name: (name not in repairing, named.index(name))))


def answer_to(run: Run, question_id: str, method: str) -> Row | None:
    """The answer to a question by a method; if none is given, by the first of `methods` that has one."""
    by_method = {row["method"]: row for row in run.rows if row["id"] == question_id}
    wanted = (method,) if method else methods(run)
    return next((by_method[name] for name in wanted if name in by_method), None)


def choices(run: Run) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The choices of each part of a filter, as (label, value); the first matches all."""
    rows = run.rows
    counted = [(f"{name} ({sum(outcome(row) == name for row in rows)})", name) for name in OUTCOMES]
    hops = sorted({row["hops"] for row in rows if isinstance(row.get("hops"), int)})
    found = sorted({name for row in rows for name in deficits(row)})
    return {
        "outcome": [("any", ANY), *counted],
        "deficit": [("any", ANY), *((name.replace("_", " "), name) for name in found)],
        "hops": [("any", ANY), *((str(count), str(count)) for count in hops)],
        "method": [("all methods", ANY), *((name, name) for name in methods(run))],
    }


def listed(run: Run, wanted: Filter) -> list[tuple[str, str]]:
    """The answers that match a filter as (label, index in the run).

    Those that a repair fixed come first, then those with the most repairs.
    """
    found = [(place, row) for place, row in enumerate(run.rows) if wanted.takes(row)]
    found.sort(key=lambda pair: (outcome(pair[1]) != "fixed", -len(pair[1].get("rounds") or [])))
    return [(_label(row, wanted), str(place)) for place, row in found]


def _label(row: Row, wanted: Filter) -> str:
    rounds = len(row.get("rounds") or [])
    parts = [
        *([] if wanted.method else [row["method"]]),
        outcome(row),
        f"{rounds} round{'' if rounds == 1 else 's'}",
        "" if row.get("f1") is None else f"F1 {100 * row['f1']:.0f}",
    ]
    return f"{row.get('question', '')} — {' · '.join(part for part in parts if part)}"


def _right(scored: Mapping[str, Any]) -> bool:
    return (scored.get("em") or 0.0) >= 1.0


LOOP = "metarag"
ONE_PASS = "standard_rag"
RIGHT = 0.5
"""The F1 from which an answer counts as right."""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A recorded answer of the loop: what it shows, and one pass's answer to the same question, if known."""

    shows: str
    run: Run
    row: Row
    one_pass: Row | None

    @property
    def gain(self) -> float:
        """The F1 of the returned answer minus that of the first draft."""
        return float(self.row["f1"]) - float(self.row["rounds"][0]["f1"])

    @property
    def advantage(self) -> float:
        """The F1 of the returned answer minus that of the first draft or of one pass, whichever is higher."""
        return min(self.gain, float(self.row["f1"]) - float(self.one_pass["f1"]) if self.one_pass else self.gain)

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """The deficit found in each round; empty for a round without one."""
        found = [(one.get("diagnosis") or {}).get("deficit") for one in self.row["rounds"]]
        return tuple(name if name and name != NO_DEFICIT else "" for name in found)


def tour() -> tuple[Stop, ...]:
    """The stops, from the packaged runs; a repaired one is titled with its deficits in order.

    Raises `InputError` if the runs are damaged, `CorpusError` if they were not installed.

    For each deficit, the one diagnosed most often first: among the questions whose first draft had it and was
    improved, the one with the largest advantage over both that draft and one pass; if there is none, the same among
    all questions for which it was diagnosed in a later round; then the one that lost most by a repair, or gained
    nothing; then the first whose correct draft was kept immediately; and for a run not represented so far, the one
    with the largest advantage. Ties go to the longest complete derivation, then to the first; no question occurs twice.
    """
    answers = [
        Stop(shows="", run=run, row=row, one_pass=run.answer(row["id"], ONE_PASS))
        for run in recorded_runs()
        for row in run.rows
        if row["method"] == LOOP and row.get("rounds") and not row.get("error")
    ]
    chosen: list[Stop] = []

    def choose(shows: str, fitting: Iterable[Stop], by: Callable[[Stop], float]) -> bool:
        free = [stop for stop in fitting if all(stop.row is not one.row for one in chosen)]
        if free:
            chosen.append(_titled(shows, max(free, key=lambda stop: (by(stop), _facts(stop.row)))))
        return bool(free)

    found = Counter(name for stop in answers for name in stop.diagnosed if name)
    for name in sorted(found, key=lambda name: (-found[name], name)):
        repaired = [stop for stop in answers if stop.diagnosed[0] == name and stop.gain > 0]
        later = [stop for stop in answers if name in stop.diagnosed[1:]]
        if not choose("", repaired, lambda stop: stop.advantage):
            choose(f"{spoken(name).capitalize()}, in a later round", later, lambda stop: stop.advantage)
    fired = [stop for stop in answers if len(stop.row["rounds"]) > 1]
    failed = [stop for stop in fired if stop.row["f1"] < RIGHT]
    choose("A repair that fails", failed, lambda stop: -stop.gain)
    kept = [stop for stop in answers if len(stop.row["rounds"]) == 1 and stop.row["f1"] == 1]
    choose("A right draft that stays", kept, lambda stop: stop.gain)
    for run in {id(stop.run): stop.run for stop in answers}.values():
        if all(stop.run is not run for stop in chosen):
            own = [stop for stop in answers if stop.run is run]
            choose(f"Largest gain on {run.name.removeprefix('recorded: ')}", own, lambda stop: stop.advantage)
    return tuple(chosen)


def _titled(shows: str, stop: Stop) -> Stop:
    repaired = [spoken(round_["plan"]["deficit"]) for round_ in stop.row["rounds"][1:]]
    title = shows or f"{', then '.join(repaired).capitalize()}: repaired"
    last = stop.row["rounds"][-1].get("derivation") or {}
    if stop.gain > 0 and any(fact.get("open") for fact in last.get("facts", ())):
        title += ", a fact open"
    if stop.gain > 0 and stop.advantage <= 0:
        title += "; one pass was right too"
    return replace(stop, shows=title)


def _facts(row: Row) -> int:
    """The number of facts of a complete derivation, so that there is a chain to show; 0 if one is open."""
    facts = (row["rounds"][0].get("derivation") or {}).get("facts", ())
    return 0 if any(fact.get("open") for fact in facts) else len(facts)
