"""The child process: what it reads, and its isolation from the parent."""

import asyncio
import hashlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.ingestion.child import Job
from meta_agent_rag.ingestion.chunkers import ChunkingOptions
from meta_agent_rag.ingestion.document import Refused
from meta_agent_rag.ingestion.isolation import IsolatedReader

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
JOB = Job(seconds=60, memory_mb=1024, file_mb=8, chunking=ChunkingOptions())
HANDSHAKE = "import sys; print('ready', flush=True); sys.stdin.readline(); "
READ: dict[str, Any] = {
    "title": "a",
    "kind": "text",
    "content_hash": "0",
    "passages": [],
    "pages": None,
    "aliases": [],
    "notes": [],
}


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
        reader.close()


@pytest.fixture
def written(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        (tmp_path / "a.txt").write_bytes(content)
        return tmp_path / "a.txt"

    return write


async def refused(reader: IsolatedReader, path: Path) -> Refused:
    with pytest.raises(Refused) as raised:
        await reader.read(path, "d")
    return raised.value


async def test_a_file_is_read_and_the_child_is_reused(written: Callable[[bytes], Path]) -> None:
    content = "Rivers\n\nThe Danube flows.\ud800".encode("utf-8", "surrogatepass")
    async with reading() as reader:
        first = await reader.read(written(content), "rivers")
        child = reader._process
        assert (await refused(reader, written(b""))).kind == "empty"
        await reader.read(written(b"Other words."), "other")
        assert reader._process is child is not None
    assert first.title == "Rivers"
    assert first.content_hash == hashlib.sha256(content).hexdigest()
    assert [(passage.doc_id, passage.span) for passage in first.passages] == [("rivers", (0, 28))]
    assert child.returncode is not None


async def test_a_file_with_too_many_passages_is_rejected(written: Callable[[bytes], Path]) -> None:
    job = Job(seconds=60, memory_mb=1024, file_mb=8, chunking=ChunkingOptions(characters=64, overlap=0))
    async with reading(job) as reader:
        fault = await refused(reader, written(b"Many short words stand here.\n\n" * 50_000))
    assert (fault.kind, fault.reason) == ("limit", "it has more than 20000 passages; split it")


async def test_a_child_over_its_time_limit_is_killed_and_replaced(written: Callable[[bytes], Path]) -> None:
    job = Job(seconds=0.5, memory_mb=1024, file_mb=8, chunking=ChunkingOptions())
    async with reading(job, HANDSHAKE + "import time; time.sleep(60)") as reader:
        path = written(b"x")
        for _ in range(2):
            began = time.monotonic()
            fault = await refused(reader, path)
            assert (fault.kind, fault.reason) == ("limit", "reading it takes more than 0.5 s; raise INGEST_SECONDS")
            assert time.monotonic() - began < 30


@on_linux
async def test_a_child_over_its_memory_limit_is_replaced(written: Callable[[bytes], Path]) -> None:
    job = Job(seconds=60, memory_mb=64, file_mb=64, chunking=ChunkingOptions())
    async with reading(job) as reader:
        await reader.read(written(b"small"), "d")
        fault = await refused(reader, written(b"many words " * 4_000_000))
        assert (fault.kind, fault.reason) == ("limit", "reading it takes more than 64 MB; raise INGEST_MEMORY_MB")
        assert (await reader.read(written(b"small"), "d")).passages


@on_linux
async def test_an_unsatisfiable_memory_limit_is_a_settings_error(written: Callable[[bytes], Path]) -> None:
    async with reading(Job(seconds=60, memory_mb=1, file_mb=8, chunking=ChunkingOptions())) as reader:
        with pytest.raises(SettingsError, match="INGEST_MEMORY_MB=1"):
            await reader.read(written(b"x"), "d")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import os; os.abort()", "unreadable"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "limit"),
        ("print([1], flush=True); sys.stdin.read()", "unreadable"),
        ("[sys.stdout.write('x' * 100000) for _ in iter(int, 1)]", "unreadable"),
        ("", "unreadable"),
    ],
)
async def test_a_crashing_or_garbling_child_affects_only_its_file(
    code: str, kind: str, written: Callable[[bytes], Path]
) -> None:
    job = Job(seconds=60, memory_mb=1024, file_mb=0.1, chunking=ChunkingOptions())
    async with reading(job, HANDSHAKE + (code or "pass")) as reader:
        path = written(b"x")
        assert (await refused(reader, path)).kind == kind
        assert (await refused(reader, path)).kind == kind


@pytest.mark.parametrize(
    "answer",
    [
        pickle.dumps(Hostile(), protocol=0) + b"\n",
        b'["nonsense", "an unknown kind"]\n',
        b'["empty", "' + b"long " * 800_000 + b'"]\n',
        b"[" * 100_000 + b"\n",
        json.dumps({**READ, "title": ["no text"]}).encode() + b"\n",
        json.dumps({**READ, "passages": [{"id": "a"}]}).encode() + b"\n",
    ],
    ids=["pickle", "kind", "long", "deep", "type", "fields"],
)
async def test_a_child_that_a_file_took_over_is_replaced(written: Callable[[bytes], Path], answer: bytes) -> None:
    code = (
        "import os, runpy, sys\nif os.path.exists('taken over'): "
        "runpy.run_module('meta_agent_rag.ingestion.child', run_name='__main__')\n"
        f"os.mkdir('taken over'); {HANDSHAKE}"
        "sys.stdout.buffer.write(open('a.txt', 'rb').read()); sys.stdout.flush(); sys.stdin.read()"
    )
    job = Job(seconds=20, memory_mb=1024, file_mb=0.1, chunking=ChunkingOptions())
    async with reading(job, code) as reader:
        fault = await refused(reader, written(answer))
        assert (fault.kind, fault.reason) == ("unreadable", "the parser crashed on it")
        assert (await reader.read(written(b"Words."), "d")).passages


async def test_cancellation_ends_the_child_immediately(written: Callable[[bytes], Path]) -> None:
    async with reading(JOB, HANDSHAKE + "import time; time.sleep(60)") as reader:
        task = asyncio.create_task(reader.read(written(b"x"), "d"))
        while reader._served == 0:  # noqa: ASYNC110 # the child is started by a thread
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reader.close()
        assert time.monotonic() - began < 10
        assert (await refused(reader, written(b"x"))).reason == "reading was interrupted"


async def test_a_file_in_the_working_folder_cannot_shadow_a_library(
    tmp_path: Path, written: Callable[[bytes], Path]
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    assert Path.cwd() == tmp_path
    async with reading() as reader:
        assert (await reader.read(written(b"words"), "d")).title == "a"


def test_the_child_imports_no_slow_library() -> None:
    code = "import sys, meta_agent_rag.ingestion.child; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "transformers", "numpy", "pydantic", "pysbd", "docx", "pypdf", "bs4", "langgraph", "tokenizers"}
    assert not heavy & set(loaded)


def test_the_child_exits_with_its_parent(written: Callable[[bytes], Path]) -> None:
    """A parent that is killed closes the pipe, which ends the child."""
    command = [sys.executable, "-P", "-m", "meta_agent_rag.ingestion.child", json.dumps(asdict(JOB))]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ))
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    assert child.wait(timeout=60) == 0
    assert child.stdout.read() == b"ready\n"
    child.stdout.close()
