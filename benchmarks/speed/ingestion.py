"""Do both indexes and the catalogue hold the same passages, each once, after an ingestion was killed repeatedly?"""

import asyncio
import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.retrieval.corpus.corpus import open_corpus, read_documents
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings
from meta_agent_rag.shipped import shipped

from .rigs.serving import within

_CORPUS = "killed"
_ENCODER = "hash-64"
_LONGEST_SECONDS = 300.0


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("ingestion")(ingestion)


@reporting
def ingestion(
    kills: Annotated[int, typer.Option(min=1, help="Kills of `marag ingest`.")] = 20,
    documents: Annotated[int, typer.Option(min=1, help="Documents.")] = 400,
    seed: Annotated[int, typer.Option(help="Seed of the times of the kills.")] = 7,
    json_: Json = False,
) -> None:
    """Repeatedly kill an ingestion while its files change, let it finish, and compare it with a fresh one."""
    with tempfile.TemporaryDirectory() as name:
        result = _measured(Path(name), kills, documents, seed)
    if json_:
        print_json(result)
        return
    say(f"{documents} documents, killed {result['kills']} times while working:")
    say(f"  {', '.join(f'{count} {what}' for what, count in result['compared'].items())}")
    say(f"  catalogue: {result['documents']} documents, as without kills: {result['same_documents']}")


def _measured(folder: Path, kills: int, documents: int, seed: int) -> dict[str, Any]:
    docs, chance = folder / "docs", random.Random(seed)
    _write(docs, documents, version=0)
    whole = _timed(docs, folder / "timed")
    struck = 0
    for number in range(kills):
        _write(docs, documents, version=7 * number)
        with subprocess.Popen(_words(docs, folder / "killed"), **_quiet()) as process:
            time.sleep(whole * (0.2 + 0.5 * chance.random()))
            struck += process.poll() is None
            process.kill()
    _timed(docs, folder / "killed")
    _timed(docs, folder / "whole")
    wanted, same = _held(folder / "whole"), _held(folder / "killed")
    return {
        "kills": struck,
        "documents": same["documents"],
        "same_documents": same["documents"] == wanted["documents"] and same["sources"] == wanted["sources"],
        "compared": _compared(same["passages"], wanted["passages"]),
    }


def _write(docs: Path, documents: int, *, version: int) -> None:
    """Documents of a few passages each; a seventh of them change from version to version, and some are removed."""
    docs.mkdir(exist_ok=True)
    rows = json.loads(shipped("questions.json").read_text("utf-8"))
    for number in range(documents):
        path = docs / f"{number}.md"
        if number % 31 == version % 31:
            path.unlink(missing_ok=True)
            continue
        changed = version if number % 7 == version % 7 else number % 7
        context = rows[number % len(rows)]["context"]
        sections = "\n\n".join(f"## {title}\n\n{' '.join(sentences)}" for title, sentences in context)
        path.write_text(f"# Document {number}, version {changed}\n\n{sections}\n", "utf-8")


def _timed(docs: Path, data: Path) -> float:
    started = time.monotonic()
    done = subprocess.run(_words(docs, data), capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return time.monotonic() - started


def _words(docs: Path, data: Path) -> list[str]:
    settings = {"MARAG_DATA_DIR": str(data), "ENCODER": _ENCODER}
    return within(settings, "meta_agent_rag.cli.main", "ingest", str(docs), "--corpus", _CORPUS, "--prune")


def _quiet() -> dict[str, Any]:
    return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def _held(data: Path) -> dict[str, Any]:
    """The passages, (source, text), and the documents of the catalogue.

    A file that changes keeps its document's id, so ids differ with the history.
    """
    settings = Settings.load([f"MARAG_DATA_DIR={data}"])
    records = read_documents(data, _CORPUS)
    source = {record.id: record.source for record in records}

    def keyed(passage: Passage) -> tuple[str, str]:
        return source.get(passage.doc_id, "of no document"), passage.text

    async def scanned() -> dict[str, Counter[tuple[str, str]]]:
        async with open_corpus(settings, _CORPUS, _ENCODER, HashEncoder(64).dimension) as corpus:
            manifest = corpus.manifest
            held = corpus.catalogue.passages_in(corpus.catalogue.rows().tolist())
            assert len(held) == manifest.passages, "what is published is not what the catalogue holds"
            return {"passages": Counter(keyed(passage) for passage in held.values())}

    sources = {(record.source, record.content_hash) for record in records}
    return {**asyncio.run(scanned()), "documents": len(records), "sources": sources}


def _compared(found: Mapping[tuple[str, str], int], wanted: Mapping[tuple[str, str], int]) -> dict[str, int]:
    return {
        "passages": len(found),
        "orphans": len(found.keys() - wanted.keys()),
        "missing": len(wanted.keys() - found.keys()),
        "twice": sum(times - 1 for times in found.values()),
    }
