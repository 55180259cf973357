"""Run work in child processes, forked from one that has done the imports, which take seconds."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from pathlib import Path

MARAG, RUNNER = "meta_agent_rag.cli.main", "benchmarks.runner"
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        *(MARAG, RUNNER),
        *("meta_agent_rag.cli.shared.shell", "meta_agent_rag.chat.session", "meta_agent_rag.ingestion.pipeline"),
        *("meta_agent_rag.service.app", "meta_agent_rag.service.uvicorn_server", "uvicorn", "aiosqlite", "psycopg"),
        *("sqlalchemy.dialects.postgresql.psycopg", "limits.aio.strategies", "limits.aio.storage", "tantivy"),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Forked:
    """A running or finished process; its output goes to the files `out` and `err`, unless it has a terminal."""

    process: ForkServerProcess
    out: Path
    err: Path

    @property
    def running(self) -> bool:
        return self.process.is_alive()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        os.kill(self.pid, number)

    def ended(self, seconds: float = 120) -> int:
        """Wait for the process to end and return its exit code, which is -N after signal N."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, "it is still running"
        return self.process.exitcode

    def killed(self) -> bool:
        """Kill the process; return whether it was still running."""
        alive = self.running
        self.process.kill()
        self.process.join()
        return alive


def forked(
    module: str, words: Sequence[str], env: Mapping[str, str], folder: Path, *, terminal: str | None = None
) -> Forked:
    """Start `python -m MODULE WORDS` in a folder, at a terminal if one is named."""
    return _started(_command, (module, list(words)), env, folder, terminal)


def forked_call(
    work: Callable[..., None], *args: object, folder: Path, env: Mapping[str, str] = os.environ, parent: bool = False
) -> Forked:
    """Start a function of a module in a folder; a `parent` may start processes of its own."""
    return _started(work, args, env, folder, None, daemon=not parent)


def _started(
    work: Callable[..., None],
    args: Sequence[object],
    env: Mapping[str, str],
    folder: Path,
    terminal: str | None,
    *,
    daemon: bool = True,
) -> Forked:
    out, err = folder / "forked.out", folder / "forked.err"
    out.unlink(missing_ok=True)
    places = (terminal, terminal, terminal) if terminal else (os.devnull, str(out), str(err))
    process = _CONTEXT.Process(target=_work, args=(dict(env), str(folder), places, work, args), daemon=daemon)
    process.start()
    return Forked(process=process, out=out, err=err)


def _work(
    env: Mapping[str, str], folder: str, places: tuple[str, str, str], work: Callable[..., None], args: Sequence[object]
) -> None:
    os.setsid()  # the next terminal opened becomes its controlling one, so that Ctrl+C sends a signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if a shell runs the tests in the background
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    for number, place in enumerate(places):
        os.dup2(os.open(place, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if number else 0)), number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    work(*args)


def _command(module: str, words: list[str]) -> None:
    sys.argv = [module, *words]
    import_module(module).app()
