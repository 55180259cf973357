"""A run or an ingestion killed at random moments ends as an uninterrupted one does, and pays for nothing twice."""

import asyncio
import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from meta_agent_rag.retrieval.corpus.corpus import open_corpus, read_documents
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import LoopbackServer, disagreeing, loopback_server
from tests.forked import MARAG, RUNNER, forked
from tests.integration.test_runner import command, environment, lines, only_run, succeeded, summary_of

pytestmark = pytest.mark.slow

KILLS = 10
WORDS = ("--n", "12", "--concurrency", "2", "--method", "metarag,standard_rag")


def run_and_kill(
    words: list[str], env: dict[str, str], folder: Path, server: LoopbackServer, chance: random.Random
) -> bool:
    """Start a run and kill it after a random number of calls and delay; returns whether it was still running."""
    until = len(server.bodies) + chance.randint(0, 3)
    child = forked(RUNNER, words, env, folder)
    started = time.monotonic()
    while child.running and len(server.bodies) <= until and time.monotonic() - started < 60:
        time.sleep(0.002)
    time.sleep(chance.random() * 0.06)
    return child.killed()


def test_kills_change_no_result_and_add_no_cost(tmp_path: Path) -> None:
    chance = random.Random(4812)
    with loopback_server(disagreeing(0.03)) as server:
        env = environment(server.base_url, tmp_path / "data")
        words, kills = [*WORDS], 0
        for _ in range(KILLS):
            kills += run_and_kill(command(*words), env, tmp_path, server, chance)
            folder = only_run(tmp_path)
            words = ["--resume", folder.name, "--concurrency", "2"]
            with (folder / "samples.jsonl").open("ab") as file:  # as left by a kill during a write
                file.write(b'{"id": "torn')
        assert kills >= KILLS - 1, "nearly every kill must interrupt a running process"
        succeeded(words, env)
        broken = only_run(tmp_path)
        asked = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
        succeeded([*WORDS, "--output-dir", "WHOLE"], env)
        assert sum(asked.values()) == len(server.bodies), "the uninterrupted run finds every reply in the cache"
    (whole,) = (tmp_path / "WHOLE").iterdir()
    assert summary_of(broken) == summary_of(whole)
    assert len({(row["id"], row["method"]) for row in lines(broken / "samples.jsonl")}) == 24
    received = Counter(
        row["request"] for row in lines(broken / "calls.jsonl") if not row["cached"] and not row["error"]
    )
    assert set(received.values()) == {1}, "a reply that was received is never paid for again"
    assert sum(asked.values()) - len(asked) <= 2 * KILLS, "only calls in progress at a kill are repeated"


def test_kills_of_ingest_lose_no_document_that_was_there(tmp_path: Path) -> None:
    chance, notes, data = random.Random(4812), tmp_path / "notes", tmp_path / "data"
    notes.mkdir()
    env = {**os.environ, "MARAG_DATA_DIR": str(data), "ENCODER": "hash-64"}
    words = ["ingest", str(notes), "--corpus", "notes"]
    settings, held = Settings.load(marag_data_dir=data, encoder="hash-64"), dict[str, str]()
    for number in range(KILLS):
        for note in range(20 * number, 20 * number + 20):
            (notes / f"{note}.md").write_text(
                f"# Note {note}\n\nThe lamp of tower {note} was lit in 18{note % 90 + 10}.\n"
            )
        child = forked(MARAG, words, env, tmp_path)
        time.sleep(chance.uniform(0.1, 4.0))
        child.killed()
        if (data / "corpora" / "notes" / "manifest.json").exists():
            now = {one.id: one.content_hash for one in read_documents(data, "notes")}
            assert held.items() <= now.items()
            held = now
    assert forked(MARAG, words, env, tmp_path).ended() == 0
    documents = read_documents(data, "notes")
    assert len(documents) == 20 * KILLS
    assert {one.passages for one in documents} == {1}
    assert asyncio.run(_found(settings, "lamp")) == (20 * KILLS, 20 * KILLS)


async def _found(settings: Settings, word: str) -> tuple[int, int]:
    """How many passages each index finds."""
    async with open_corpus(settings, "notes", "hash-64", 64) as corpus:
        view = await corpus.view()
        near = await view.nearest(HashEncoder().encode_queries([word])[0], 999)
        return len(await view.matching(word, 999)), len(near)
