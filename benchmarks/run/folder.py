"""A run's folder: its contents, how an interrupted run is resumed, and a finished one as other commands read it."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from meta_agent_rag.discovery import named
from meta_agent_rag.errors import InputError
from meta_agent_rag.journal import Journal, record_at, records
from meta_agent_rag.llm.budget import unsettled
from meta_agent_rag.llm.ledger import read_ledger
from meta_agent_rag.wording import first_fault

CONFIG, SAMPLES, CALLS, SUMMARY, REPORT = "config.json", "samples.jsonl", "calls.jsonl", "summary.json", "report.md"
RESERVATIONS = "reservations.jsonl"
CODE = ("version", "commit", "lock")
Row: TypeAlias = Mapping[str, Any]
_AT_HAND = 256
_STORED = object()


class _Begun(BaseModel, strict=True):
    dataset: str
    mode: str
    methods: list[str]


class _Config(BaseModel, strict=True):
    """The parts of `config.json` that every reader needs."""

    experiment: _Begun
    dataset: dict[str, Any]
    provider: dict[str, Any]
    settings: dict[str, Any]


class StoredRow(Mapping[str, Any]):
    """A row of `samples.jsonl` in little memory: its lists and objects stay on disk and are read on demand."""

    __slots__ = ("_at", "_read", "_values")

    def __init__(self, read: Callable[[int], Mapping[str, Any]], at: int, row: Mapping[str, Any]) -> None:
        self._read = read
        self._at = at
        self._values = {name: _STORED if isinstance(value, (list, dict)) else value for name, value in row.items()}

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        return self._read(self._at)[name] if value is _STORED else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _current(path: Path) -> dict[tuple[str, str], tuple[int, Mapping[str, Any]]]:
    """The rows of a file with their places in it, by (question id, method); a later row replaces an earlier one."""
    return {
        (row["id"], row["method"]): (at, row)
        for at, row in records(path)
        if row is not None and "error" in row and isinstance(row.get("id"), str) and isinstance(row.get("method"), str)
    }


class RunFolder:
    """`RESULTS/<utc>-<dataset>-<mode>/` with config, samples, calls, predictions, summary and report."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._samples: Journal | None = None

    @classmethod
    def create(cls, results: Path, *, at: datetime, dataset: str, mode: str, config: Mapping[str, Any]) -> "RunFolder":
        """A new folder; a second run within the same second gets a number."""
        stem = f"{at:%Y%m%dT%H%M%SZ}-{dataset}-{mode}"
        if Path(stem).name != stem:
            raise InputError(f"{stem!r} is not a valid folder name; use a data set name of the package.")
        for number in range(1, 1000):
            path = results / (stem if number == 1 else f"{stem}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise InputError(
                    f"The folder {str(results)!r} cannot be written ({error}); give --output-dir."
                ) from None
            folder = cls(path)
            folder.write_json(CONFIG, config)
            return folder
        raise InputError(f"{str(results)!r} already has a thousand runs of this second; give another --output-dir.")

    @classmethod
    def named(cls, run: str, results: Path) -> "RunFolder":
        """An existing folder, by path or by its name in `results`."""
        for path in (Path(run), results / run):
            if (path / CONFIG).is_file():
                return cls(path)
        raise InputError(
            f"{run!r} is not a run folder, and {str(results)!r} contains none of that name; check --output-dir."
        )

    @property
    def calls(self) -> Path:
        """The ledger's file."""
        return self.path / CALLS

    @property
    def reservations(self) -> Path:
        """What calls in progress could cost."""
        return self.path / RESERVATIONS

    def config(self) -> dict[str, Any]:
        """The configuration that the run was started with; raises `InputError` if it is damaged."""
        file = self.path / CONFIG
        try:
            config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            _Config.model_validate(config)
        except ValidationError as error:
            raise InputError(f"{str(file)!r} is damaged ({first_fault(error)}); start a new run.") from None
        except (OSError, ValueError, RecursionError):
            raise InputError(f"{str(file)!r} is damaged: it is not JSON; start a new run.") from None
        return config

    def note_code(self, now: Mapping[str, Any]) -> str:
        """If other code continues the run, add it to `config.json` as `resumed_with`, and say so in one sentence."""
        config = self.config()
        code, began = ({name: one[name] for name in CODE if one.get(name) is not None} for one in (now, config))
        others = config.get("resumed_with", [])
        if code == began:
            return ""
        if code not in others:
            self.write_json(CONFIG, {**config, "resumed_with": [*others, code]})
        return f"{self.mixed_code()} Start a new run to avoid that."

    def note_limit(self, limit_usd: float | None) -> None:
        """Keep a new cost limit in `config.json`, so that the next part of the run has it too."""
        config = self.config()
        if config["settings"].get("cost_limit_usd") != limit_usd:
            self.write_json(CONFIG, {**config, "settings": {**config["settings"], "cost_limit_usd": limit_usd}})

    def mixed_code(self) -> str:
        """One sentence if several versions of the code started or resumed the run, else nothing."""
        config = self.config()
        codes = [f"{one.get('version')} ({one.get('commit')})" for one in (config, *config.get("resumed_with", []))]
        if len(codes) == 1:
            return ""
        return f"The run was started or resumed with different code: version {', then '.join(codes)}."

    def rows(self) -> dict[tuple[str, str], StoredRow]:
        """The rows so far by (question id, method), in any number in little memory.

        The rows read last are cached, because analyses go over all rounds of one row, then of the next.
        """
        file = self.path / SAMPLES
        read = lru_cache(maxsize=_AT_HAND)(lambda at: record_at(file, at))
        return {key: StoredRow(read, at, row) for key, (at, row) in _current(file).items()}

    def compact(self) -> None:
        """Rewrite `samples.jsonl` with its current rows alone, if it also has torn rows or rows since replaced."""
        file = self.path / SAMPLES
        places = sorted(at for at, _ in _current(file).values())
        if len(places) == sum(1 for _ in records(file)):
            return
        unfinished = self.path / f".{SAMPLES}.unfinished"
        with file.open("rb") as source, unfinished.open("wb") as kept:
            for at in places:
                source.seek(at)
                kept.write(source.readline().rstrip(b"\n") + b"\n")
            kept.flush()
            os.fsync(kept.fileno())
        os.replace(unfinished, file)

    def paid_usd(self) -> Decimal:
        """What the run has paid so far, and what calls in progress at a kill may have cost.

        A call with an unknown price counts as 0.
        """
        paid = sum((row.paid_usd or Decimal(0) for row in read_ledger(self.calls)), Decimal(0))
        return paid + unsettled(self.reservations)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make this the only process that works on the run: two would pay for everything twice."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"The run {self.path.name!r} needs its own folder ({error.strerror}).") from None
        lock = FileLock(self.path / ".lock", timeout=0, thread_local=False)
        try:
            lock.acquire()
        except OSError as error:
            busy = isinstance(error, Timeout)
            why = "is running in another process; wait for it" if busy else f"cannot be locked ({error})"
            raise InputError(f"The run {self.path.name!r} {why}.") from None
        try:
            yield
        finally:
            lock.release()

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; it is on disk before this returns."""
        self._samples = self._samples or Journal(self.path / SAMPLES, durable=True)
        self._samples.append(row)

    def write_calls(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write an existing ledger, one row per call."""
        ledger = Journal(self.calls)
        for row in rows:
            ledger.append(row)
        ledger.close()

    def close(self) -> None:
        """Close the files."""
        if self._samples is not None:
            self._samples.close()
            self._samples = None

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write the whole file, or keep the old one."""
        self.write_text(name, json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write the whole file, or keep the old one."""
        unfinished = self.path / f".{name}.unfinished"
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, self.path / name)


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """A run as comparison and calibration read it: its name, its `config.json`, and its rows by method, in order."""

    name: str
    config: Mapping[str, Any]
    methods: Mapping[str, tuple[Row, ...]]

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        return str(self.config["experiment"]["dataset"])

    def rows(self, method: str) -> tuple[Row, ...]:
        """The rows of a method; raises `UnknownNameError`."""
        return named(f"method of the run {self.name!r} called", method, self.methods)


def past_run(run: str, results: Path) -> PastRun:
    """The run in a folder, by its path or its name in `results`.

    Raises `InputError` if the folder does not exist, its configuration or a row is damaged, or it has no row yet.
    """
    from ..rows.samples import require_whole  # imported here, so that --help is quick

    folder = RunFolder.named(run, results)
    config = folder.config()
    by_method: dict[str, list[Row]] = {name: [] for name in config["experiment"]["methods"]}
    rows = folder.rows()
    require_whole(rows.values(), folder.path / SAMPLES)
    for (_, method), row in rows.items():
        by_method.setdefault(method, []).append(row)
    methods = {name: tuple(own) for name, own in by_method.items() if own}
    name = folder.path.resolve().name
    if not methods:
        raise InputError(f"The run {name!r} has no answers yet; continue it with --resume {name}.")
    return PastRun(name=name, config=config, methods=methods)
