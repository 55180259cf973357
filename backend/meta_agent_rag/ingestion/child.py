"""The process that parses and chunks files: `python -m meta_agent_rag.ingestion.child JOB`.

It reads one request (path, name, document id) per line of JSON on stdin and answers each with a line of JSON on stdout:
the fields of a `ReadFile`, kind and reason of a refusal, or null if the memory limit was reached. It imports neither
torch nor anything else that is slow, and serves file after file until it is killed.
"""

import hashlib
import json
import mmap
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from ..retrieval.passage import Passage
from .chunking import Chunking, cut
from .document import ReadFile, Refused
from .parsers import File, read_document

try:
    import resource
except ImportError:  # on Windows, which has no such limits
    resource = None  # type: ignore[assignment]

READY = b"ready\n"
MOST_PASSAGES = 20_000
"""The most passages of one file; the longest handbooks at hand have 5,000. Passage JSONL may have any number."""
_MEGABYTE = 1024 * 1024
_UNPACKED = 4
"""The factor by which unpacked content may exceed the largest file."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The parameters for all files of this process."""

    seconds: float
    memory_mb: int
    file_mb: float
    chunking: Chunking


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


def serve(job: Job, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until they end."""
    answers.write(READY)
    answers.flush()
    for request in requests:
        _limit_cpu(job.seconds)
        try:
            path, name, doc_id = json.loads(request)
            answer = json.dumps(asdict(read_file(path, name, doc_id, job))).encode()
        except Refused as refused:
            answer = json.dumps([refused.kind, refused.reason]).encode()
        except MemoryError:
            answer = b"null"
        answers.writelines((answer, b"\n"))
        answers.flush()


def _limit_memory(megabytes: int) -> None:
    """Limit the memory of this process.

    Raises `OSError` if the rest is too little to read with: memory freed by the imports may still be enough to start.
    """
    if resource is not None:
        _limit(resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS, megabytes * _MEGABYTE)
        _limit(resource.RLIMIT_CORE, 0)
        with mmap.mmap(-1, _MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
            pass


def _limit_cpu(seconds: float) -> None:
    """Exit some time after the limit, in case the parent, which kills at the limit, has died itself."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + 2 * seconds) + 5)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    with suppress(ValueError, OSError):  # the platform defines the limit but does not support it
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def main() -> None:
    """Reserve stdout for answers: output of libraries goes to stderr instead."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=_MEGABYTE)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    fields = json.loads(sys.argv[1])
    job = Job(**{**fields, "chunking": Chunking(**fields["chunking"])})
    _limit_memory(job.memory_mb)
    serve(job, sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
