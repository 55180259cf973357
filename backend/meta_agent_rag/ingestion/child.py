"""The process that parses and chunks files: `python -m meta_agent_rag.ingestion.child JOB`.

It reads one JSON request per line on stdin and answers with JSON lines on stdout: one per passage,
then the document (`{"document": ...}`) or the reason why there is none (`{"refused": ...}`). It imports
neither torch nor anything else that is slow, and serves file after file until it is killed.
"""

import hashlib
import io
import json
import math
import mmap
import os
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..retrieval.passage import Passage, to_fields
from .chunkers import Chunking, ChunkingOptions, prepared
from .document import Document, PassageRow, Refused
from .parsers import File
from .reading import HEAD_BYTES, read_document, read_rows, streaming_parser

READY = {"ready": True}
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


def read_file(request: ReadRequest, job: Job, chunking: Chunking) -> Iterator[dict[str, Any]]:
    """The answer to a request, line by line. Raises `Refused`."""
    most = int(job.file_mb * _MEGABYTE)
    try:
        with Path(request.path).open("rb") as stream:
            head = File(name=request.name, content=stream.read(HEAD_BYTES), unpacked_bytes=_UNPACKED * most)
            stream.seek(0)
            parser = streaming_parser(head)
            if parser is not None:
                hashed = Hashed(stream)
                yield from _streamed(read_rows(head, parser, hashed), hashed)
                return
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(min(size, most) + 1)  # the requested size is allocated at once
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
        yield {"passage": to_fields(passage)}
    yield _ending(document, digest, passages)


class Hashed(io.RawIOBase):
    """A stream that computes the hash of its bytes while they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read, and include the bytes in the hash."""
        content = self._stream.read(len(buffer))
        self._digest.update(content)
        buffer[: len(content)] = content
        return len(content)

    def hexdigest(self) -> str:
        """The hash of the whole stream: reads what is left."""
        while content := self._stream.read(_MEGABYTE):
            self._digest.update(content)
        return self._digest.hexdigest()


def _streamed(rows: Generator[PassageRow, None, Document], hashed: Hashed) -> Iterator[dict[str, Any]]:
    """The answer for a file that is read row by row."""
    passages = 0
    while True:
        try:
            row = next(rows)
        except StopIteration as end:
            yield _ending(end.value, hashed.hexdigest(), passages)
            return
        passages += 1
        yield {"passage": to_fields(_passage(row))}


def _ending(document: Document, digest: str, passages: int) -> dict[str, Any]:
    fields = ("title", "kind", "pages", "aliases", "notes")
    head = {field: getattr(document, field) for field in fields}
    return {"document": {**head, "content_hash": digest, "passages": passages}}


def shares(path: str, job: Job) -> int:
    """How many times the limits of one file apply: a file read row by row may be any multiple of the largest size."""
    try:
        size = Path(path).stat().st_size
    except OSError:
        return 1
    return max(1, math.ceil(size / (job.file_mb * _MEGABYTE)))


def _passage(row: PassageRow) -> Passage:
    return Passage(id=row.id, doc_id=row.id, title=row.title, text=row.text)  # each is a separate document


def _passages(document: Document, doc_id: str, chunking: Chunking) -> Iterator[Passage]:
    for row in document.rows:
        yield _passage(row)
    if document.blocks:
        yield from chunking.cut(document, doc_id)


def serve(job: Job, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer the requests on stdin until it ends."""
    chunking = prepared(job.chunking)
    answer(READY)
    for line in sys.stdin:
        request = ReadRequest(**json.loads(line))
        _limit_cpu(shares(request.path, job) * job.seconds)
        try:
            for part in read_file(request, job, chunking):
                answer(part)
        except Refused as refused:
            answer({"refused": {"kind": refused.kind, "reason": refused.reason}})
        except MemoryError:
            answer({"refused": {"kind": "limit", "reason": "memory"}})


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

    def answer(part: dict[str, Any]) -> None:
        answers.write(json.dumps(part) + "\n")
        if "passage" not in part:
            answers.flush()

    job = Job.from_json(sys.argv[1])
    _limit_memory(job.memory_mb)
    serve(job, answer)


if __name__ == "__main__":
    main()
