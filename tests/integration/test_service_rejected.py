"""Rejected bodies leave a record of the field at fault, and none of their values."""

import asyncio
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.service.database import open_database
from meta_agent_rag.service.retention import latest
from tests.loop import settings_in
from tests.service import running

REJECTED: list[dict[str, Any]] = [
    {"question": "Who?", "api_key": "sk-abcdef-LEAK-1"},
    {"question": ["LEAK-2"]},
    {"question": "Who?", "session": "LEAK 3"},
    {"question": "Who?", "mode": "LEAK-4"},
    {"question": "Who?", "options": {"level": "LEAK-5", "LEAK": 1}},
    {"question": "LEAK-6" * 200},
]


async def test_no_value_of_a_rejected_body_is_stored(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as service:
        for body in REJECTED:
            refused = await service.client.post("/v1/ask", json=body)
            assert (refused.status_code, "LEAK-" in refused.text) == (422, False), refused.text
        assert (await service.client.post("/v1/ask", content=b'{"question": "LEAK-7')).status_code == 422
        form = await service.client.post("/v1/ask", data={"question": "LEAK-8"})
        assert form.status_code == 422
        chat = {"model": "films", "messages": [{"role": "user", "content": 1}], "tools": ["LEAK-9"]}
        assert (await service.client.post("/v1/chat/completions", json=chat)).status_code == 400
        files = [path for path in settings_in(tmp_path / "data").marag_data_dir.rglob("*") if path.is_file()]
        stored = b"".join(path.read_bytes() for path in files)
    assert b"invalid_request" in stored
    assert b"LEAK-" not in stored
    assert b"'input'" not in stored
    async with open_database(settings_in(tmp_path / "data")) as database:
        rows = await latest(database, 100)
    assert rows[0]["message"] == "RequestError: The field 'api_key' is invalid: unknown field."
    shown = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "tail"])
    assert "invalid_request: RequestError: The field 'api_key' is invalid" in " ".join(shown.stdout.split())
