"""Run services in child processes, forked from one that has done all imports, which take seconds.

`python -m tests.service_process` reads one JSON object per line: {"port", "folder", "log", "workers", "corpora", "env"}
starts a service and returns its process ID; {"wait"} returns the exit code of a process once it has ended. A
service's model is a script that takes 20 ms per call, or the server at LLM_BASE_URL.
"""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.service.resources import Service, open_service
from meta_agent_rag.service.uvicorn_server import serve_opened
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.service import SCRIPT, film_retrievers


def opened(in_process: bool, corpora: Sequence[str]) -> "AbstractAsyncContextManager[Service]":
    """The service over corpora, or over two documents, with the model of this test."""
    return open_service(
        Settings.load(),
        corpora,
        model=ScriptedModel(SCRIPT, seconds=0.02) if in_process else None,
        monitor_encoder=AsyncEncoder(HashEncoder()),
        retrievers=None if corpora else film_retrievers(),
    )


def serve(wanted: dict[str, Any]) -> None:
    """Serve in this process until it is stopped."""
    os.dup2(os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    opening = partial(opened, Settings.load().llm_base_url is None, wanted["corpora"])
    serve_opened(opening, host="127.0.0.1", port=wanted["port"], workers=wanted["workers"])


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
        serve(wanted)
        code = 0
    except Exception:  # noqa: BLE001  # the test shows the log
        traceback.print_exc()
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
