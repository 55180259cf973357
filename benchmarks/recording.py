"""Recorded runs: every call, search and vector of a run in one file, and its replay without a model.

A record is JSON Lines, each an object with its kind as the only key:

| kind | what |
|---|---|
| `run` | format, experiment, settings without secrets, models, table, deficits, analyses; the first line |
| `question` | a question with its paragraphs |
| `passage` | a passage that a search found, once |
| `call` | a ledger row, the prompt and the reply, or the error that was raised |
| `retrieval` | queries and what they found, by passage id, or the error that was raised |
| `vectors` | a text's vector by a monitor's encoder, float32 in base64 |
| `row` | the answer of one row of the table to a question, with all rounds, unscored |
| `summary` | the SHA-256 of `summary.json`; the last line |
"""

import base64
import gzip
import json
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from meta_agent_rag import errors
from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import DataFileError, InputError, MetaRagError
from meta_agent_rag.journal import Journal
from meta_agent_rag.llm.cache import reply_from
from meta_agent_rag.llm.ledger import LedgerRow, ledger_row
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.llm.pricing import Tariff
from meta_agent_rag.llm.providers import providers
from meta_agent_rag.retrieval.encoders import Encoder
from meta_agent_rag.retrieval.hybrid import Retrieval, Retriever
from meta_agent_rag.retrieval.passage import Found, Passage, from_fields, to_fields
from meta_agent_rag.retrieval.screening import Dropped
from meta_agent_rag.retrieval.vectors import FloatMatrix, FloatVector
from meta_agent_rag.testing import ScriptedModel

from .analyses.economy import newest_tariffs
from .methods import Method, MethodTask
from .metrics import SCORES, Scorer, scorer_named
from .rows.samples import QUESTION_FIELDS, asked, fault, rescored, supported
from .run.arms import Arm

FORMAT = 2
_QUESTION = TypeAdapter(Question)
_DERIVED = (*QUESTION_FIELDS, "supporting_facts_gold", "support", "joint", *SCORES)
_NEEDED = (
    *("experiment", "settings", "provider", "dataset", "encoders", "endpoint", "pooled", "model_words"),
    *("arms", "quadrants", "analyses", "tariffs"),
)
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError)


class ReplayError(MetaRagError):
    """The run asks for something that its record does not contain."""

    stops_run = True


@dataclass(frozen=True, kw_only=True)
class Search:
    """The queries of a search, with its question and row of the table; equal searches find the same."""

    question_id: str
    method: str
    queries: tuple[str, ...]
    k: int
    exclude: tuple[str, ...]


@dataclass(kw_only=True)
class Recorder:
    """Records calls, searches, vectors and answers in the order in which they happen.

    They are written to a file beside `path` as they arrive, so that a long run needs no memory for them; the record
    itself exists once the run is complete. A lock file, released when the process ends, keeps a second run away.
    """

    path: Path
    _rest: Journal | None = None
    _lock: FileLock | None = None
    _passages: set[str] = field(default_factory=set)
    _vectors: set[tuple[str, str, str]] = field(default_factory=set)

    def begin(self, run: Mapping[str, Any], questions: Iterable[Question]) -> None:
        """Record the experiment and its questions.

        Raises `InputError` if the record cannot be written, or another run is writing it.
        """
        lock = FileLock(self._beside("lock"), timeout=0, thread_local=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise InputError(
                f"The record {str(self.path)!r} is being written by another run; wait for it, or name another FILE."
            ) from None
        except OSError as error:
            raise InputError(f"The record {str(self.path)!r} cannot be written ({error}); name another FILE.") from None
        self._lock = lock
        self._beside("calls").unlink(missing_ok=True)
        self._rest = Journal(self._beside("calls"))
        self._write("run", {"format": FORMAT, **run})
        for question in questions:
            self._write("question", _QUESTION.dump_python(question, mode="json"))

    def play(self, row: LedgerRow, request: Request) -> None:
        """Nothing is played back during recording."""

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Record a call with its prompt and its reply, or the error that was raised."""
        prompt = [[message.role, message.content] for message in request.messages]
        came = {"reply": asdict(outcome)} if isinstance(outcome, Reply) else {"raised": _error(outcome)}
        self._write("call", {"row": vars(row), "prompt": prompt, **came})

    def keep_search(self, search: Search, outcome: Retrieval | MetaRagError) -> None:
        """Record a search with its new passages, or the error that was raised."""
        if isinstance(outcome, MetaRagError):
            self._write("retrieval", {**vars(search), "raised": _error(outcome)})
            return
        for one in outcome.found:
            if one.passage.id not in self._passages:
                self._passages.add(one.passage.id)
                self._write("passage", to_fields(one.passage))
        found = {
            "found": [{**_without(vars(one), "passage"), "id": one.passage.id} for one in outcome.found],
            "dropped": [asdict(dropped) for dropped in outcome.dropped],
            "pool_ids": list(outcome.pool_ids),
        }
        self._write("retrieval", {**vars(search), **found})

    def keep_vector(self, encoder: str, kind: str, text: str, vector: FloatVector) -> None:
        """Record a text's vector by an encoder, once."""
        if (encoder, kind, text) not in self._vectors:
            self._vectors.add((encoder, kind, text))
            values = base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
            self._write("vectors", {"encoder": encoder, "kind": kind, "text": text, "values": values})

    def answered(self, row: Mapping[str, Any]) -> None:
        """Record an answered or failed question: its row of `samples.jsonl`, without what is scored or looked up."""
        rounds = [_without(round_, "em", "f1") for round_ in row["rounds"]]
        self._write("row", {**_without(row, *_DERIVED), "rounds": rounds})

    def finish(self, summary_sha256: str) -> None:
        """Write the whole record of this run, or keep an old one; with `.gz` gzipped, equal lines to equal bytes."""
        self._write("summary", {"sha256": summary_sha256})
        unfinished = self._beside("unfinished")
        with self._beside("calls").open("rb") as lines, unfinished.open("wb") as file:
            whole = (json.dumps(json.loads(line)).encode() + b"\n" for line in lines)
            if self.path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
                    packed.writelines(whole)
            else:
                file.writelines(whole)
        unfinished.replace(self.path)
        self.close()

    def close(self) -> None:
        """Drop everything recorded so far: the record is written, or never will be."""
        if self._rest is not None:
            self._rest.close()
            self._rest = None
            self._beside("calls").unlink(missing_ok=True)
        if self._lock is not None:
            self._beside("lock").unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{what}")

    def _write(self, kind: str, content: object) -> None:
        if self._rest is not None:
            self._rest.append({kind: content})


@dataclass(kw_only=True)
class Recording:
    """A record that has been read; each call and search is returned as often as it was made.

    `arms` are the rows of its table, `quadrants` those of its deficits, and `tariffs` the prices of its analyses.
    """

    path: Path
    run: Mapping[str, Any]
    questions: tuple[Question, ...]
    summary_sha256: str
    arms: tuple[Arm, ...]
    quadrants: Mapping[str, tuple[bool, bool] | None]
    tariffs: Mapping[str, Tariff]
    _calls: dict[tuple[str, str, str], deque[Mapping[str, Any]]] = field(default_factory=lambda: defaultdict(deque))
    _searches: dict[Search, deque[Retrieval | Exception]] = field(default_factory=lambda: defaultdict(deque))
    _vectors: dict[tuple[str | None, str, str], FloatVector] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    _made: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """Read a record; raises `DataFileError` if the file is not a record, or has another format."""
        lines = list(_lines(path))
        if not lines or lines[0][0] != "run" or lines[-1][0] != "summary":
            raise DataFileError(f"{path.name} is not a complete record of a run; record the run again with --record.")
        run = lines[0][1]
        if run.get("format") != FORMAT:
            raise DataFileError(
                f"{path.name} has the format {run.get('format')!r} instead of {FORMAT}; record the run again."
            )
        lacking = [name for name in _NEEDED if name not in run]
        if lacking or run["provider"].get("name") not in providers():
            why = f"lacks {' and '.join(lacking)}" if lacking else "names an unknown provider"
            raise DataFileError(f"{path.name} {why}; record the run again.")
        try:
            recording = cls(
                path=path,
                run=run,
                questions=tuple(_QUESTION.validate_python(content) for kind, content in lines if kind == "question"),
                summary_sha256=lines[-1][1]["sha256"],
                arms=tuple(map(_arm, run["arms"])),
                quadrants={name: None if one is None else (one[0], one[1]) for name, one in run["quadrants"].items()},
                tariffs={tier: Tariff.model_validate(content) for tier, content in run["tariffs"].items()},
            )
            recording._take(lines)
        except _DAMAGE as error:
            raise DataFileError(f"{path.name} has a damaged line ({error!r}); record the run again.") from None
        return recording

    def _take(self, lines: Sequence[tuple[str, Any]]) -> None:
        passages: dict[str, Passage] = {}
        for kind, content in lines:
            if kind == "passage":
                passages[content["id"]] = from_fields(content)
            elif kind == "call":
                row = content["row"]
                self._made.append(row)
                self._calls[row["question_id"], row["method"], row["request"]].append(content)
            elif kind == "retrieval":
                search = Search(
                    question_id=content["question_id"],
                    method=content["method"],
                    queries=tuple(content["queries"]),
                    k=content["k"],
                    exclude=tuple(content["exclude"]),
                )
                raised = content.get("raised")
                self._searches[search].append(_raised(*raised) if raised else _retrieval(content, passages))
            elif kind == "vectors":
                values = np.frombuffer(base64.b64decode(content["values"]), dtype="<f4").astype(np.float32)
                self._vectors[content.get("encoder"), content["kind"], content["text"]] = values
            elif kind == "row":
                self._answers[content["id"], content["method"]] = content

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every recorded answer as a row of `samples.jsonl`, scored now, question by question.

        Raises `DataFileError` if one is missing or damaged, or lacks a call.
        """
        made = Counter((call["question_id"], call["method"]) for call in self._made)
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

    def calls(self) -> Sequence[Mapping[str, Any]]:
        """The ledger's rows, in the order of the record."""
        return self._made

    def play(self, row: LedgerRow, request: Request) -> tuple[LedgerRow, Reply | Exception]:
        """The recorded row of this call, and its reply or the error that was raised."""
        left = self._calls.get((row.question_id, row.method, row.request))
        if not left:
            raise ReplayError(
                f"{self.path.name} contains no call of stage {row.stage!r} for question {row.question_id!r} by "
                f"{row.method!r} with this prompt: prompts, settings or code have changed; record the run again."
            )
        call = left.popleft()
        recorded = ledger_row(dict(call["row"]))
        return recorded, _raised(*call["raised"]) if "raised" in call else reply_from(call["reply"])

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Nothing is recorded during a replay."""

    def play_search(self, search: Search) -> Retrieval:
        """What the search found when it was recorded; raises the error that was raised."""
        left = self._searches.get(search)
        if not left:
            raise ReplayError(
                f"{self.path.name} contains no search for {' | '.join(search.queries)!r} (question "
                f"{search.question_id!r} by {search.method!r}): settings or code have changed; record the run again."
            )
        outcome = left.popleft()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def play_vector(self, encoder: str, kind: str, text: str) -> FloatVector:
        """The text's vector by the encoder that served under this name; older records do not distinguish encoders."""
        served = self.run["encoders"].get(encoder, encoder)
        for name in (served, encoder, None):
            if (name, kind, text) in self._vectors:
                return self._vectors[name, kind, text]
        raise ReplayError(f"{self.path.name} contains no vector of {text!r} by {served!r}; record the run again.")

    def times(self, question_id: str, method: str) -> dict[str, float]:
        """How long the answer took and waited when it was recorded, as a row has it."""
        kept = self._answers.get((question_id, method), {"latency_s": 0.0})
        return {name: float(kept[name]) for name in ("latency_s", "waited_s") if name in kept}

    def _lacks(self, what: str) -> DataFileError:
        return DataFileError(f"{self.path.name} contains {what}; record the run again.")


@dataclass(frozen=True, kw_only=True)
class TapedRetriever:
    """A `Retriever` for one question and row: it searches and records, or plays the record back."""

    inner: Retriever
    tape: Recorder | Recording
    question_id: str
    method: str

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`."""
        search = Search(
            question_id=self.question_id,
            method=self.method,
            queries=tuple(queries),
            k=k,
            exclude=tuple(sorted(exclude)),
        )
        if isinstance(self.tape, Recording):
            return self.tape.play_search(search)
        try:
            found = await self.inner.retrieve(queries, k=k, exclude=exclude)
        except MetaRagError as error:
            self.tape.keep_search(search, error)
            raise
        self.tape.keep_search(search, found)
        return found


@dataclass(frozen=True, kw_only=True)
class TapedEncoder:
    """An `Encoder` that encodes and records, or plays the record back."""

    name: str
    tape: Recorder | Recording
    inner: Encoder | None = None

    @property
    def dimension(self) -> int:
        """Length of the vectors; 0 if they are only played back."""
        return self.inner.dimension if self.inner is not None else 0

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """See `Encoder`."""
        return self._encode("query", texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """See `Encoder`."""
        return self._encode("passage", texts)

    def _encode(self, kind: str, texts: Sequence[str]) -> FloatMatrix:
        if isinstance(self.tape, Recording):
            return np.stack([self.tape.play_vector(self.name, kind, text) for text in texts])
        assert self.inner is not None
        vectors = (self.inner.encode_queries if kind == "query" else self.inner.encode_passages)(texts)
        for text, vector in zip(texts, vectors, strict=True):
            self.tape.keep_vector(self.name, kind, text, vector)
        return vectors


class NoModel(ScriptedModel):
    """The chat model of a replay, which serves nothing: the record in front of it answers."""

    async def complete(self, request: Request) -> Reply:
        """Raise: a replay makes no call."""
        raise ReplayError(f"A replay makes no call, but stage {request.stage!r} asked for one; record the run again.")


class NoSearch:
    """The corpus of a replay, which finds nothing; the record in front of it answers."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """Raise: a replay searches nothing."""
        raise ReplayError(f"A replay makes no search, but was asked for {queries!r}; record the run again.")


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


def _arm(content: Mapping[str, Any]) -> Arm:
    """A row of the table, even if its method or settings no longer exist."""
    name, quotes, loop = content["method"], content["quotes"], content["loop"]
    method = Method(name=name, citation="", about="", departures="", answer=_recorded_answer, quotes=quotes, loop=loop)
    return Arm(
        method=method,
        assignments=tuple(content["assignments"]),
        without_deficits=tuple(content["without_deficits"]),
        oracles=tuple(content["oracles"]),
        equal=content.get("equal", ""),
        repeat=content["repeat"],
    )


async def _recorded_answer(engine: Engine, task: MethodTask) -> Answer:
    raise DataFileError(f"The answer of {task.method!r} to {task.id!r} is recorded; a replay makes no call.")


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


def _retrieval(content: Mapping[str, Any], passages: Mapping[str, Passage]) -> Retrieval:
    found = tuple(
        Found(passage=passages[one["id"]], **{**_without(one, "id"), "suspect": tuple(one["suspect"])})
        for one in content["found"]
    )
    dropped = tuple(Dropped(**{**one, "kinds": tuple(one.get("kinds", ()))}) for one in content["dropped"])
    return Retrieval(found=found, dropped=dropped, pool_ids=tuple(content["pool_ids"]))


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


def _error(raised: BaseException) -> list[str]:
    return [type(raised).__name__, str(raised)]


def _raised(name: str, message: str) -> Exception:
    """An error by its recorded class; a class that is not ours becomes a `ModelError`."""
    kind = getattr(errors, name, errors.ModelError)
    return kind(message) if issubclass(kind, MetaRagError) else errors.ModelError(message)


def _without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}
