"""Every error message of the service fits an HTTP client: one sentence that names no option, setting or internals."""

import json
import re
from pathlib import Path
from typing import Any

from tests.service import Running, running

FOREIGN = re.compile(r"--[a-z]|\bmarag [a-z]|\b[A-Z]{2,}_[A-Z_]+\b|\bpydantic\b|function-|Input should|\[type=|\.py\b")
"""Terms of the command line, the shell or the code, which mean nothing to an HTTP client."""

RAW = (b"", b"{bad", b"\xff", b"null", b'"text"', b"[]", b'{"question": NaN}')


def message_of(body: dict[str, Any]) -> str:
    return str(body["error"]["message"])


async def test_any_invalid_request_gets_a_one_sentence_error(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        schema = (await service.client.get("/openapi.json")).json()
        said = [words async for words in refusals(service, schema)]
    assert len(said) > 40
    for words in said:
        assert words[0].isupper(), words
        assert words.endswith("."), words
        assert not FOREIGN.search(words), words


async def refusals(service: Running, schema: dict[str, Any]) -> Any:
    """Replies of the service to malformed bodies, wrong methods, and invalid values of every JSON field."""
    for path, methods in schema["paths"].items():
        address = re.sub(r"{[a-z_]+}", "nothing", path)
        response = await service.client.request("PATCH", address)
        assert response.status_code == 405
        yield message_of(response.json())
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            model = schema["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
            values: tuple[object, ...] = (None, [[]], "\x00", {})
            wrong = [json.dumps({name: value}).encode() for name in model["properties"] for value in values]
            for raw in (*RAW, *wrong):
                sent = await service.client.request(
                    method, address, content=raw, headers={"content-type": "application/json"}
                )
                assert sent.status_code >= 400, (method, address, raw)
                yield message_of(sent.json())
