"""`marag ingest` and `marag corpora`, as a user sees them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from meta_agent_rag.cli.main import app
from tests.files import pdf, rows
from tests.forked import MARAG, forked


def marag(*words: str) -> Result:
    """Run `marag` in this process, with an encoder that needs no model."""
    return CliRunner().invoke(app, [*words], env={"ENCODER": "hash-64"})


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with three valid files."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf([["Lava is molten rock."], ["Basalt is cold lava."]], title="[Lava]"))
    (folder / "b.md").write_text("# Clouds\n\nClouds are many small droplets.\n")
    (folder / "c.jsonl").write_bytes(rows({"id": "fog", "title": "Fog", "text": "Fog is a low cloud."}))
    return folder


@pytest.mark.slow
def test_ingestion_continues_after_ctrl_c(docs: Path) -> None:
    (docs / "long.jsonl").write_bytes(
        rows(*({"id": f"p{number}", "title": "Lava", "text": f"Lava flow {number}. " * 30} for number in range(3_000)))
    )
    for attempt in range(5):
        corpus = f"notes-{attempt}"
        words = ["ingest", str(docs), "--corpus", corpus, "--set", "ENCODER=hash-64"]
        ingesting = forked(MARAG, words, os.environ, docs.parent)
        catalogue = docs.parent / "data" / "corpora" / corpus
        while not catalogue.exists() and ingesting.running:
            time.sleep(0.05)
        ingesting.send(signal.SIGINT)
        code = ingesting.ended()
        if code != 0:  # on a busy machine it may finish before the signal arrives
            break
    assert code == 130
    assert ingesting.err.read_text() == "Stopped. Finished work is kept; run the same command to continue.\n"
    again = marag("ingest", str(docs), "--corpus", corpus, "--json", "--set", "ENCODER=hash-64")
    assert again.exit_code == 0, again.output
    passages = {one["name"]: one["passages"] for one in json.loads(marag("corpora", "list", "--json").stdout)}
    assert passages[corpus] == 3_003


def test_file_names_cannot_inject_terminal_escapes(docs: Path) -> None:
    (docs / "e\x1b[31mred.txt").write_text("A text whose file name would colour the terminal.")
    result = marag("ingest", str(docs), "--corpus", "notes")
    assert "\x1b" not in result.output
    assert r"e\x1b[31mred.txt" in result.output
    assert "\x1b" not in marag("corpora", "show", "notes").output


def test_a_document_is_removed_and_ingested_again(docs: Path) -> None:
    marag("ingest", str(docs), "--corpus", "notes")
    listed = json.loads(marag("documents", "list", "--corpus", "notes", "--json").stdout)
    clouds = next(document for document in listed if document["title"] == "Clouds")
    refused = marag("documents", "drop", clouds["id"], "--corpus", "notes")
    assert (refused.exit_code, "add --yes" in refused.stderr) == (2, True)
    for said in (f"Removed {clouds['source']!r} with 1 passage.", "nothing to remove"):
        dropped = marag("documents", "drop", clouds["id"], "--corpus", "notes", "--yes")
        assert (dropped.exit_code, said in dropped.stdout) == (0, True), dropped.output
    assert marag("documents", "show", clouds["id"], "--corpus", "notes").exit_code == 2
    relative = os.path.relpath(docs / "a.pdf")
    assert "title: [Lava]" in marag("documents", "show", relative, "--corpus", "notes").stdout
    assert marag("ingest", str(docs), "--corpus", "notes").exit_code == 0
    assert json.loads(marag("documents", "list", "--corpus", "notes", "--json").stdout) == listed


def test_documents_are_shown_and_removed_by_title_or_file_name(docs: Path) -> None:
    (docs / "more").mkdir()
    (docs / "more" / "a.pdf").write_bytes(pdf([["Ash falls as rain does."]], title="Ash"))
    marag("ingest", str(docs), "--corpus", "notes")
    for name in ("clouds", "B.md", "clo"):
        assert "title: Clouds" in marag("documents", "show", name, "--corpus", "notes").stdout
    several = marag("documents", "drop", "a.pdf", "--corpus", "notes", "--yes")
    assert several.exit_code == 2
    assert str(docs / "a.pdf") in several.stderr
    assert str(docs / "more" / "a.pdf") in several.stderr
    missed = marag("documents", "drop", "clo", "--corpus", "notes", "--yes")
    assert (missed.exit_code, "did you mean 'b.md'?" in missed.stdout) == (0, True)
    assert marag("documents", "drop", "b.md", "--corpus", "notes", "--yes").exit_code == 0
    assert len(json.loads(marag("documents", "list", "--corpus", "notes", "--json").stdout)) == 3


@pytest.mark.slow
def test_a_broken_pipe_is_silent(docs: Path) -> None:
    (docs / "many.jsonl").write_bytes(
        rows(*({"id": f"p{number}", "title": f"Lava {number}", "text": "Lava."} for number in range(3_000)))
    )
    assert marag("ingest", str(docs), "--corpus", "notes").exit_code == 0
    for words in (["documents", "list", "--corpus", "notes"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "meta_agent_rag.cli.main", *words]
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(writer)
        assert (ended.returncode, ended.stderr) == (0, ""), words
