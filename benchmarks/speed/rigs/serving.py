"""A service in its own process, with a scripted model, that measurements start, kill and restart."""

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx

from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.service.access import open_keys
from meta_agent_rag.service.database import open_database
from meta_agent_rag.settings import Settings

QUOTE = "Edda Voss designed the mill at Corran."
BODY: Mapping[str, Any] = {"question": "Who designed the mill?", "source_mode": "context-restricted", "context": QUOTE}
_START_SECONDS = 120.0
_PRELOADED = ["__main__", __name__, "meta_agent_rag.service.server", "uvicorn"]


def free_port() -> int:
    """A free loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def within(settings: Mapping[str, str], module: str, *words: str) -> list[str]:
    """The command `python -m MODULE WORDS` with its own settings, from any folder."""
    root = Path(__file__).parents[__name__.count(".")]
    given = [f"{name}={value}" for name, value in {"PYTHONPATH": str(root), **settings}.items()]
    return ["env", *given, sys.executable, "-m", module, *words]


@dataclass(kw_only=True)
class Serving:
    """A service with settings given as `NAME=VALUE`; `process` is the latest process."""

    words: tuple[str, ...]
    port: int = field(default_factory=free_port)
    process: BaseProcess | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def key(self) -> str:
        """A key for requests to it."""
        settings = Settings.load(self.words)
        async with open_database(settings) as database:
            return (await open_keys(database, settings).create("measurement"))[0]

    def start(self) -> None:
        """Start it, and wait until it answers. Raises `MetaRagError`."""
        context = get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self.process = context.Process(target=_serve, args=(self.words, self.port), daemon=True)
        self.process.start()
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self.process.is_alive():
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/healthz").status_code == 200:
                    return
            time.sleep(0.02)
        raise MetaRagError(f"The service did not start (exit code {self.process.exitcode}); try `marag serve`.")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send it a signal, and wait until it has ended."""
        if self.process is not None and self.process.pid is not None:
            os.kill(self.process.pid, number)
            self.process.join()
            self.process = None

    def killed(self) -> None:
        """Kill it and start a new one."""
        self.stop(signal.SIGKILL)
        self.start()


def _serve(words: tuple[str, ...], port: int) -> None:
    from meta_agent_rag.retrieval.batching import AsyncEncoder
    from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
    from meta_agent_rag.service.opening import open_service
    from meta_agent_rag.service.server import serve_opened
    from meta_agent_rag.testing import ScriptedModel

    draft = {"steps": ["She did."], "quotes": [QUOTE], "answer": "Edda Voss did [1].", "short_answer": "Edda Voss"}
    script = {"write": draft, "second_answer": {"steps": ["She did."], "short_answer": "Edda Voss"}}
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # open as long as the process; it would hold one line per request
    settings = Settings.load(words)
    serve_opened(
        lambda: open_service(
            settings,
            (),
            model=ScriptedModel(script, seconds=0.02),
            monitor_encoder=AsyncEncoder(HashEncoder()),
            retrievers={},
        ),
        host="127.0.0.1",
        port=port,
    )
