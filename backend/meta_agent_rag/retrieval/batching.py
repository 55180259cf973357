"""One encoder for many tasks: off the event loop, in batches, with waiting requests merged and recent texts cached."""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from .encoders.encoder import Encoder
from .vectors import FloatMatrix

_MOST_TEXTS = 1024
"""The most texts merged, so that a question does not wait for many large requests at once."""

_RECENT_TEXTS = 4096
"""The number of cached vectors: sentences of passages that many questions find are encoded once."""
_BULK = 256
"""A request with more texts comes from building an index, whose texts do not recur."""

Kind = Literal["queries", "passages"]


@dataclass(frozen=True, kw_only=True)
class _Request:
    kind: Kind
    texts: tuple[str, ...]
    answer: Future[FloatMatrix] = field(default_factory=Future)


class AsyncEncoder:
    """Asynchronous interface of an `Encoder`.

    The encoder runs in one worker thread. Requests that arrive while a batch is computed wait, and
    those of one kind form the next batch together. An exception of a batch is raised for every
    request in it. No state belongs to an event loop, so one object serves successive loops.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")
        self._lock = threading.Lock()
        self._waiting: deque[_Request] = deque()
        self._busy = False
        self._recent: OrderedDict[tuple[Kind, str], FloatMatrix] = OrderedDict()

    @property
    def name(self) -> str:
        """The encoder's name, as a corpus records it."""
        return self._encoder.name

    async def dimension(self) -> int:
        """The length of the vectors; awaited, because it may load the model."""
        return await asyncio.wrap_future(self._worker.submit(lambda: self._encoder.dimension))

    async def queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions; shape (n, dimension)."""
        return await self._encoded("queries", texts)

    async def passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; shape (n, dimension)."""
        return await self._encoded("passages", texts)

    async def _encoded(self, kind: Kind, texts: Sequence[str]) -> FloatMatrix:
        if not 0 < len(texts) <= _BULK:
            return await self._submit(_Request(kind=kind, texts=tuple(texts)))
        with self._lock:
            known = {text: row for text in texts if (row := self._recent.get((kind, text))) is not None}
        missing = tuple(text for text in dict.fromkeys(texts) if text not in known)
        if missing:
            rows = await self._submit(_Request(kind=kind, texts=missing))
            known.update((text, rows[at : at + 1].copy()) for at, text in enumerate(missing))
        with self._lock:
            for text, row in known.items():
                self._recent[kind, text] = row
                self._recent.move_to_end((kind, text))
            while len(self._recent) > _RECENT_TEXTS:
                self._recent.popitem(last=False)
        return np.concatenate([known[text] for text in texts])

    async def _submit(self, request: _Request) -> FloatMatrix:
        with self._lock:
            self._waiting.append(request)
            idle, self._busy = not self._busy, True
        if idle:
            self._start_next()
        return await asyncio.wrap_future(request.answer)

    def _start_next(self) -> None:
        """Pass the next batch to the worker, or become idle if nothing is waiting."""
        batch = self._next_batch()
        if batch:
            texts = [text for request in batch for text in request.texts]
            work = self._worker.submit(self._encode, batch[0].kind, texts)
            work.add_done_callback(partial(self._deliver, batch))

    def _next_batch(self) -> list[_Request]:
        """The oldest request and the later ones of its kind, without cancelled ones."""
        with self._lock:
            batch: list[_Request] = []
            later: deque[_Request] = deque()
            size = 0
            for request in self._waiting:
                if batch and (request.kind != batch[0].kind or size + len(request.texts) > _MOST_TEXTS):
                    later.append(request)
                elif request.answer.set_running_or_notify_cancel():
                    batch.append(request)
                    size += len(request.texts)
            self._waiting = later
            self._busy = bool(batch)
            return batch

    def _encode(self, kind: Kind, texts: list[str]) -> FloatMatrix:
        encode = self._encoder.encode_queries if kind == "queries" else self._encoder.encode_passages
        return encode(texts)

    def _deliver(self, batch: list[_Request], work: Future[FloatMatrix]) -> None:
        """Give each request its rows, or the batch's exception, then resume the waiting tasks."""
        error = work.exception()
        if error is not None:
            for request in batch:
                request.answer.set_exception(error)
        else:
            ends = np.cumsum([len(request.texts) for request in batch])
            for request, rows in zip(batch, np.split(work.result(), ends[:-1]), strict=True):
                request.answer.set_result(rows)
        self._start_next()
