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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from ..retrieval.passage import from_fields
from .child import READY, Job, ReadRequest
from .document import REFUSAL_KINDS, ReadFile, Refused

_START_SECONDS, _DEATH_SECONDS = 60.0, 0.5
_MEGABYTE = 1024 * 1024
_MOST_ANSWERED = 16
"""The factor by which an answer may exceed the largest file: unpacked text, in JSON, with its overlaps."""


class _OutOfMemoryError(Exception):
    """The child reached its memory limit."""


class _RubbishError(Exception):
    """The child gave an invalid answer; it may be dead."""


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
            while True:
                try:
                    return self._asked(request)
                except _OutOfMemoryError:
                    alone = self._served == 1
                    self._end()
                    if alone:  # otherwise earlier files may have used up the memory
                        reason = f"reading it takes more than {self._job.memory_mb} MB; raise INGEST_MEMORY_MB"
                        raise Refused("limit", reason) from None

    def _asked(self, request: ReadRequest) -> ReadFile:
        try:
            process = self._running()
        except _RubbishError as error:
            self._end()
            raise SettingsError(
                f"The process that reads files cannot start with INGEST_MEMORY_MB={self._job.memory_mb}; raise it."
            ) from error
        assert process.stdin is not None
        self._served += 1
        with self._watched(process, self._job.seconds) as expired:
            try:
                process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
                process.stdin.flush()
                return _read_file(self._answer(process))
            except (_RubbishError, OSError) as error:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_DEATH_SECONDS)
                returncode = process.returncode
                self._end()
                if expired.is_set():
                    reason = f"reading it takes more than {self._job.seconds:g} s; raise INGEST_SECONDS"
                    raise Refused("limit", reason) from error
                raise _death(returncode) from error

    def _answer(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """The child's next answer. Raises `_RubbishError`."""
        assert process.stdout is not None
        most = int(_MOST_ANSWERED * self._job.file_mb * _MEGABYTE) + _MEGABYTE
        line = process.stdout.readline(most)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _RubbishError from error
        if not isinstance(answer, dict):
            raise _RubbishError
        return answer

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
                if self._answer(self._process) != READY:
                    raise _RubbishError
            self._served = 0
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):  # it may hold a request that the dead child did not read
                if stream is not None:
                    stream.close()
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


def _read_file(answer: dict[str, Any]) -> ReadFile:
    """The file that an answer describes. Raises `Refused`, `_OutOfMemoryError` or `_RubbishError`."""
    try:
        if "refused" in answer:
            kind, reason = answer["refused"]["kind"], str(answer["refused"]["reason"])
            if (kind, reason) == ("limit", "memory"):
                raise _OutOfMemoryError
            if kind not in REFUSAL_KINDS:
                raise _RubbishError
            raise Refused(kind, reason)
        fields = answer["document"]
        fields |= {name: tuple(fields[name]) for name in ("aliases", "notes")}
        return ReadFile(**fields, passages=tuple(map(from_fields, answer["passages"])))
    except (KeyError, TypeError, ValueError) as error:
        raise _RubbishError from error


def _death(returncode: int | None) -> Refused:
    """The reason for the death of a child that this process did not kill; `None`: it is alive but answers nonsense."""
    if returncode is not None and -returncode in {getattr(signal, "SIGXCPU", None), getattr(signal, "SIGKILL", None)}:
        return Refused("limit", "the system stopped reading it because it took too much time or memory")
    return Refused("unreadable", "the parser crashed on it")
