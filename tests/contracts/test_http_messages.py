"""Every error message of the service fits an HTTP client: one sentence that names no option, setting or internals."""

import json
import re
from pathlib import Path
from typing import Any

from tests.service import ASKED, CONTEXT, Running, running

FOREIGN = re.compile(r"--[a-z]|\bmarag [a-z]|\b[A-Z]{2,}_[A-Z_]+\b|\bpydantic\b|function-|Input should|\[type=|\.py\b")
"""Terms of the command line, the shell or the code, which mean nothing to an HTTP client."""

BODIES: tuple[tuple[str, object, str], ...] = (
    ("/v1/ask", {}, "The field 'question' is invalid: it is missing."),
    ("/v1/ask", {"question": 7}, "The field 'question' is invalid: it must be text."),
    ("/v1/ask", {**ASKED, "nope": 1}, "The field 'nope' is invalid: unknown field."),
    ("/v1/ask", [1], "The request is invalid: it must be an object."),
    ("/v1/ask", {**ASKED, "options": {"rounds": 1}}, "The field 'options.rounds' is invalid: unknown field."),
    ("/v1/ask", {**CONTEXT, "context": 7}, "The field 'context' is invalid: it must be a list."),
    ("/v1/ask", {**CONTEXT, "context": ["so", 7]}, "The field 'context.0' is invalid: it must be an object."),
    ("/v1/ask", {**CONTEXT, "context": [{"text": 3}]}, "The field 'context.0.text' is invalid: it must be text."),
    ("/v1/chat/completions", {}, "The field 'model' is invalid: it is missing."),
    (
        "/v1/chat/completions",
        {"model": "x", "messages": [{"role": "bad", "content": "x"}]},
        "The field 'messages.0.role' is invalid: it must be 'system', 'developer', 'user' or 'assistant'.",
    ),
)
RAW = (b"", b"{bad", b"\xff", b"null", b'"text"', b"[]", b'{"question": NaN}')


def message_of(body: dict[str, Any]) -> str:
    return str(body["error"]["message"])


async def test_a_field_is_described_in_words(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        for path, body, words in BODIES:
            response = await service.client.post(path, json=body)
            assert (response.status_code, message_of(response.json())) == (422, words)


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
