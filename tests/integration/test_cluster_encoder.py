"""A cluster encodes like a single machine, even if a node is lost, for either kind of store."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pytest

from meta_agent_rag.errors import SettingsError, UnknownNameError
from meta_agent_rag.retrieval.corpus.catalogue import Catalogue
from meta_agent_rag.retrieval.encoders.cluster import encoded
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.open_retriever import open_encoder
from meta_agent_rag.settings import Settings
from tests.integration.test_spread import two_nodes

ROWS, NOTES = 6_000, 40
PASSAGES = ROWS + NOTES
SECONDS_TO_START = 120


def test_a_node_with_another_encoder_is_rejected() -> None:
    with pytest.raises(SettingsError, match="has the encoder 'all-MiniLM-L6-v2-int8' instead of 'all-MiniLM-L6-v2'"):
        encoded("all-MiniLM-L6-v2", "auto", ["Oslo lies by the sea."])


def test_a_node_computes_the_same_vectors_as_this_machine() -> None:
    texts = ["Oslo lies by the sea.", "Mira Holt was born there."]
    assert np.array_equal(encoded("hash-64", "auto", texts), HashEncoder().encode_passages(texts))


def test_an_unknown_engine_is_rejected() -> None:
    with pytest.raises(UnknownNameError, match="'spark'"):
        open_encoder(Settings.load(["ENCODER=hash-64"]), "spark")


def catalogue_file(data: Path) -> Path | None:
    return next((data / "corpora" / "made").glob("*/catalogue.sqlite"), None)


def vectors(data: Path) -> Any:
    """The vectors of all passages, by id."""
    file = catalogue_file(data)
    assert file is not None
    catalogue = Catalogue(file, 64)
    try:
        assert catalogue.counts()[1] == PASSAGES
        return np.concatenate([part.vectors for part in catalogue.parts()])
    finally:
        catalogue.close()


@pytest.mark.slow
def test_ingestion_completes_after_losing_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"id": f"p{number}", "title": f"Note {number}", "text": f"The harbour of town {number} has {number} boats."}
        for number in range(ROWS)
    ]
    made = tmp_path / "made"
    made.mkdir()
    (made / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number in range(NOTES):
        (made / f"note-{number:02}.md").write_text(f"# Harbour {number}\n\nThe pier of harbour {number} is stone.\n")
    (made / "broken.pdf").write_bytes(b"%PDF-1.7 torn")
    monkeypatch.setenv("ENCODER", "hash-64")
    found: dict[str, Any] = {}
    with two_nodes() as (cluster, nodes):
        for name, words in (("one", []), ("many", ["--engine", "ray"])):
            data = tmp_path / name
            env = {**os.environ, "MARAG_DATA_DIR": str(data), "RAY_ADDRESS": cluster.address}
            command = [sys.executable, "-m", "meta_agent_rag.cli.main", "ingest", "made", "--corpus", "made", *words]
            with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE, text=True) as process:
                started = time.monotonic()
                while words and catalogue_file(data) is None and time.monotonic() - started < SECONDS_TO_START:
                    time.sleep(0.01)
                if words:
                    cluster.remove_node(nodes[0], allow_graceful=False)
                _, err = process.communicate(timeout=240)
            assert process.returncode == 1, err  # because of the broken file
            assert "Traceback" not in err
            found[name] = vectors(data)
    assert np.array_equal(found["many"], found["one"])
