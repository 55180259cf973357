"""Parses files in a child process, within time and memory limits, so that a bad file cannot harm this process.

One child serves many files: `python -m meta_agent_rag.ingestion.isolation JOB`. It reads one request (path, name,
document id) per line of JSON on stdin and answers each with a line of JSON on stdout: the fields of a `ReadFile`, kind
and reason of a refusal, or null if the memory limit was reached. It is killed and replaced if a file takes too
long or too much memory, if it dies, or if it answers anything else.
"""

import asyncio
import hashlib
import json
import mmap
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from pydantic import TypeAdapter

from ..errors import SettingsError
from ..retrieval.passage import Passage
from .chunking import Chunking, cut
from .document import ReadFile, RefusalKind, Refused
from .parsers import File, read_document

try:
    import resource
except ImportError:  # on Windows, which has no such limits
    resource = None  # type: ignore[assignment]

MOST_PASSAGES = 20_000
"""The most passages of one file; the longest handbooks at hand have 5,000. Passage JSONL may have any number."""
_READY = b"ready\n"
_DEATH_SECONDS = 0.5
_MEGABYTE = 1024 * 1024
_UNPACKED, _MOST_ANSWERED = 4, 16
"""How many times as large as the largest file unpacked content may be, and an answer: text in JSON, with overlaps."""
_TOO_MUCH = {getattr(signal, "SIGXCPU", None), getattr(signal, "SIGKILL", None)}
"""The signals by which a system ends a process that takes too much time or memory."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The parameters for all files of a child."""

    seconds: float
    memory_mb: int
    file_mb: float
    chunking: Chunking


@dataclass(frozen=True, kw_only=True)
class _ParsedFile(ReadFile):
    passages: tuple[Passage, ...]


_Answer: TypeAlias = _ParsedFile | tuple[RefusalKind, str] | None
_ANSWERS: TypeAdapter[_Answer] = TypeAdapter(_Answer)
"""The answers of a child; anything else is a fault, because a file may have taken the child over."""


class IsolatedReader:
    """Reads files in a child process, one at a time; a cancellation kills the child."""

    def __init__(self, job: Job, command: Sequence[str] = ("-m", "meta_agent_rag.ingestion.isolation")) -> None:
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
        request = json.dumps((str(path), path.name, doc_id)).encode() + b"\n"
        async with self._turn:
            answer = await self._asked(request)
            if answer is None and self._served > 1:  # earlier files may have used up the memory
                await self.close()
                answer = await self._asked(request)
            if answer is None:
                await self.close()
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
        process = self._process
        if process is None or process.returncode is not None:
            process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        self._served += 1
        try:
            async with asyncio.timeout(self._job.seconds):
                process.stdin.write(request)
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

    async def _started(self) -> Process:
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent, which kills the child itself
            limit=int(_MOST_ANSWERED * self._job.file_mb * _MEGABYTE) + _MEGABYTE,
        )
        self._served = 0
        assert process.stdout is not None
        if await process.stdout.readline() != _READY:
            await self.close()
            raise SettingsError(
                f"The process that reads files cannot start with INGEST_MEMORY_MB={self._job.memory_mb}; raise it."
            )
        return process


# -- in the child


def read_file(path: str, name: str, doc_id: str, job: Job) -> ReadFile:
    """The file at `path` with its passages. Raises `Refused`."""
    most = int(job.file_mb * _MEGABYTE)
    try:
        with Path(path).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(min(size, most) + 1)  # the requested size is allocated at once
    except OSError as error:
        raise Refused("unreadable", f"it cannot be opened ({error.strerror})") from error
    if len(content) > most:
        raise Refused("limit", f"it is larger than {job.file_mb:g} MB; split it, or raise INGEST_FILE_MB")
    document = read_document(File(name=name, content=content, unpacked_bytes=_UNPACKED * most))
    passages: list[Passage] = []
    for passage in cut(document, doc_id, job.chunking):
        if len(passages) == MOST_PASSAGES:
            raise Refused("limit", f"it has more than {MOST_PASSAGES} passages; split it")
        passages.append(passage)
    return ReadFile(
        title=document.title,
        kind=document.kind,
        pages=document.pages,
        aliases=document.aliases,
        notes=document.notes,
        content_hash=hashlib.sha256(content).hexdigest(),
        passages=tuple(passages),
    )


def main() -> None:
    """Answer requests until they end. Stdout is reserved for answers: output of libraries goes to stderr instead."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=_MEGABYTE)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = TypeAdapter(Job).validate_json(sys.argv[1])
    if resource is not None:
        _limit(resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS, job.memory_mb * _MEGABYTE)
        _limit(resource.RLIMIT_CORE, 0)
        with mmap.mmap(-1, _MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
            pass  # fails if the rest is too little to read with: what the imports have freed may be enough to start
    _answer(answers, _READY)
    for request in sys.stdin.buffer:
        if resource is not None:  # exit some time after the limit, in case the parent, which kills at it, has died
            used = resource.getrusage(resource.RUSAGE_SELF)
            _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + 2 * job.seconds) + 5)
        try:
            path, name, doc_id = json.loads(request)
            answer = json.dumps(asdict(read_file(path, name, doc_id, job))).encode()
        except Refused as refused:
            answer = json.dumps([refused.kind, refused.reason]).encode()
        except MemoryError:
            answer = b"null"
        _answer(answers, answer + b"\n")


def _answer(answers: BinaryIO, line: bytes) -> None:
    answers.write(line)
    answers.flush()


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    with suppress(ValueError, OSError):  # the platform defines the limit but does not support it
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


if __name__ == "__main__":
    main()
