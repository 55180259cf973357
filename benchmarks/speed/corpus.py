"""How the time for indexing and for a query grows with a corpus."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.editing import ensure_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.opening import open_retriever
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

_SIZES = (1_000, 10_000, 50_000)
_DIMENSION = 384
_WORDS, _LENGTH, _ASKED = 60_000, 70, 9
_QUERIES = 200
_TOP_K = 10


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("corpus")(corpus)


@reporting
def corpus(
    size: Annotated[list[int] | None, typer.Option(min=1, help="Passages of a corpus; repeatable.")] = None,
    json_: Json = False,
) -> None:
    """Embedded indexes over generated passages, by size; vectors are hashed words, to exclude the model's time."""
    rows = []
    for passages in size or _SIZES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(_measured(Path(folder), passages)))
        if not json_:
            say(
                "{passages:6d} passages: {ms_a_passage:.2f} ms each to index, "
                "a query {query_p50_ms:.1f} ms (p50), {query_p95_ms:.1f} ms (p95)".format(**rows[-1])
            )
    if json_:
        print_json(rows)


async def _measured(folder: Path, count: int) -> dict[str, Any]:
    settings = Settings.load([f"MARAG_DATA_DIR={folder}"])
    encoder = AsyncEncoder(HashEncoder(_DIMENSION))
    passages = _made(count)
    started = time.perf_counter()
    await ensure_corpus(settings, "made", passages, encoder)
    indexed = time.perf_counter() - started
    chance = np.random.default_rng(count)
    times = []
    async with open_retriever(settings, "made", encoder=encoder) as retriever:
        for number in [0, *chance.integers(0, count, _QUERIES).tolist()]:
            words = passages[number].text.split()
            query = " ".join(chance.choice(words, _ASKED, replace=False))
            began = time.perf_counter()
            await retriever.retrieve([query], k=_TOP_K)
            times.append(1000 * (time.perf_counter() - began))
    times.pop(0)  # the first one opens what is opened once
    return {
        "passages": count,
        "ms_a_passage": 1000 * indexed / count,
        "query_p50_ms": statistics.median(times),
        "query_p95_ms": float(np.percentile(times, 95)),
    }


def _made(count: int) -> list[Passage]:
    """Passages of words that are as unlike in frequency as those of a language (Zipf)."""
    chance = np.random.default_rng(1)
    weights = 1.0 / np.arange(1, _WORDS + 1)
    drawn = chance.choice(_WORDS, size=(count, _LENGTH), p=weights / weights.sum())
    return [
        Passage(
            id=f"p{number}",
            doc_id=f"d{number // 5}",
            title=f"Title{row[0]} Title{row[1]} {number // 5}",
            text=" ".join(f"word{word}" for word in row),
        )
        for number, row in enumerate(drawn.tolist())
    ]
