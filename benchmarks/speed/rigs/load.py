"""A service in its own process, and its clients: the parts of `benchmarks.speed service`."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from meta_agent_rag.datasets import Question
from meta_agent_rag.settings import Settings

_START_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Response:
    """One response: its status (0: none), its time (`time.monotonic`) and its duration in seconds."""

    question: str
    status: int
    at: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RunningService:
    """A running service: its address, a key, its process."""

    url: str
    token: str
    pid: int

    @asynccontextmanager
    async def client(self, connections: int) -> AsyncIterator[httpx.AsyncClient]:
        """A client with a key and enough connections."""
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, limits=limits, timeout=60.0) as client:
            yield client

    def memory_mb(self) -> float | None:
        """Resident memory, if the system reports it."""
        path = Path(f"/proc/{self.pid}/status")
        found = re.search(r"VmRSS:\s+(\d+) kB", path.read_text()) if path.is_file() else None
        return None if found is None else int(found[1]) / 1024

    def cpu_seconds(self) -> float | None:
        """CPU time so far, if the system reports it."""
        path = Path(f"/proc/{self.pid}/schedstat")
        return int(path.read_text().split()[0]) / 1e9 if path.is_file() else None


@contextmanager
def _process(folder: Path, assignments: Sequence[str]) -> "Iterator[tuple[subprocess.Popen[bytes], Path]]":
    words = [sys.executable, "-m", "meta_agent_rag.cli.main", "serve", "--port", "0"]
    log = folder / "service.log"
    with log.open("w") as errors:
        child = subprocess.Popen([*words, *(part for one in assignments for part in ("--set", one))], stderr=errors)
    try:
        yield child, log
    finally:
        child.terminate()
        child.wait(60)


@asynccontextmanager
async def service(folder: Path, model_url: str, *assignments: str) -> AsyncIterator[RunningService]:
    """`marag serve` over the sample corpus, with a model at `model_url` and its data in `folder`."""
    from meta_agent_rag.service.access import open_keys
    from meta_agent_rag.service.database import open_database

    said = [
        "LLM_PROVIDER=deepseek",
        "DEEPSEEK_API_KEY=loopback",
        f"LLM_BASE_URL={model_url}",
        f"MARAG_DATA_DIR={folder}",
        "SERVICE_RATE_PER_MINUTE=1000000",
        *assignments,
    ]
    exported = Settings.load().marag_data_dir / "encoders"  # once, for several minutes
    exported.mkdir(parents=True, exist_ok=True)
    (folder / "encoders").symlink_to(exported)
    settings = Settings.load(said)
    async with open_database(settings) as database:
        token, _ = await open_keys(database, settings).create("measurement")
    with _process(folder, said) as (child, log):
        yield RunningService(url=_address(child, log), token=token, pid=child.pid)


def _address(child: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and child.poll() is None:
        if found := re.search(r"Listening on (http://[\d.:]+)", log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"The service did not start: {log.read_text()[-2000:]}")


@dataclass(kw_only=True)
class Load:
    """Clients that each ask the next question as soon as the previous one is answered."""

    clients: int
    outcomes: list[Response] = field(default_factory=list)

    async def run(self, questions: Sequence[Question], ask: Callable[[Question], Awaitable[int]]) -> list[Response]:
        """Ask all questions; `ask` returns a status."""
        waiting = iter(questions)
        done: list[Response] = []

        async def one() -> None:
            for question in waiting:
                started = time.monotonic()
                status = await ask(question)
                now = time.monotonic()
                done.append(Response(question=question.id, status=status, at=now, seconds=now - started))

        await asyncio.gather(*(one() for _ in range(self.clients)))
        self.outcomes += done
        return done


async def ask(client: httpx.AsyncClient, question: Question) -> int:
    """Ask the service; the status, or 0 if no response came."""
    try:
        return (await client.post("/v1/ask", json={"question": question.text})).status_code
    except httpx.HTTPError:
        return 0
