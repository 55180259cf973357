"""A loopback server that mimics the Hugging Face hub: it serves one file and records requests."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from meta_agent_rag.llm.local import LocalModel

WEIGHTS = bytes(range(256)) * 2048
"""Half a megabyte standing in for a model file."""
CHUNK = 1 << 14
"""The client's write size, since its default of 10 MB exceeds the whole file here."""


def model(**changes: Any) -> LocalModel:
    """A listed model whose file is `WEIGHTS`."""
    fields: dict[str, Any] = {
        "name": "tiny",
        "repository": "someone/tiny-GGUF",
        "file": "tiny.gguf",
        "revision": "1f" * 20,
        "bytes": len(WEIGHTS),
        "sha256": hashlib.sha256(WEIGHTS).hexdigest(),
        "licence": "Apache-2.0",
        "parameters": 1.5,
        "attention": (28, 2, 128),
    }
    return LocalModel(**{**fields, **changes})


@dataclass(kw_only=True)
class Hub:
    """What the server sends, and the requests it received.

    `stops` are positions in the file after which the connection breaks, one for each GET; `held` keeps it open instead
    until it is set.
    """

    url: str = ""
    content: bytes = WEIGHTS
    sha256: str = hashlib.sha256(WEIGHTS).hexdigest()
    status: int = 200
    stops: list[int] = field(default_factory=list)
    held: threading.Event | None = None
    elsewhere: str | None = None
    """The server that holds the file; like the hub, this one states its SHA-256 and redirects the client there."""
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and authorization."""
    ranges: list[str | None] = field(default_factory=list)

    @property
    def downloads(self) -> int:
        """How often the file itself was requested, not only its metadata."""
        return sum(method == "GET" for method, _, _ in self.asked)


@contextmanager
def loopback_hub() -> Iterator[Hub]:
    """Run a hub on a free port."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # the library's name
            hub.asked.append(("HEAD", self.path, self.headers.get("authorization")))
            if hub.elsewhere is not None:
                return self._sent_on()
            return self._head(hub.status, len(hub.content))

        def do_GET(self) -> None:  # the library's name
            if "/resolve/" not in self.path:  # the client's other metadata requests
                return self.send_error(404)
            hub.asked.append(("GET", self.path, self.headers.get("authorization")))
            if hub.elsewhere is not None:
                return self._sent_on()
            wanted = self.headers.get("range")
            hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            stop = hub.stops.pop(0) if hub.stops else len(hub.content)
            self._head(206 if wanted else 200, len(hub.content) - start, start)
            self.wfile.write(hub.content[start : max(start, stop)])
            self.wfile.flush()
            if hub.held is not None and stop < len(hub.content):
                hub.held.wait(60)
            self.close_connection = True
            return None

        def _sent_on(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"{hub.elsewhere}{self.path}")
            self.send_header("X-Linked-Etag", f'"{hub.sha256}"')
            self.send_header("X-Linked-Size", str(len(hub.content)))
            self.send_header("X-Repo-Commit", "1f" * 20)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _head(self, status: int, length: int, start: int = 0) -> None:
            self.send_response(status)
            self.send_header("ETag", f'"{hub.sha256}"')
            self.send_header("X-Repo-Commit", "1f" * 20)
            self.send_header("Content-Length", str(length))
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hub
        server.shutdown()


def point_at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point this process's hub client at another hub; it reads HF_ENDPOINT only once, on import."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)
