"""One encoder for many tasks: off the event loop, in batches, with waiting requests merged and recent texts cached."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, TypeAlias

import numpy as np

from .encoders import Encoder
from .vectors import FloatMatrix

_MOST_TEXTS = 1024
"""The most texts merged, so that a question does not wait for many large requests at once."""
_RECENT_TEXTS = 4096
"""The number of cached vectors: sentences of passages that many questions find are encoded once."""
_BULK = 256
"""A request with more texts comes from building an index, whose texts do not recur."""

Kind: TypeAlias = Literal["queries", "passages"]
_Request: TypeAlias = "tuple[Kind, tuple[str, ...], Future[FloatMatrix]]"


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
        self._waiting: list[_Request] = []
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
            return await self._submitted(kind, tuple(texts))
        with self._lock:
            known = {text: row for text in texts if (row := self._recent.get((kind, text))) is not None}
        missing = tuple(text for text in dict.fromkeys(texts) if text not in known)
        if missing:
            rows = await self._submitted(kind, missing)
            known.update((text, rows[at : at + 1].copy()) for at, text in enumerate(missing))
        with self._lock:
            for text, row in known.items():
                self._recent[kind, text] = row
                self._recent.move_to_end((kind, text))
            while len(self._recent) > _RECENT_TEXTS:
                self._recent.popitem(last=False)
        return np.concatenate([known[text] for text in texts])

    async def _submitted(self, kind: Kind, texts: tuple[str, ...]) -> FloatMatrix:
        answer: Future[FloatMatrix] = Future()
        with self._lock:
            self._waiting.append((kind, texts, answer))
        self._worker.submit(self._work)
        return await asyncio.wrap_future(answer)

    def _work(self) -> None:
        """Answer the oldest request, together with those of its kind that wait; nothing if an earlier turn did it."""
        batch, texts, later = list[_Request](), list[str](), list[_Request]()
        with self._lock:
            for request in self._waiting:
                if batch and (request[0] != batch[0][0] or len(texts) + len(request[1]) > _MOST_TEXTS):
                    later.append(request)
                elif request[2].set_running_or_notify_cancel():
                    batch.append(request)
                    texts += request[1]
            self._waiting = later
        if not batch:
            return
        encode = self._encoder.encode_queries if batch[0][0] == "queries" else self._encoder.encode_passages
        ends = np.cumsum([len(asked) for _, asked, _ in batch])
        try:
            parts = np.split(encode(texts), ends[:-1])
        except BaseException as error:  # noqa: BLE001  # raised where the rows are awaited; Rust's panics are no Exception
            for _, _, answer in batch:
                answer.set_exception(error)
            return
        for (_, _, answer), part in zip(batch, parts, strict=True):
            answer.set_result(part)
