"""Parses files in a child process, within time and memory limits, so that a bad file cannot harm this process.

One child serves many files. It is killed and replaced if a file takes too long or too much memory, if it
dies, or if it answers anything that `child` does not define.
"""

import asyncio
import json
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from ..errors import SettingsError
from .child import OUT_OF_MEMORY, READY, Job
from .document import ReadFile, Refused

_START_SECONDS, _DEATH_SECONDS = 60.0, 0.5
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
            while (answer := self._asked(request)) == OUT_OF_MEMORY:
                alone = self._served == 1
                self._end()
                if alone:  # otherwise earlier files may have used up the memory
                    reason = f"reading it takes more than {self._job.memory_mb} MB; raise INGEST_MEMORY_MB"
                    raise Refused("limit", reason)
            match answer:
                case ReadFile():
                    return answer
                case str(kind), str(reason):
                    raise Refused(kind, reason)  # type: ignore[arg-type]  # as the child got it
            self._end()
            raise Refused("unreadable", "the parser crashed on it")

    def _asked(self, request: tuple[str, str, str]) -> object:
        """The child's answer. Raises `Refused` if there is none."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        self._served += 1
        with _watched(process, self._job.seconds) as expired:
            try:
                pickle.dump(request, process.stdin)
                process.stdin.flush()
                return pickle.load(process.stdout)
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
