"""Damage to the files of an embedded corpus (truncated, overwritten, deleted): what a search finds and reports."""

import asyncio
import logging
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.corpus import open_corpus
from meta_agent_rag.retrieval.corpus.editing import ensure_corpus
from meta_agent_rag.retrieval.corpus.sample import sample_passages
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.settings import Settings

_CORPUS, _DIMENSION = "torn", 64
_HANG_SECONDS = 60.0
_FLIPS = 4
_CONTEXT = multiprocessing.get_context("fork")  # a separate start would take seconds, a thousand times


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("torn")(torn)


@reporting
def torn(
    passages: Annotated[int, typer.Option(min=8, help="Passages of the corpus.")] = 120,
    every: Annotated[int, typer.Option(min=1, help="Test one in N of all damages.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of which bytes are overwritten.")] = 0,
    json_: Json = False,
) -> None:
    """Damage each file of a corpus in turn, open the corpus and search it, each in a new process."""
    with tempfile.TemporaryDirectory() as name:
        result = _measured(Path(name), passages, every, random.Random(seed))
    if json_:
        print_json(result)
        return
    say(f"{result['files']} files, {sum(result['outcomes'].values())} damages:")
    for outcome, count in sorted(result["outcomes"].items()):
        say(f"  {outcome}: {count}")
    for line in result["worse"]:
        say(f"  {line}")


def _measured(home: Path, count: int, every: int, choice: random.Random) -> dict[str, Any]:
    whole, copy = home / "whole", home / "copy"
    for work in (_build, _found):
        kind, expected = _in_a_process(work, whole, count)
        if kind != "found":
            raise RuntimeError(f"The undamaged corpus: {kind} ({expected})")
    kept = _kept(whole)
    files = [whole / path for path in kept if _CORPUS in path.parts]
    outcomes: Counter[str] = Counter()
    worse = []
    damages = ((file, *damage) for file in files for damage in _damages(file, choice))
    for file, damage, content in islice(damages, 0, None, every):
        shutil.rmtree(copy, ignore_errors=True)
        _written(kept, copy)
        target = copy / file.relative_to(whole)
        if content is None:
            target.unlink()
        else:
            target.write_bytes(content)
        kind, found = _in_a_process(_found, copy, count)
        outcome = ("as before" if found == expected else "otherwise, silently") if kind == "found" else kind
        outcomes[outcome] += 1
        if outcome not in {"as before", "said"}:
            worse.append(f"{outcome}: {file.relative_to(whole / 'corpora')}, {damage}")
    return {"files": len(files), "passages": count, "outcomes": dict(outcomes), "worse": worse}


def _damages(file: Path, choice: random.Random) -> Iterator[tuple[str, bytes | None]]:
    content = file.read_bytes()
    size = len(content)
    used = len(content.rstrip(b"\0")) or size  # engines reserve more space than they use
    yield "gone", None
    for cut in sorted({0, 1, used // 4, used // 2, 3 * used // 4, used - 1} - {-1, size}):
        yield f"cut at byte {cut}", content[:cut]
    for at in sorted({choice.randrange(used) for _ in range(_FLIPS)}) if size else ():
        yield f"byte {at} overwritten", content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
    if size:
        yield "the second half zero", content[: used // 2] + bytes(size - used // 2)


def _kept(whole: Path) -> dict[Path, tuple[bytes, int]]:
    """Each file's bytes without trailing zeros, and its size: the dense index reserves 100 MB or more."""
    contents = ((path, path.read_bytes()) for path in sorted(whole.rglob("*")) if path.is_file())
    return {path.relative_to(whole): (content.rstrip(b"\0"), len(content)) for path, content in contents}


def _written(kept: Mapping[Path, tuple[bytes, int]], home: Path) -> None:
    for path, (used, size) in kept.items():
        target = home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(used)
        os.truncate(target, size)


def _build(home: Path, count: int) -> list[Any]:
    encoder = AsyncEncoder(HashEncoder(_DIMENSION))
    asyncio.run(ensure_corpus(Settings.load(marag_data_dir=home), _CORPUS, sample_passages()[:count], encoder))
    return []


def _found(home: Path, count: int) -> list[Any]:
    return asyncio.run(_searched(home, sample_passages()[: count : max(1, count // 20)]))


async def _searched(home: Path, asked: Sequence[Passage]) -> list[Any]:
    """What both indexes return for a few titles, and everything that they contain."""
    encoder = AsyncEncoder(HashEncoder(_DIMENSION))
    settings = Settings.load(marag_data_dir=home)
    async with open_corpus(settings, _CORPUS, encoder.name, _DIMENSION) as corpus:
        vectors = await encoder.queries([one.title for one in asked])
        found: list[Any] = []
        for one, vector in zip(asked, vectors, strict=True):
            dense, lexical = await corpus.dense.search(vector, 10), await corpus.lexical.search(one.title, 10)
            found.append([(hit.passage.id, hit.passage.text) for hit in (*dense, *lexical)])
        found.append(sorted([passage.id async for passage in corpus.dense.scan()]))
        found.append(sorted([passage.id async for passage in corpus.lexical.scan()]))
        return found


def _in_a_process(work: Any, home: Path, count: int) -> tuple[str, Any]:
    """The outcome: results (`found`), a refusal with a message (`said`), or an exception, a crash or a hang."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_report_run, args=(work, home, count, sender))
    process.start()
    sender.close()
    try:
        outcome = receiver.recv() if receiver.poll(_HANG_SECONDS) else ("hangs", None)
    except EOFError:
        outcome = ("the process died", None)
    process.kill()
    process.join()
    return outcome


def _report_run(work: Any, home: Path, count: int, sender: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    logging.disable()
    try:
        sender.send(("found", work(home, count)))
    except MetaRagError as error:
        sender.send(("said", str(error)))
    except BaseException as error:  # noqa: BLE001  # an engine's panic is one too
        sender.send((f"raised {type(error).__name__}", str(error)[:200]))
