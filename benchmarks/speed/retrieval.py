"""Quality and speed of retrieval on a corpus with queries and relevance judgements.

The folder contains `corpus.jsonl` (or `.jsonl.gz`), `queries.jsonl` and `qrels.tsv`, in BEIR layout.
The corpus is built once per data folder and content, and then reused.
"""

import asyncio
import gzip
import hashlib
import json
import math
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from meta_agent_rag.cli.shared.command import Assignments, Json, print_json, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.editing import ensure_corpus
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.retrieval.hybrid import HybridRetriever
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.vectors import FloatMatrix, FloatVector
from meta_agent_rag.settings import Settings

_DEEPEST = 20
_INDEXED = 1024
"""Number of passages for one measurement of indexing speed."""
RECALL_AT = (2, 5, 10, 20)
ALL_AT = (5, 10)
NDCG_AT = 10

_Search: TypeAlias = Callable[[str, FloatVector], Awaitable[list[Found]]]


@dataclass(frozen=True, kw_only=True)
class JudgedQuery:
    """A corpus with queries and, for each, the ids of its relevant passages."""

    name: str
    passages: tuple[Passage, ...]
    queries: tuple[str, ...]
    relevant: tuple[frozenset[str], ...]


def retrieval(
    corpus_dir: Annotated[Path, typer.Option(help="Folder with corpus.jsonl[.gz], queries.jsonl and qrels.tsv.")],
    encoder: Annotated[str, typer.Option(help="Encoder of passages and queries.")] = "all-MiniLM-L6-v2",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of indexing speed per side.")] = 3,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Recall, rank and time of every retrieval switch, and indexing speed against the bare encoder."""
    settings = Settings.load(set_ or (), encoder=encoder)
    result = asyncio.run(_measure(settings, read_judged(corpus_dir), repeats))
    if json_:
        print_json(result)
        return
    say(f"{result['passages']} passages, {result['queries']} queries, encoder {result['encoder']}")
    for name, scores in result["ablation"].items():
        figures = "  ".join(f"{key} {scores[key]:5.1f}" for key in ("recall@2", "recall@5", "recall@10", "recall@20"))
        say(f"{name:<18} {figures}  all@10 {scores['all@10']:5.1f}  p50 {scores['p50_ms']:.1f} ms")
    share = f"{result['index_over_encoder']:.2f} of the bare encoder, median of {repeats}"
    say(f"indexing {result['index_passages_per_s']:.1f} passages/s ({share}); {result['bytes_on_disk']:,} bytes")


def read_judged(folder: Path) -> JudgedQuery:
    """Read a judged corpus. Raises `InputError` that names what is missing."""
    corpus = next((file for file in (folder / "corpus.jsonl", folder / "corpus.jsonl.gz") if file.is_file()), None)
    missing = [name for name in ("queries.jsonl", "qrels.tsv") if not (folder / name).is_file()]
    if corpus is None or missing:
        raise InputError(f"{str(folder)!r} lacks {', '.join(missing) or 'corpus.jsonl'}; give a folder in BEIR layout.")
    try:
        judged = _judged(folder, corpus)
    except (KeyError, TypeError, ValueError, OSError, EOFError) as error:
        raise InputError(
            f"{str(folder)!r} is not in BEIR layout ({type(error).__name__}: {error}); see docs/retrieval.md."
        ) from error
    if not judged.queries:
        raise InputError(f"{str(folder)!r} has no query with a judgement; correct queries.jsonl or qrels.tsv.")
    return judged


def _judged(folder: Path, corpus: Path) -> JudgedQuery:
    passages = tuple(
        Passage(id=_id(row), doc_id=_id(row), title=row.get("title", ""), text=row["text"]) for row in _jsonl(corpus)
    )
    wanted: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        query, passage, grade = line.split("\t")
        if int(grade) > 0:
            wanted.setdefault(query, set()).add(passage)
    asked = [row for row in _jsonl(folder / "queries.jsonl") if _id(row) in wanted]
    return JudgedQuery(
        name=folder.name,
        passages=passages,
        queries=tuple(row["text"] for row in asked),
        relevant=tuple(frozenset(wanted[_id(row)]) for row in asked),
    )


def _id(row: dict[str, Any]) -> str:
    return str(row["_id"] if "_id" in row else row["id"])


async def _measure(settings: Settings, judged: JudgedQuery, repeats: int) -> dict[str, Any]:
    encoder = AsyncEncoder(load_encoder(settings).encoder)
    speeds = await _indexing(settings, judged, encoder, repeats)
    content = hashlib.sha256("".join(passage.id + passage.text for passage in judged.passages).encode()).hexdigest()
    name = f"speed-{content[:12]}-{hashlib.sha256(encoder.name.encode()).hexdigest()[:8]}"
    await ensure_corpus(settings, name, judged.passages, encoder)
    async with open_retriever(settings, name, encoder=encoder) as retriever:
        vectors = await encoder.queries(judged.queries)
        ablation = {label: await _ablated(judged, vectors, one) for label, one in _switches(retriever).items()}
    files = [file.stat() for file in (settings.marag_data_dir / "corpora" / name).rglob("*") if file.is_file()]
    return {
        "corpus": judged.name,
        "passages": len(judged.passages),
        "queries": len(judged.queries),
        "encoder": encoder.name,
        **ablation[settings.fusion + ("+links" if settings.links else "")],
        **speeds,
        "bytes_on_disk": sum(getattr(file, "st_blocks", 0) * 512 or file.st_size for file in files),  # may be sparse
        "ablation": ablation,
    }


def _switches(whole: HybridRetriever) -> dict[str, _Search]:
    """Each side alone, and each stage on top of the previous one."""
    corpus, plain = whole.corpus, replace(whole, links=False, blend_floor=0.0)

    async def dense(query: str, vector: FloatVector) -> list[Found]:
        return await (await corpus.view()).nearest(vector, _DEEPEST)

    async def lexical(query: str, vector: FloatVector) -> list[Found]:
        return await (await corpus.view()).matching(query, _DEEPEST)

    stages: dict[str, _Search] = {"bm25": lexical, "dense": dense}
    for fusion in ("rrf", "blend"):
        stages[fusion] = replace(plain, fusion=fusion).candidates
        stages[f"{fusion}+links"] = replace(plain, fusion=fusion, links=True).candidates
    return stages


async def _ablated(judged: JudgedQuery, vectors: FloatMatrix, search: _Search) -> dict[str, float]:
    """Quality of a switch, and milliseconds per query, one query at a time, encoding excluded."""
    rankings, milliseconds = [], []
    for query, vector in zip(judged.queries, vectors, strict=True):
        start = time.perf_counter()
        found = await search(query, vector)
        milliseconds.append(1000 * (time.perf_counter() - start))
        rankings.append([one.passage.id for one in found[:_DEEPEST]])
    p50, p95 = np.percentile(milliseconds, (50, 95))
    times = {"p50_ms": round(float(p50), 3), "p95_ms": round(float(p95), 3)}
    return {**ranking_scores(rankings, judged.relevant), **times}


async def _indexing(settings: Settings, judged: JudgedQuery, encoder: AsyncEncoder, repeats: int) -> dict[str, float]:
    """Passages per second when building a corpus and with the encoder alone, alternating, same passages; medians."""
    step = max(1, len(judged.passages) // _INDEXED)
    some = judged.passages[::step][:_INDEXED]
    texts = [passage.searchable() for passage in some]
    await encoder.passages(texts[:32])
    ours, bare = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        await encoder.passages(texts)
        bare.append(len(some) / (time.perf_counter() - start))
        with tempfile.TemporaryDirectory() as folder:
            elsewhere = settings.model_copy(update={"marag_data_dir": Path(folder)})
            start = time.perf_counter()
            await ensure_corpus(elsewhere, "speed", some, encoder)
            ours.append(len(some) / (time.perf_counter() - start))
    ratios = [one / other for one, other in zip(ours, bare, strict=True)]
    return {
        "index_passages_per_s": round(statistics.median(ours), 2),
        "encoder_passages_per_s": round(statistics.median(bare), 2),
        "index_over_encoder": round(statistics.median(ratios), 3),
    }


def _jsonl(file: Path) -> Iterator[dict[str, Any]]:
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    for line in text.decode("utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def ranking_scores(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]]) -> dict[str, float]:
    """Means over queries of each measure, in percent, by name.

    `recall@k` is the share of a query's relevant passages in the top k, `all@k` whether all of them
    are there, `ndcg@10` has binary gains and the discount log2(rank + 1) (Jarvelin and Kekalainen 2002),
    `mrr` is the reciprocal rank of the first relevant passage.
    """
    rows = []
    for ranking, wanted in zip(rankings, relevant, strict=True):
        hits = [rank for rank, id_ in enumerate(dict.fromkeys(ranking), start=1) if id_ in wanted]
        gain = sum(1.0 / math.log2(rank + 1) for rank in hits if rank <= NDCG_AT)
        ideal = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(NDCG_AT, len(wanted)) + 1))
        rows.append(
            {
                **{f"recall@{k}": sum(rank <= k for rank in hits) / len(wanted) for k in RECALL_AT},
                **{f"all@{k}": float(sum(rank <= k for rank in hits) == len(wanted)) for k in ALL_AT},
                f"ndcg@{NDCG_AT}": gain / ideal,
                "mrr": 1.0 / hits[0] if hits else 0.0,
            }
        )
    return {name: round(100.0 * float(np.mean([row[name] for row in rows])), 2) for name in rows[0]}
