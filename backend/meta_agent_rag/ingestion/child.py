"""The process that parses and chunks files: `python -m meta_agent_rag.ingestion.child JOB`.

It reads one JSON request per line on stdin and answers each with one JSON line on stdout: the document with its
passages (`{"document": ..., "passages": [...]}`), or the reason why there is none (`{"refused": ...}`). It imports
neither torch nor anything else that is slow, and serves file after file until it is killed.
"""

import hashlib
import json
import mmap
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from ..retrieval.passage import to_fields
from .chunkers import Chunking, ChunkingOptions, prepared
from .document import Refused
from .parsers import File, read_document

READY = {"ready": True}
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
    chunking: ChunkingOptions

    @property
    def unpacked_bytes(self) -> int:
        """The most bytes of a file's unpacked content."""
        return _UNPACKED * int(self.file_mb * _MEGABYTE)

    def to_json(self) -> str:
        """The job as passed on the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Read the output of `to_json`."""
        fields = json.loads(text)
        return cls(**{**fields, "chunking": ChunkingOptions(**fields["chunking"])})


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """One file: its path, its name, and the id for its document."""

    path: str
    name: str
    doc_id: str


def read_file(request: ReadRequest, job: Job, chunking: Chunking) -> dict[str, Any]:
    """The answer to a request. Raises `Refused`."""
    most = int(job.file_mb * _MEGABYTE)
    try:
        with Path(request.path).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(min(size, most) + 1)  # the requested size is allocated at once
    except OSError as error:
        raise Refused("unreadable", f"it cannot be opened ({error.strerror})") from error
    if len(content) > most:
        raise Refused("limit", f"it is larger than {job.file_mb:g} MB; split it, or raise INGEST_FILE_MB")
    document = read_document(File(name=request.name, content=content, unpacked_bytes=job.unpacked_bytes))
    passages: list[dict[str, Any]] = []
    for passage in chunking.cut(document, request.doc_id):
        if len(passages) == MOST_PASSAGES:
            raise Refused("limit", f"it has more than {MOST_PASSAGES} passages; split it")
        passages.append(to_fields(passage))
    fields = {field: getattr(document, field) for field in ("title", "kind", "pages", "aliases", "notes")}
    return {"document": {**fields, "content_hash": hashlib.sha256(content).hexdigest()}, "passages": passages}


def serve(job: Job, answers: TextIO) -> None:
    """Answer the requests on stdin until it ends."""
    chunking = prepared(job.chunking)
    answers.write(json.dumps(READY) + "\n")
    answers.flush()
    for line in sys.stdin:
        _limit_cpu(job.seconds)
        try:
            answer = json.dumps(read_file(ReadRequest(**json.loads(line)), job, chunking))
        except Refused as refused:
            answer = json.dumps({"refused": {"kind": refused.kind, "reason": refused.reason}})
        except MemoryError:
            answer = json.dumps({"refused": {"kind": "limit", "reason": "memory"}})
        answers.write(answer + "\n")
        answers.flush()


def _limit_memory(megabytes: int) -> None:
    """Limit the memory of this process, on platforms that support it.

    Raises `OSError` if the rest is too little to read with: memory freed by the imports may still be enough to start.
    """
    try:
        import resource
    except ImportError:
        return
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _limit(kind, megabytes * _MEGABYTE)
    _limit(resource.RLIMIT_CORE, 0)
    with mmap.mmap(-1, _MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        pass


def _limit_cpu(seconds: float) -> None:
    """Exit some time after the limit, in case the parent, which kills at the limit, has died itself."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + 2 * seconds) + 5)


def _limit(kind: int, value: int) -> None:
    import resource

    _, hard = resource.getrlimit(kind)
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (soft, hard))
    except (ValueError, OSError):
        return  # the platform defines the limit but does not support it


def main() -> None:
    """Reserve stdout for answers: output of libraries goes to stderr instead."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=_MEGABYTE)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = Job.from_json(sys.argv[1])
    _limit_memory(job.memory_mb)
    serve(job, answers)


if __name__ == "__main__":
    main()
