"""How memory, indexing time and query time grow with a corpus."""

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.opening import open_retriever
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

_SIZES = (1_000, 10_000, 50_000)
_DIMENSION = 384
_WORDS, _LENGTH, _SENTENCE, _ASKED = 60_000, 70, 12, 9
_PASSAGES = 5
"""Passages of one document."""
_QUERIES = 200
_TOP_K = 10


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("corpus")(corpus)


@reporting
def corpus(
    size: Annotated[
        list[int] | None, typer.Option(min=_PASSAGES, help="Passages at which to measure, a multiple of 5; repeatable.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Where to build the corpus; default: a temporary folder.")] = None,
    json_: Json = False,
) -> None:
    """A growing embedded corpus of generated passages; vectors are hashed words, to exclude the encoder's time."""
    rows: list[dict[str, Any]] = []

    async def measure(place: Path) -> None:
        async for row in _grown(place, sorted(size or _SIZES)):
            rows.append(row)
            if not json_:
                say(
                    "{passages:8d} passages: {ms_a_passage:.2f} ms each to index; {disk_mb:.0f} MB on disk".format(
                        **row
                    )
                )
                say("  a query {query_p50_ms:.1f} ms (p50), {query_p95_ms:.1f} ms (p95)".format(**row))
                say("  opening {opening_s:.2f} s; a reader's memory {own_mb:.0f} MB".format(**row))
                say("  with mapped files {resident_mb:.0f} MB; while adding {adding_mb:.0f} MB".format(**row))

    with tempfile.TemporaryDirectory(dir=folder) as place:
        asyncio.run(measure(Path(place)))
    if json_:
        print_json(rows)


async def _grown(folder: Path, sizes: Sequence[int]) -> AsyncIterator[dict[str, Any]]:
    """At each size: the time per passage since the previous size, and a reader's figures."""
    settings = _settings(folder)
    encoder = AsyncEncoder(HashEncoder(_DIMENSION))
    made, before = _documents(), 0
    for size in sizes:
        indexed = 0.0
        started = time.perf_counter()
        async with edit_corpus(settings, "made", encoder, chunker="none") as editor:
            for _ in range(before, size, _PASSAGES):
                making = time.perf_counter()
                document, passages = next(made)
                indexed -= time.perf_counter() - making
                await editor.put(document, passages)
        indexed += time.perf_counter() - started
        disk = await asyncio.to_thread(_bytes_in, folder)
        yield {
            "passages": size,
            "ms_a_passage": 1000 * indexed / max(size - before, 1),
            "disk_mb": disk / 1e6,
            "adding_mb": _memory()["own_mb"],
            **await asyncio.to_thread(_in_a_new_process, folder, size),
        }
        before = size


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _memory() -> dict[str, float]:
    """Megabytes that the process holds: its own, and including pages of mapped files, which the system can reclaim."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    found = {
        line.partition(":")[0]: 1024 * int(line.split()[1]) / 1e6 for line in lines if line.startswith(("Rss", "VmRSS"))
    }
    return {"own_mb": found["RssAnon"], "resident_mb": found["VmRSS"]}


def _in_a_new_process(folder: Path, count: int) -> dict[str, float]:
    """A reader's figures: this process still holds memory that was used for adding."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_read, folder, count).result()


def _read(folder: Path, count: int) -> dict[str, float]:
    return asyncio.run(_asked(_settings(folder), AsyncEncoder(HashEncoder(_DIMENSION)), count))


def _settings(folder: Path) -> Settings:
    return Settings.load([f"MARAG_DATA_DIR={folder}"])


async def _asked(settings: Settings, encoder: AsyncEncoder, count: int) -> dict[str, float]:
    """Seconds to open a reader, milliseconds per query, and the reader's memory.

    A query consists of words from a text generated like the passages.
    """
    chance = random.Random(count)
    times = []
    started = time.perf_counter()
    async with open_retriever(settings, "made", encoder=encoder) as retriever:
        opening = time.perf_counter() - started
        for _ in range(_QUERIES + 1):
            words = _text(chance).split()
            query = " ".join(chance.sample(words, _ASKED))
            began = time.perf_counter()
            await retriever.retrieve([query], k=_TOP_K)
            times.append(1000 * (time.perf_counter() - began))
        memory = await asyncio.to_thread(_memory)
    times.pop(0)  # the first query does one-time initialisation
    return {
        "opening_s": opening,
        "query_p50_ms": statistics.median(times),
        "query_p95_ms": float(np.percentile(times, 95)),
        **memory,
    }


def _documents() -> Iterator[tuple[DocumentRecord, list[Passage]]]:
    """An endless stream of generated documents."""
    chance = random.Random(1)
    number = 0
    while True:
        title = " ".join(word.capitalize() for word in chance.choices(_vocabulary(), k=3))
        texts = [_text(chance) for _ in range(_PASSAGES)]
        passages = [
            Passage(id=f"p{number}-{place}", doc_id=f"d{number}", title=title, text=text)
            for place, text in enumerate(texts)
        ]
        yield (
            DocumentRecord(id=f"d{number}", source=f"d{number}", title=title, kind="made", content_hash=str(number)),
            passages,
        )
        number += 1


def _text(chance: random.Random) -> str:
    """Sentences of words whose frequencies follow Zipf's law, as in natural language."""
    words = chance.choices(_vocabulary(), cum_weights=_weights(), k=_LENGTH)
    parts = (words[start : start + _SENTENCE] for start in range(0, _LENGTH, _SENTENCE))
    return " ".join(f"{' '.join(part).capitalize()}." for part in parts)


@cache
def _vocabulary() -> list[str]:
    """Words made of syllables: numbers or single letters would not look like the words of a text."""
    chance = random.Random(1)
    syllables = [first + second for first in "bdfgklmnprstv" for second in "aeiou"]
    return ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(_WORDS)]


@cache
def _weights() -> list[float]:
    return list(accumulate(1.0 / rank for rank in range(1, _WORDS + 1)))
