"""Parses files in a child process, within time and memory limits, so that a bad file cannot harm this process.

One child serves many files. It is killed and replaced if a file takes too long or too much memory, if it
dies, or if it answers anything that `child` does not define.
"""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from ..errors import SettingsError
from ..retrieval.passage import Passage
from .child import READY, Job
from .document import ReadFile, RefusalKind, Refused

_START_SECONDS, _DEATH_SECONDS = 60.0, 0.5
_MEGABYTE = 1024 * 1024
_MOST_ANSWERED = 16
"""The factor by which an answer may exceed the largest file: unpacked text, in JSON, with its overlaps."""
_TOO_MUCH = {getattr(signal, "SIGXCPU", None), getattr(signal, "SIGKILL", None)}
"""The signals by which a system ends a process that takes too much time or memory."""


@dataclass(frozen=True, kw_only=True)
class _ParsedFile(ReadFile):
    passages: tuple[Passage, ...]


_Answer: TypeAlias = _ParsedFile | tuple[RefusalKind, str] | None
_ANSWERS: TypeAdapter[_Answer] = TypeAdapter(_Answer)
"""The answers of a child; anything else is a fault, because a file may have taken the child over."""


class IsolatedReader:
    """Reads files in a child process, one at a time; a cancellation kills the child."""

    def __init__(self, job: Job, command: Sequence[str] = ("-m", "meta_agent_rag.ingestion.child")) -> None:
        self._job = job
        # -P: a file in the working folder must not shadow a library.
        self._command = [sys.executable, "-P", *command, json.dumps(asdict(job))]
        self._process: Process | None = None
        self._served = 0
        self._turn = asyncio.Lock()

    async def read(self, path: Path, doc_id: str) -> ReadFile:
        """The document in `path`, its passages with `doc_id`.

        Raises `Refused`, and `SettingsError` if no child can be started within the memory limit.
        """
        async with self._turn:
            while (answer := await self._asked(json.dumps((str(path), path.name, doc_id)).encode())) is None:
                alone = self._served == 1
                await self.close()
                if alone:  # otherwise earlier files may have used up the memory
                    reason = f"reading it takes more than {self._job.memory_mb} MB; raise INGEST_MEMORY_MB"
                    raise Refused("limit", reason)
        if isinstance(answer, ReadFile):
            return answer
        raise Refused(*answer)

    async def close(self) -> None:
        """Kill the child, even if it is busy."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            assert process.stdout is not None
            while await process.stdout.read(_MEGABYTE):  # what it has written; it does not count as ended before
                pass
            await process.wait()

    async def _asked(self, request: bytes) -> _Answer:
        """The child's answer; `None`: it reached its memory limit. Raises `Refused` if there is none."""
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        self._served += 1
        try:
            async with asyncio.timeout(self._job.seconds):
                process.stdin.write(request + b"\n")
                return _ANSWERS.validate_json(await process.stdout.readline(), strict=True)
        except TimeoutError as error:
            await self.close()
            reason = f"reading it takes more than {self._job.seconds:g} s; raise INGEST_SECONDS"
            raise Refused("limit", reason) from error
        except asyncio.CancelledError:
            await self.close()
            raise
        except Exception as error:  # a child that dies or writes nonsense may cause any error
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _DEATH_SECONDS)
            code = process.returncode
            await self.close()
            if code is not None and -code in _TOO_MUCH:
                reason = "the system stopped reading it because it took too much time or memory"
                raise Refused("limit", reason) from error
            raise Refused("unreadable", "the parser crashed on it") from error

    async def _running(self) -> Process:
        """The child process, started if it is not running."""
        if self._process is not None and self._process.returncode is None:
            return self._process
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent, which kills the child itself
            limit=int(_MOST_ANSWERED * self._job.file_mb * _MEGABYTE) + _MEGABYTE,
        )
        self._served = 0
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_SECONDS):
                await process.stdout.readuntil(READY)
        except (TimeoutError, asyncio.IncompleteReadError):
            await self.close()
            raise SettingsError(
                f"The process that reads files cannot start with INGEST_MEMORY_MB={self._job.memory_mb}; raise it."
            ) from None
        return process
