"""Parses files in a child process, within time and memory limits, so that a bad file cannot harm this process.

One child serves many files. It is killed and replaced if a file takes too long or too much memory, if it
dies, or if it answers anything that `child` does not define.
"""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from ..retrieval.passage import Passage, from_fields
from .child import READY, Job, ReadRequest, shares
from .document import REFUSAL_KINDS, Refused
from .spool import collected

_START_SECONDS, _DEATH_SECONDS = 60.0, 0.5
_MEGABYTE = 1024 * 1024
_MOST_ANSWERED = 16
"""The factor by which an answer may exceed the largest file: unpacked text, in JSON, with its overlaps."""


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file that was read: its document's data and its passages. `content_hash` is the hash of the bytes read."""

    title: str
    kind: str
    pages: int | None
    aliases: tuple[str, ...]
    notes: tuple[str, ...]
    content_hash: str
    passages: Collection[Passage]


class IsolatedReader:
    """Reads files in a child process; one at a time."""

    at_once = 1

    def __init__(self, job: Job, command: Sequence[str] = ("-m", "meta_agent_rag.ingestion.child")) -> None:
        self._job = job
        # -P: a file in the working folder must not shadow a library.
        self._command = [sys.executable, "-P", *command, job.to_json()]
        self._process: subprocess.Popen[bytes] | None = None
        self._served = 0
        self._closed = False
        self._starting = threading.Lock()
        self._reading = threading.Lock()

    async def read(self, path: Path, doc_id: str) -> ReadFile:
        """The document in `path`, its passages with `doc_id`; a cancellation kills the child.

        Raises `Refused`, and `SettingsError` if no child can be started within the memory limit.
        """
        try:
            return await asyncio.to_thread(self._read, ReadRequest(path=str(path), name=path.name, doc_id=doc_id))
        except asyncio.CancelledError:
            self._kill()
            raise

    def close(self) -> None:
        """Kill the child, even if it is busy; nothing can be read afterwards."""
        self._kill()
        with self._reading:
            self._end()

    def _kill(self) -> None:
        with self._starting:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _read(self, request: ReadRequest) -> ReadFile:
        with self._reading:
            try:
                return self._asked(request)
            except _OutOfMemoryError:
                if self._served == 1:
                    raise self._too_much() from None
            try:  # earlier files may have used up the memory
                self._end()
                return self._asked(request)
            except _OutOfMemoryError:
                raise self._too_much() from None

    def _too_much(self) -> Refused:
        self._end()
        return Refused("limit", f"reading it takes more than {self._job.memory_mb} MB; raise INGEST_MEMORY_MB")

    def _asked(self, request: ReadRequest) -> ReadFile:
        try:
            process = self._running()
        except _RubbishError as error:
            self._end()
            most = self._job.memory_mb
            raise SettingsError(
                f"The process that reads files cannot start with INGEST_MEMORY_MB={most}; raise it."
            ) from error
        assert process.stdin is not None
        self._served += 1
        limits = shares(request.path, self._job)
        with self._watched(process, limits * self._job.seconds) as expired:
            try:
                process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
                process.stdin.flush()
                return _collected(self._answers(process, limits))
            except (_RubbishError, OSError) as error:
                returncode = _returncode(process)
                self._end()
                if expired.is_set():
                    seconds = f"{limits * self._job.seconds:g} s"
                    raise Refused("limit", f"reading it takes more than {seconds}; raise INGEST_SECONDS") from error
                raise _death(returncode) from error

    def _answers(self, process: subprocess.Popen[bytes], limits: int = 1) -> Iterator[dict[str, Any]]:
        """The child's answers, line by line, as long as they are valid. Raises `_RubbishError`."""
        assert process.stdout is not None
        left = int(limits * _MOST_ANSWERED * self._job.file_mb * _MEGABYTE) + _MEGABYTE
        while line := process.stdout.readline(left):
            left -= len(line)
            try:
                part = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise _RubbishError from error
            if left <= 0 or not isinstance(part, dict):
                raise _RubbishError
            yield part
        raise _RubbishError

    def _running(self) -> subprocess.Popen[bytes]:
        """The child process, started if it is not running."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            with self._starting:
                if self._closed:
                    raise Refused("unreadable", "reading was interrupted")
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the parent, which kills the child itself
                )  # fmt: skip
            with self._watched(self._process, _START_SECONDS):
                if next(self._answers(self._process)) != READY:
                    raise _RubbishError
            self._served = 0
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _close(stream)
        process.wait()

    @contextmanager
    def _watched(self, process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
        """Kill the child when the time is up; the event tells whether that happened."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield expired
        finally:
            timer.cancel()


class _OutOfMemoryError(Exception):
    """The child reached its memory limit."""


class _RubbishError(Exception):
    """The child gave an invalid answer; it may be dead."""


def _collected(answers: Iterator[dict[str, Any]]) -> ReadFile:
    document: dict[str, Any] = {}

    def passages() -> Iterator[Passage]:
        for part in answers:
            if "passage" in part:
                yield from_fields(part["passage"])
            elif "document" in part:
                document.update(part["document"])
                return
            else:
                raise _refusal(part["refused"])
        raise _RubbishError

    try:
        found = collected(passages())
        return _reading(document, found)
    except (KeyError, TypeError, ValueError) as error:
        raise _RubbishError from error


def _reading(fields: dict[str, Any], passages: Collection[Passage]) -> ReadFile:
    if fields.pop("passages") != len(passages):
        raise _RubbishError
    aliases, notes = tuple(fields.pop("aliases")), tuple(fields.pop("notes"))
    return ReadFile(**fields, aliases=aliases, notes=notes, passages=passages)


def _refusal(fields: dict[str, Any]) -> Exception:
    kind, reason = fields["kind"], str(fields["reason"])
    if kind not in REFUSAL_KINDS:
        return _RubbishError()
    return _OutOfMemoryError() if (kind, reason) == ("limit", "memory") else Refused(kind, reason)


def _returncode(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code of a child that ended by itself; `None` if it is alive but answers nonsense."""
    try:
        return process.wait(timeout=_DEATH_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _death(returncode: int | None) -> Refused:
    """The reason for the death of a child that this process did not kill."""
    if returncode is not None and -returncode in {getattr(signal, "SIGXCPU", None), getattr(signal, "SIGKILL", None)}:
        return Refused("limit", "the system stopped reading it because it took too much time or memory")
    return Refused("unreadable", "the parser crashed on it")


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return  # it contained a request that the dead child did not read
