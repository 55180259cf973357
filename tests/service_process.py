"""Run services in child processes, forked from one that has done all imports, which take seconds.

`python -m tests.service_process` reads one JSON object per line: {"port", "folder", "log", "workers", "env"} starts a
service and returns its process ID; {"archive", "folder", "env"} archives audit records instead; {"wait"} returns
the exit code of a process once it has ended. A service's model is a script that takes 20 ms per call, or
the server at LLM_BASE_URL.
"""

import asyncio
import json
import os
import sys
from datetime import datetime
from typing import Any

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.service.audit.retention import Ages, archive
from meta_agent_rag.service.opening import open_service
from meta_agent_rag.service.server.running import serve_opened
from meta_agent_rag.service.storage.database import open_database
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.service import SCRIPT, film_retrievers


def archive_records(wanted: dict[str, Any]) -> None:
    """Archive old records in this process."""

    async def work() -> None:
        settings = Settings.load()
        ages = Ages(**{name: datetime.fromisoformat(at) for name, at in wanted["archive"].items()})
        async with open_database(settings) as engine:
            await archive(engine, settings.marag_data_dir / "audit" / "archive", ages)

    asyncio.run(work())


def serve(wanted: dict[str, Any]) -> None:
    """Serve in this process until it is stopped."""
    os.dup2(os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    settings = Settings.load()
    serve_opened(
        lambda: open_service(
            settings,
            (),
            model=None if settings.llm_base_url else ScriptedModel(SCRIPT, seconds=0.02),
            monitor_encoder=AsyncEncoder(HashEncoder()),
            retrievers=film_retrievers(),
        ),
        host="127.0.0.1",
        port=wanted["port"],
        workers=wanted["workers"],
    )


def forked(wanted: dict[str, Any]) -> int:
    """Fork a process that serves; returns its ID."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.environ.clear()
        os.environ.update(wanted["env"])
        os.chdir(wanted["folder"])
        (archive_records if "archive" in wanted else serve)(wanted)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(pid: int) -> int:
    """Wait for a process to end and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """Start and wait for services until standard input ends."""
    from importlib import import_module

    for name in (
        "aiosqlite",
        "alembic.command",
        "psycopg",
        "sqlalchemy.dialects.postgresql.psycopg",
        "limits.aio.strategies",
        "limits.aio.storage",
        "uvicorn",
    ):
        import_module(name)
    for line in sys.stdin:
        wanted = json.loads(line)
        answer = ended(wanted["wait"]) if "wait" in wanted else forked(wanted)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
