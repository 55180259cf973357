"""Several processes serve one address: the first is awaited, dead ones are restarted, and all end together."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any

from ...errors import MetaRagError, SettingsError
from ...settings import Settings

_LOG = logging.getLogger(__name__)
_END_SECONDS = 9.5
_SETTLED_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 30.0
Work = Callable[[Callable[[], None]], None]
"""Serves until a signal; calls its argument as soon as it is ready."""


def require_servers(settings: Settings) -> None:
    """Raise `SettingsError` if several processes could not share their resources."""
    if settings.qdrant_url is None or settings.elasticsearch_url is None:
        raise SettingsError(
            "With embedded indexes, a worker sees only its own uploads; set QDRANT_URL and ELASTICSEARCH_URL, "
            "or serve with --workers 1."
        )
    if settings.redis_url is None:
        raise SettingsError(
            "Several workers need Redis to share rate limits; set REDIS_URL, or serve with --workers 1."
        )


@dataclass(kw_only=True)
class _Worker:
    """A process, or the slot of one that died; `due` is when the next one is started (`time.monotonic`)."""

    process: BaseProcess
    ready: Any
    started: float
    failures: int = 0
    due: float | None = None


def supervise(work: Work, count: int) -> None:
    """Run `count` processes until SIGTERM or SIGINT. Raises the `MetaRagError` that prevents the first from starting.

    The others start once the first is ready, so that resources built on first use are built only once.
    """
    with _signalled() as signals, _leash() as leash:
        workers = [_start(work, leash)]
        try:
            if not _awaited(workers[0], signals):
                return
            workers += [_start(work, leash) for _ in range(count - 1)]
            while signals not in connection.wait([signals, *_sentinels(workers)], timeout=_until_next(workers)):
                _renew(workers, work, leash)
        finally:
            _end([worker.process for worker in workers])


def _start(work: Work, leash: tuple[int, int], failures: int = 0) -> _Worker:
    context = get_context("fork")  # imports and the bound socket are shared
    ready, ready_sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, ready_sender, leash))
    process.start()
    ready_sender.close()
    _LOG.info("Worker %d started.", process.pid)
    return _Worker(process=process, ready=ready, started=time.monotonic(), failures=failures)


def _run(work: Work, ready_sender: Any, leash: tuple[int, int]) -> None:
    """The code of a worker process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.close(leash[1])
    threading.Thread(target=_follow, args=(leash[0],), daemon=True).start()
    try:
        work(lambda: ready_sender.send(None))
    except MetaRagError as error:
        _LOG.error("%s", error)
        ready_sender.send((str(error), error.exit_code))
        raise SystemExit(error.exit_code) from None


def _follow(leash: int) -> None:
    """End this process when its parent is gone, for whatever reason."""
    os.read(leash, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _awaited(worker: _Worker, signals: int) -> bool:
    """Wait until the first worker is ready; `False` if a signal came first."""
    if signals in connection.wait([worker.ready, signals]):
        return False
    try:
        failure = worker.ready.recv()
    except EOFError:
        worker.process.join()
        failure = f"The service failed to start (exit code {worker.process.exitcode}); see its log.", 1
    if failure is None:
        return True
    error = MetaRagError(failure[0])
    error.exit_code = failure[1]
    raise error


def _sentinels(workers: Sequence[_Worker]) -> list[int]:
    return [worker.process.sentinel for worker in workers if worker.due is None]


def _until_next(workers: Sequence[_Worker]) -> float | None:
    due = [worker.due for worker in workers if worker.due is not None]
    return max(0.0, min(due) - time.monotonic()) if due else None


def _renew(workers: list[_Worker], work: Work, leash: tuple[int, int]) -> None:
    """Restart workers that died: immediately, or after a pause if they die repeatedly."""
    now = time.monotonic()
    for place, worker in enumerate(workers):
        if worker.due is None and not worker.process.is_alive():
            worker.failures = 0 if now - worker.started > _SETTLED_SECONDS else worker.failures + 1
            pause = min(_LONGEST_PAUSE_SECONDS, 2.0 ** (worker.failures - 2)) if worker.failures > 1 else 0.0
            _LOG.error("Worker %d ended (exit code %s).", worker.process.pid, worker.process.exitcode)
            worker.due = now + pause
        if worker.due is not None and worker.due <= now:
            worker.ready.close()
            workers[place] = _start(work, leash, worker.failures)


def _end(processes: Sequence[BaseProcess]) -> None:
    """Let all workers finish their requests; those that take too long are killed."""
    until = time.monotonic() + _END_SECONDS
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            _LOG.error("Worker %d did not end in time.", process.pid)
            process.kill()
            process.join()


@contextmanager
def _signalled() -> Iterator[int]:
    """A file descriptor that becomes readable on SIGTERM or SIGINT."""
    read, write = os.pipe()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: os.write(write, b"."))
    try:
        yield read
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


@contextmanager
def _leash() -> Iterator[tuple[int, int]]:
    """A pipe whose write end only this process holds: workers end when it is closed."""
    read, write = os.pipe()
    try:
        yield read, write
    finally:
        os.close(read)
        os.close(write)
