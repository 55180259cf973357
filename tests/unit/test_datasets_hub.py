"""The token and revision sent to the hub, recorded by a loopback hub."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from meta_agent_rag.datasets.hub import _commit
from tests.unit.test_datasets import with_an_unreachable_hub

ASK = """
import sys
from pydantic import SecretStr
from meta_agent_rag.datasets import HubAccess, load_questions
from meta_agent_rag.errors import DataFileError
try:
    load_questions("hotpotqa", access=HubAccess(token=SecretStr("hf-planted"), revision=sys.argv[1] or None))
except DataFileError as error:
    sys.exit(str(error))
"""


@pytest.mark.slow
def test_the_token_and_the_revision_reach_the_hub(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            asked.append((self.path, self.headers.get("authorization")))
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = with_an_unreachable_hub(ASK, tmp_path, "v1.1", hub=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert result.returncode == 1
    assert "hf-planted" not in result.stderr
    assert "at the revision 'v1.1' could not be loaded" in result.stderr
    about = [(path, key) for path, key in asked if "hotpot_qa" in path]
    assert about
    assert {key for _, key in about} == {"Bearer hf-planted"}
    assert all("v1.1" in path for path, _ in about)


def test_the_commit_is_read_from_the_file_urls() -> None:
    address = f"hf://datasets/hotpotqa/hotpot_qa@{'1f' * 20}/distractor/validation.parquet"
    assert _commit(SimpleNamespace(download_checksums={address: {}})) == "1f" * 20
    assert _commit(SimpleNamespace(download_checksums=None)) is None
