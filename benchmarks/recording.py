"""Recorded runs: every question, answer and call of a run in one file, and their replay without a model.

A record is JSON Lines, each an object with its kind as the only key:

| kind | what |
|---|---|
| `run` | format, experiment, settings without secrets, models, table, deficits, analyses; the first line |
| `question` | a question with its paragraphs |
| `call` | a ledger row, the prompt and the reply, or the error that was raised |
| `row` | the answer of one row of the table to a question, with all rounds, unscored |
| `summary` | the SHA-256 of `summary.json`; the last line |

Earlier records have lines of other kinds too, which are skipped.
"""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import DataFileError, InputError
from meta_agent_rag.journal import Journal, records
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.llm.pricing import Tariff

from .analyses.economy import newest_tariffs
from .methods import Method, MethodTask
from .metrics import SCORES, Scorer, scorer_named
from .rows.samples import QUESTION_FIELDS, asked, fault, rescored, supported
from .run.arms import Arm

FORMAT = 2
UNFINISHED = ".record"
"""The file in a run's folder with what was recorded so far."""
_QUESTION = TypeAdapter(Question)
_DERIVED = (*QUESTION_FIELDS, "supporting_facts_gold", "support", "joint", *SCORES)
_NEEDED = (
    *("experiment", "settings", "provider", "dataset", "pooled", "model_words"),
    *("arms", "quadrants", "analyses", "tariffs"),
)
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError)


@dataclass(kw_only=True)
class Recorder:
    """Records calls and answers in the order in which they happen.

    They are written into the run's folder as they arrive, so that a long run needs no memory for them and continues
    where it was stopped; the record itself exists once the run is complete.
    """

    path: Path
    _lines: Path = Path()
    _unfinished: Path = Path()
    _rest: Journal | None = None

    def begin(
        self, run: Mapping[str, Any], questions: Iterable[Question], folder: Path, answered: set[tuple[str, str]]
    ) -> None:
        """Record the experiment and its questions, or go on with the record of a run that was stopped.

        `answered` are its answers so far by (question id, method). Raises `InputError` if one of them was not recorded,
        or if the record cannot be written.
        """
        self._lines = folder / UNFINISHED
        rows = (line["row"] for _, line in records(self._lines) if line is not None and "row" in line)
        recorded = {(row["id"], row["method"]) for row in rows}
        if answered - recorded:
            raise InputError(
                f"The run {folder.name!r} has answers that were not recorded; continue without --record, or record a "
                "new run: the response cache has what was paid for."
            )
        self._unfinished = self.path.with_name(f".{self.path.name}.{folder.name}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._unfinished.touch()
        except OSError as error:
            raise InputError(f"The record {str(self.path)!r} cannot be written ({error}); name another FILE.") from None
        if not recorded:  # it may have been stopped before all questions were written
            self._lines.unlink(missing_ok=True)
        self._rest = Journal(self._lines)
        if recorded:
            return
        self._write("run", {"format": FORMAT, **run})
        for question in questions:
            self._write("question", _QUESTION.dump_python(question, mode="json"))

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Record a call with its prompt and its reply, or the error that was raised."""
        prompt = [[message.role, message.content] for message in request.messages]
        came = (
            {"reply": asdict(outcome)}
            if isinstance(outcome, Reply)
            else {"raised": [type(outcome).__name__, str(outcome)]}
        )
        self._write("call", {"row": vars(row), "prompt": prompt, **came})

    def answered(self, row: Mapping[str, Any]) -> None:
        """Record an answered or failed question: its row of `samples.jsonl`, without what is scored or looked up."""
        rounds = [_without(round_, "em", "f1") for round_ in row["rounds"]]
        self._write("row", {**_without(row, *_DERIVED), "rounds": rounds})

    def finish(self, summary_sha256: str) -> None:
        """Write the whole record of this run, or keep an old one; with `.gz` gzipped, equal lines to equal bytes."""
        self._write("summary", {"sha256": summary_sha256})
        with self._unfinished.open("wb") as file:
            whole = (json.dumps(line).encode() + b"\n" for _, line in records(self._lines) if line is not None)
            if self.path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
                    packed.writelines(whole)
            else:
                file.writelines(whole)
        self._unfinished.replace(self.path)
        self._lines.unlink()

    def close(self) -> None:
        """Let go of the files; what was recorded so far stays in the folder until the record is complete."""
        if self._rest is not None:
            self._rest.close()
            self._unfinished.unlink(missing_ok=True)

    def _write(self, kind: str, content: object) -> None:
        if self._rest is not None:
            self._rest.append({kind: content})


@dataclass(kw_only=True)
class Recording:
    """A record that has been read.

    `arms` are the rows of its table, `quadrants` those of its deficits, and `tariffs` the prices of its analyses;
    `calls` are the ledger's rows in the order of the record.
    """

    path: Path
    run: Mapping[str, Any]
    questions: tuple[Question, ...]
    summary_sha256: str
    arms: tuple[Arm, ...]
    quadrants: Mapping[str, tuple[bool, bool] | None]
    tariffs: Mapping[str, Tariff]
    calls: Sequence[Mapping[str, Any]]
    _answers: Mapping[tuple[str, str], Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """Read a record; raises `DataFileError` if the file is not a record, or has another format."""
        lines = list(_lines(path))
        if not lines or lines[0][0] != "run" or lines[-1][0] != "summary":
            raise DataFileError(f"{path.name} is not a complete record of a run; record the run again with --record.")
        run = lines[0][1]
        if not isinstance(run, dict) or not isinstance(run.get("experiment", {}), dict):
            raise DataFileError(f"{path.name} has a damaged first line; record the run again.")
        if run.get("format") != FORMAT:
            raise DataFileError(
                f"{path.name} has the format {run.get('format')!r} instead of {FORMAT}; record the run again."
            )
        if lacking := [name for name in _NEEDED if name not in run]:
            raise DataFileError(f"{path.name} lacks {' and '.join(lacking)}; record the run again.")
        try:
            return cls(
                path=path,
                run=run,
                questions=tuple(_QUESTION.validate_python(content) for kind, content in lines if kind == "question"),
                summary_sha256=lines[-1][1]["sha256"],
                arms=tuple(map(_arm, run["arms"])),
                quadrants={name: None if one is None else (one[0], one[1]) for name, one in run["quadrants"].items()},
                tariffs={tier: Tariff.model_validate(content) for tier, content in run["tariffs"].items()},
                calls=[content["row"] for kind, content in lines if kind == "call"],
                _answers={(one["id"], one["method"]): one for kind, one in lines if kind == "row"},
            )
        except _DAMAGE as error:
            raise DataFileError(f"{path.name} has a damaged line ({error!r}); record the run again.") from None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every recorded answer as a row of `samples.jsonl`, scored now, question by question.

        Raises `DataFileError` if one is missing or damaged, or lacks a call.
        """
        made = Counter((call["question_id"], call["method"]) for call in self.calls)
        scorer = scorer_named(self.run["experiment"].get("scorer", "official"))
        for question in self.questions:
            for arm in self.arms:
                content = self._answers.get((question.id, arm.name))
                if content is None:
                    raise self._lacks(f"no answer of {arm.name!r} to {question.id!r}")
                try:
                    row = _scored(content, question, quotes=arm.method.quotes, scorer=scorer)
                    damage = fault(row)
                except _DAMAGE as error:
                    damage = repr(error)
                if damage is not None:
                    raise DataFileError(
                        f"{self.path.name} has a damaged row, of {arm.name!r} for {question.id!r} ({damage}); "
                        "record the run again."
                    )
                if (there := made[question.id, arm.name]) < row["llm_calls"]:
                    raise self._lacks(f"{there} of {row['llm_calls']} calls of {arm.name!r} for {question.id!r}")
                yield row

    def _lacks(self, what: str) -> DataFileError:
        return DataFileError(f"{self.path.name} contains {what}; record the run again.")


def table_content(
    arms: Sequence[Arm], *, quadrants: Mapping[str, tuple[bool, bool] | None], analyses: Sequence[str]
) -> dict[str, Any]:
    """The table's part of a record's first line, by name, so that a replay does not depend on the current code.

    `quadrants` are those of the deficits. The newest prices of each tier are recorded too: the analyses use them.
    """
    rows = [
        {
            "method": arm.method.name,
            "quotes": arm.method.quotes,
            "loop": arm.method.loop,
            **{name: value for name, value in vars(arm).items() if name != "method"},
        }
        for arm in arms
    ]
    prices = {tier: tariff.model_dump(mode="json", by_alias=True) for tier, tariff in newest_tariffs().items()}
    return {"arms": rows, "quadrants": dict(quadrants), "analyses": list(analyses), "tariffs": prices}


async def _unanswered(engine: Engine, task: MethodTask) -> Answer:
    raise DataFileError(f"The answer of {task.method!r} to {task.id!r} is recorded; it cannot be generated again.")


def recorded_method(name: str, *, quotes: bool = False, loop: bool = False) -> Method:
    """A method whose answers are recorded or imported, even if it no longer exists."""
    return Method(name=name, citation="", about="", departures="", answer=_unanswered, quotes=quotes, loop=loop)


def _arm(content: Mapping[str, Any]) -> Arm:
    """A row of the table."""
    return Arm(
        method=recorded_method(content["method"], quotes=content["quotes"], loop=content["loop"]),
        assignments=tuple(content["assignments"]),
        without_deficits=tuple(content["without_deficits"]),
        oracles=tuple(content["oracles"]),
        equal=content.get("equal", ""),
    )


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """The lines of a record as (kind, content)."""
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        for line in content.split(b"\n"):
            if line.strip():
                entry = json.loads(line)
                if not isinstance(entry, dict) or len(entry) != 1:
                    raise ValueError("a line is not an object with one key")
                yield from entry.items()
    except FileNotFoundError:
        raise DataFileError(f"The record {str(path)!r} does not exist; check the path.") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataFileError(f"{path.name} is not a complete record of a run ({error}); record the run again.") from None


def _scored(content: Mapping[str, Any], question: Question, *, quotes: bool, scorer: Scorer) -> dict[str, Any]:
    """The restored row of `samples.jsonl`, scored now; `quotes` says that the method's supporting facts are scored.

    Other measurements on the passages (`evidence_recall`, `answer_recall`) are as recorded.
    """
    row = {
        **asked(question, content["method"]),
        **dict.fromkeys(SCORES),
        **content,
        "supporting_facts_gold": [list(fact) for fact in question.supporting_facts],
        "support": None,
        "joint": None,
    }
    if content["error"] is not None:
        return row
    quoted = [(title, index) for title, index in content["supporting_facts"]] if quotes else None
    row |= supported(question.supporting_facts, scorer(content["prediction"], question.golds), quoted)
    return rescored(row, scorer)


def _without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}
