"""Record a run, to be written once it is complete."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.journal import Journal
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import to_fields
from meta_agent_rag.retrieval.vectors import FloatVector

from .format import (
    FORMAT,
    Line,
    Search,
    as_line,
    last_line,
    question_line,
    read_lines,
    retrieval_content,
    row_content,
    vector_text,
    write_lines,
)
from .recording import Recording


@dataclass(kw_only=True)
class Recorder:
    """Records calls, searches, vectors and answers in the order in which they happen.

    They are written to a file beside `path` as they arrive, so that a long run needs no memory for them; the record
    itself exists once the run is complete. A lock file, released when the process ends, keeps a second run away.
    """

    path: Path
    _head: list[Line] = field(default_factory=list)
    _rest: Journal | None = None
    _lock: FileLock | None = None
    _passages: set[str] = field(default_factory=set)
    _vectors: set[tuple[str, str, str]] = field(default_factory=set)

    def begin(self, run: Mapping[str, Any], questions: Iterable[Question]) -> None:
        """Record the experiment and its questions.

        Raises `InputError` if the record cannot be written, or another run is writing it.
        """
        self._head = [{"run": {"format": FORMAT, **run}}, *(question_line(question) for question in questions)]
        self._lock = self._locked()
        self._unfinished.unlink(missing_ok=True)
        self._rest = Journal(self._unfinished)

    def play(self, row: LedgerRow, request: Request) -> None:
        """Nothing is played back during recording."""

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Record a call with its prompt and its reply, or the error that was raised."""
        prompt = [[message.role, message.content] for message in request.messages]
        if isinstance(outcome, Reply):
            came: dict[str, Any] = {"reply": asdict(outcome)}
        else:
            came = {"raised": [type(outcome).__name__, str(outcome)]}
        self._write({"call": {"row": vars(row), "prompt": prompt, **came}})

    def keep_search(self, search: Search, outcome: Retrieval | MetaRagError) -> None:
        """Record a search with its new passages, or the error that was raised."""
        if isinstance(outcome, MetaRagError):
            self._write({"retrieval": {**vars(search), "raised": [type(outcome).__name__, str(outcome)]}})
            return
        for one in outcome.found:
            if one.passage.id not in self._passages:
                self._passages.add(one.passage.id)
                self._write({"passage": to_fields(one.passage)})
        self._write({"retrieval": {**vars(search), **retrieval_content(outcome)}})

    def keep_vector(self, encoder: str, kind: str, text: str, vector: FloatVector) -> None:
        """Record a text's vector by an encoder, once."""
        if (encoder, kind, text) not in self._vectors:
            self._vectors.add((encoder, kind, text))
            self._write({"vectors": {"encoder": encoder, "kind": kind, "text": text, "values": vector_text(vector)}})

    def answered(self, row: Mapping[str, Any]) -> None:
        """Record an answered or failed question: its row of `samples.jsonl`."""
        self._write({"row": row_content(row)})

    def finish(self, summary_sha256: str) -> None:
        """Write the record of this run."""
        write_lines(self.path, chain(self._lines(), [last_line(summary_sha256)]))
        self.close()

    def sign(
        self, recording: Recording, run: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], summary_sha256: str
    ) -> None:
        """Rewrite a replayed record: its own calls and seconds, with these rows, this first line and summary."""
        answers = {(row["id"], row["method"]): row for row in rows}
        lines = (
            _signed(kind, content, run, answers) for kind, content in read_lines(recording.path) if kind != "summary"
        )
        write_lines(self.path, chain(map(as_line, lines), [last_line(summary_sha256)]))
        self.close()

    def close(self) -> None:
        """Drop everything recorded so far: the record is written, or never will be."""
        if self._rest is not None:
            self._rest.close()
            self._rest = None
            self._unfinished.unlink(missing_ok=True)
        if self._lock is not None:
            self._beside("lock").unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    @property
    def _unfinished(self) -> Path:
        return self._beside("calls")

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{what}")

    def _locked(self) -> FileLock:
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
        return lock

    def _write(self, line: Line) -> None:
        if self._rest is not None:
            self._rest.append(line)

    def _lines(self) -> Iterator[bytes]:
        yield from map(as_line, self._head)
        with self._unfinished.open("rb") as file:
            yield from (as_line(json.loads(line)) for line in file)


def _signed(kind: str, content: Any, run: Mapping[str, Any], answers: Mapping[Any, Mapping[str, Any]]) -> Line:
    if kind == "run":
        return {"run": {**run, "format": FORMAT}}
    if kind != "row":
        return {kind: content}
    row = row_content(answers[content["id"], content["method"]])
    timed = [
        {**round_, "seconds": then["seconds"]} for round_, then in zip(row["rounds"], content["rounds"], strict=True)
    ]
    return {"row": {**row, "rounds": timed}}
