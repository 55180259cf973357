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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, get_type_hints

from ..errors import SettingsError
from ..retrieval.passage import Passage, from_fields
from .child import READY, Job
from .document import REFUSAL_KINDS, ReadFile, Refused

_START_SECONDS, _DEATH_SECONDS = 60.0, 0.5
_MEGABYTE = 1024 * 1024
_MOST_ANSWERED = 16
"""The factor by which an answer may exceed the largest file: unpacked text, in JSON, with its overlaps."""
_TOO_MUCH = {getattr(signal, "SIGXCPU", None), getattr(signal, "SIGKILL", None)}
"""The signals by which a system ends a process that takes too much time or memory."""


class IsolatedReader:
    """Reads files in a child process, one at a time; a cancellation kills the child."""

    def __init__(self, job: Job, command: Sequence[str] = ("-m", "meta_agent_rag.ingestion.child")) -> None:
        self._job = job
        # -P: a file in the working folder must not shadow a library.
        self._command = [sys.executable, "-P", *command, json.dumps(asdict(job))]
        self._process: subprocess.Popen[bytes] | None = None
        self._served = 0
        self._closed = False
        self._starting = threading.Lock()
        self._reading = threading.Lock()

    async def read(self, path: Path, doc_id: str) -> ReadFile:
        """The document in `path`, its passages with `doc_id`.

        Raises `Refused`, and `SettingsError` if no child can be started within the memory limit.
        """
        try:
            return await asyncio.to_thread(self._read, (str(path), path.name, doc_id))
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

    def _read(self, request: tuple[str, str, str]) -> ReadFile:
        with self._reading:
            while (answer := self._asked(request)) is None:
                alone = self._served == 1
                self._end()
                if alone:  # otherwise earlier files may have used up the memory
                    reason = f"reading it takes more than {self._job.memory_mb} MB; raise INGEST_MEMORY_MB"
                    raise Refused("limit", reason)
            if isinstance(answer, Refused):
                raise answer
            return answer

    def _asked(self, request: tuple[str, str, str]) -> ReadFile | Refused | None:
        """The child's answer; `None`: it reached its memory limit. Raises `Refused` if there is none."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        self._served += 1
        with _watched(process, self._job.seconds) as expired:
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                most = int(_MOST_ANSWERED * self._job.file_mb * _MEGABYTE) + _MEGABYTE
                return _understood(process.stdout.readline(most))
            except Exception as error:  # a child that dies or writes nonsense may cause any error
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_DEATH_SECONDS)
                returncode = process.returncode
                self._end()
                if expired.is_set():
                    reason = f"reading it takes more than {self._job.seconds:g} s; raise INGEST_SECONDS"
                    raise Refused("limit", reason) from error
                if returncode is not None and -returncode in _TOO_MUCH:
                    reason = "the system stopped reading it because it took too much time or memory"
                    raise Refused("limit", reason) from error
                raise Refused("unreadable", "the parser crashed on it") from error

    def _running(self) -> subprocess.Popen[bytes]:
        """The child process, started if it is not running."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        with self._starting:
            if self._closed:
                raise Refused("unreadable", "reading was interrupted")
            process = self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent, which kills the child itself
            )  # fmt: skip
        assert process.stdout is not None
        with _watched(process, _START_SECONDS):
            if process.stdout.read(len(READY)) != READY:
                self._end()
                raise SettingsError(
                    f"The process that reads files cannot start with INGEST_MEMORY_MB={self._job.memory_mb}; raise it."
                )
        self._served = 0
        return process

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


def _understood(line: bytes) -> ReadFile | Refused | None:
    """What the child answers; raises some error for anything else, because a file may have taken the child over."""
    match json.loads(line):
        case None:
            return None
        case [kind, str(reason)] if kind in REFUSAL_KINDS:
            return Refused(kind, reason)
        case dict(fields):
            passages = tuple(from_fields(_checked(one, _PASSAGE)) for one in fields["passages"])
            texts = {name: tuple(fields[name]) for name in ("aliases", "notes")}
            if all(isinstance(text, str) for text in chain.from_iterable(texts.values())):
                return ReadFile(**{**_checked(fields, _FILE), **texts, "passages": passages})
    raise ValueError("no known answer")


def _plain(kind: type[ReadFile | Passage]) -> dict[str, Any]:
    """The types of the fields that are texts or numbers; building a `kind` checks the others."""
    others = {"passages", "aliases", "notes", "span", "page_breaks"}
    return {name: hint for name, hint in get_type_hints(kind).items() if name not in others}


_FILE, _PASSAGE = _plain(ReadFile), _plain(Passage)


def _checked(fields: Mapping[str, Any], types: Mapping[str, Any]) -> Mapping[str, Any]:
    if not all(isinstance(fields[name], types[name]) for name in types):
        raise TypeError("a field has another type")
    return fields


@contextmanager
def _watched(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kill a process when the time is up; the event tells whether that happened."""
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
