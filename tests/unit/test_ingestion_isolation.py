"""The child process: what it reads, and its isolation from the parent."""

import asyncio
import hashlib
import json
import pickle
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.ingestion import isolation
from meta_agent_rag.ingestion.chunking import Chunking
from meta_agent_rag.ingestion.document import Refused
from meta_agent_rag.ingestion.isolation import IsolatedReader, Job, read_file

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
JOB = Job(seconds=60, memory_mb=1024, file_mb=0.1, chunking=Chunking())
HANDSHAKE = "import sys; print('ready', flush=True); sys.stdin.readline(); "
READ: dict[str, Any] = {"title": "a", "kind": "text", "content_hash": "0", "passages": []}


class Hostile:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return pytest.fail, ("its code runs here",)


@asynccontextmanager
async def reading(job: Job = JOB, code: str | None = None) -> AsyncIterator[IsolatedReader]:
    """A reader whose child process runs `code`, if given, instead of the real one."""
    reader = IsolatedReader(job) if code is None else IsolatedReader(job, ("-c", code))
    try:
        yield reader
    finally:
        await reader.close()


@pytest.fixture
def written(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        (tmp_path / "a.txt").write_bytes(content)
        return tmp_path / "a.txt"

    return write


async def refused(reader: IsolatedReader, path: Path) -> tuple[str, str]:
    with pytest.raises(Refused) as raised:
        await reader.read(path, "d")
    return raised.value.kind, raised.value.reason


async def test_a_file_is_read_and_the_child_is_reused(tmp_path: Path, written: Callable[[bytes], Path]) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a file in the working folder shadows a library')")
    content = "Rivers\n\nThe Danube flows.\ud800".encode("utf-8", "surrogatepass")
    async with reading() as reader:
        first = await reader.read(written(content), "rivers")
        process = reader._process
        assert (await refused(reader, written(b"")))[0] == "empty"
        await reader.read(written(b"Other words."), "other")
        assert reader._process is process is not None
    assert (first.title, first.content_hash) == ("Rivers", hashlib.sha256(content).hexdigest())
    assert [(passage.doc_id, passage.span) for passage in first.passages] == [("rivers", (0, 28))]
    assert process.returncode is not None


def test_a_file_with_too_many_passages_is_rejected(
    written: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "MOST_PASSAGES", 20)
    job = replace(JOB, chunking=Chunking(characters=64, overlap=0))
    path = written(b"Many short words stand here.\n\n" * 50)
    with pytest.raises(Refused, match="it has more than 20 passages; split it"):
        read_file(str(path), path.name, "d", job)


async def test_a_child_over_its_time_limit_is_killed_and_replaced(written: Callable[[bytes], Path]) -> None:
    async with reading(replace(JOB, seconds=0.5), HANDSHAKE + "import time; time.sleep(60)") as reader:
        for _ in range(2):
            fault = await refused(reader, written(b"x"))
            assert fault == ("limit", "reading it takes more than 0.5 s; raise INGEST_SECONDS")


@on_linux
async def test_a_child_over_its_memory_limit_is_replaced(written: Callable[[bytes], Path]) -> None:
    async with reading(replace(JOB, memory_mb=64, file_mb=64)) as reader:
        await reader.read(written(b"small"), "d")
        fault = await refused(reader, written(b"many words " * 4_000_000))
        assert fault == ("limit", "reading it takes more than 64 MB; raise INGEST_MEMORY_MB")
        assert (await reader.read(written(b"small"), "d")).passages
    async with reading(replace(JOB, memory_mb=1)) as reader:
        with pytest.raises(SettingsError, match="INGEST_MEMORY_MB=1"):
            await reader.read(written(b"x"), "d")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import os; os.abort()", "unreadable"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "limit"),
        ("[sys.stdout.write('x' * 100000) for _ in iter(int, 1)]", "unreadable"),
    ],
)
async def test_a_crashing_child_affects_only_its_file(code: str, kind: str, written: Callable[[bytes], Path]) -> None:
    async with reading(JOB, HANDSHAKE + code) as reader:
        for _ in range(2):
            assert (await refused(reader, written(b"x")))[0] == kind


@pytest.mark.parametrize(
    "answer",
    [
        pickle.dumps(Hostile(), protocol=0),
        b'["empty", "' + b"long " * 800_000 + b'"]',
        json.dumps({**READ, "passages": [{"id": "a"}]}).encode(),
    ],
    ids=["pickle", "long", "fields"],
)
async def test_what_a_child_answers_is_checked(written: Callable[[bytes], Path], answer: bytes) -> None:
    code = f"{HANDSHAKE}sys.stdout.buffer.write(open('a.txt', 'rb').read()); sys.stdout.flush(); sys.stdin.read()"
    async with reading(JOB, code) as reader:
        assert await refused(reader, written(answer + b"\n")) == ("unreadable", "the parser crashed on it")


async def test_cancellation_ends_the_child_immediately(written: Callable[[bytes], Path]) -> None:
    async with reading(JOB, HANDSHAKE + "import time; time.sleep(60)") as reader:
        task = asyncio.create_task(reader.read(written(b"x"), "d"))
        while reader._served == 0:  # noqa: ASYNC110 # the child is started first
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert reader._process is None
        assert time.monotonic() - began < 10
