"""Streamed replies: the same text, usage and errors as unstreamed ones."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from meta_agent_rag.errors import LostConnectionError
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.messages import Request, Sampling
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import ASK, Serve, in_turn, opened

WORDS = ServerReply(text="It was Goethe who wrote it.")
Seen = list[tuple[str, str]]


def keeping(seen: Seen) -> Callable[[Request, str], None]:
    return lambda request, text: seen.append((request.stage, text))


async def reply(model: LanguageModel, seen: Seen | None, **sampling: Any) -> Any:
    session = model.session(on_text=None if seen is None else keeping(seen))
    return await session.areply("write", ASK, sampling=Sampling(**sampling)), session.rows


async def test_the_text_grows_word_by_word(serve: Serve) -> None:
    server, seen = serve(always(WORDS)), list[tuple[str, str]]()
    async with opened(server) as model:
        got, _ = await reply(model, seen)
    assert got.text == WORDS.text
    assert seen[0] == ("write", "It ")
    assert seen[-1] == ("write", WORDS.text)
    assert all(later[1].startswith(earlier[1]) for earlier, later in pairwise(seen))


async def test_a_streamed_reply_has_the_same_text_and_cost(serve: Serve) -> None:
    server = serve(always(WORDS))
    async with opened(server) as model:
        whole, whole_rows = await reply(model, None)
        streamed, streamed_rows = await reply(model, [])
    assert streamed == whole
    assert streamed_rows[0].cost_usd == whole_rows[0].cost_usd
    assert streamed_rows[0].cache_hit_tokens == 60
    assert streamed_rows[0].request == whole_rows[0].request
    asked = [{name: body[name] for name in body if not name.startswith("stream")} for body in server.bodies]
    assert asked[0] == asked[1]
    assert not server.bodies[0]["stream"]
    assert server.bodies[1]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("wrong", [TypeError("no"), ValueError("no"), KeyError("no")])
async def test_an_error_of_the_listener_is_no_fault_of_the_server(serve: Serve, wrong: Exception) -> None:
    def failing(_request: Request, _text: str) -> None:
        raise wrong

    async with opened(serve(always(WORDS))) as model:
        with pytest.raises(type(wrong), match="no"):
            await model.session(on_text=failing).areply("write", ASK)


async def test_an_interrupted_stream_is_retried(serve: Serve) -> None:
    server, seen = serve(in_turn(replace(WORDS, wire="cut"), WORDS)), list[tuple[str, str]]()
    async with opened(server, llm_max_retries=1) as model:
        got, rows = await reply(model, seen)
    assert got.text == WORDS.text
    assert [row.error for row in rows] == [LostConnectionError.__name__, None]
    assert [text for _, text in seen].count("It ") == 2
