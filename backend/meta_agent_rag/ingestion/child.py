"""The process that parses and cuts files: `python -m meta_agent_rag.ingestion.child JOB`.

It reads one request a line on stdin and answers with lines on stdout, JSON all of them: a passage a
line, then the document (`{"document": ...}`) or why there is none (`{"refused": ...}`). It imports
neither torch nor anything else that is slow, and lives on from file to file until it is killed.
"""

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..retrieval.passage import Passage
from .chunkers import Chunking, ChunkingOptions, prepared
from .document import Document, Refused
from .parsers import File
from .reading import read_document

READY = {"ready": True}
_MEGABYTE = 1024 * 1024
_UNPACKED = 4
"""Times the largest file that what is unpacked from one may be."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What holds for all files of this process."""

    seconds: float
    memory_mb: int
    file_mb: float
    chunking: ChunkingOptions

    def to_json(self) -> str:
        """As it is handed over on the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """What `to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "chunking": ChunkingOptions(**fields["chunking"])})


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """One file: where it lies, what it is called, and the id that its document is to have."""

    path: str
    name: str
    doc_id: str


def read_file(request: ReadRequest, job: Job, chunking: Chunking) -> Iterator[dict[str, Any]]:
    """The answer to a request, a line at a time. Raises `Refused`."""
    most = int(job.file_mb * _MEGABYTE)
    try:
        with Path(request.path).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(min(size, most) + 1)  # room for all that is asked for is taken at once
    except OSError as error:
        raise Refused("unreadable", f"it cannot be opened ({error.strerror})") from error
    if len(content) > most:
        raise Refused("limit", f"it is larger than {job.file_mb:g} MB; split it, or raise INGEST_FILE_MB")
    digest = hashlib.sha256(content).hexdigest()
    file = File(name=request.name, content=content, unpacked_bytes=_UNPACKED * most)
    document = read_document(file)
    passages = 0
    for passage in _passages(document, request.doc_id, chunking):
        passages += 1
        yield {"passage": asdict(passage)}
    fields = ("title", "kind", "pages", "aliases", "notes")
    head = {field: getattr(document, field) for field in fields}
    yield {"document": {**head, "content_hash": digest, "passages": passages}}


def _passages(document: Document, doc_id: str, chunking: Chunking) -> Iterator[Passage]:
    for row in document.rows:
        yield Passage(id=row.id, doc_id=row.id, title=row.title, text=row.text)  # each is a document of its own
    if document.blocks:
        yield from chunking.cut(document, doc_id)


def serve(job: Job, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer the requests on stdin until it ends."""
    chunking = prepared(job.chunking)
    answer(READY)
    for line in sys.stdin:
        _limit_cpu(job.seconds)
        try:
            for part in read_file(ReadRequest(**json.loads(line)), job, chunking):
                answer(part)
        except Refused as refused:
            answer({"refused": {"kind": refused.kind, "reason": refused.reason}})
        except MemoryError:
            answer({"refused": {"kind": "limit", "reason": "memory"}})


def _limit_memory(megabytes: int) -> None:
    """Have the system refuse more memory than that; not every platform can.

    Raises `OSError` where that leaves nothing to read with: what the imports freed may still be enough to begin.
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
    """Die by oneself some time after the limit: the parent, which kills at the limit, may itself have died."""
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
        return  # the platform knows the limit by name alone


def main() -> None:
    """Keep stdout for answers: whatever a library prints goes to stderr instead."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=_MEGABYTE)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(part: dict[str, Any]) -> None:
        answers.write(json.dumps(part) + "\n")
        if "passage" not in part:
            answers.flush()

    job = Job.from_json(sys.argv[1])
    _limit_memory(job.memory_mb)
    serve(job, answer)


if __name__ == "__main__":
    main()
