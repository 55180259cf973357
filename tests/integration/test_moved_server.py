"""A model server at another URL: which cached replies are still found."""

import pytest

from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, always, loopback_server
from tests.loopback import ASK, GOOD, Answer

LLAMA = {"vocab_type": 2, "n_vocab": 151936, "n_ctx_train": 32768, "n_params": 1777088000, "size": 1111370240}
VLLM = {"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": 32768, "permission": []}


def settings(server: LoopbackServer) -> Settings:
    return Settings.load(llm_base_url=server.base_url, flash_model="m")


async def answered_from_cache(server: LoopbackServer) -> bool:
    """Ask once; returns whether the cache answered."""
    async with open_language_model(settings(server)) as model:
        session = model.session()
        assert await session.ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
        return session.rows[0].cached


@pytest.mark.parametrize(
    ("first", "second", "known"),
    [
        ({"id": "m", "meta": {**LLAMA, "n_ctx": 4096}}, {"id": "m", "meta": {**LLAMA, "n_ctx": 8192}}, True),
        ({"id": "m", "meta": LLAMA}, {"id": "m", "meta": {**LLAMA, "size": 1}}, False),
        ({**VLLM, "root": "/scratch/a/Qwen3"}, {**VLLM, "root": "/scratch/b/Qwen3", "created": 5}, True),
        ({**VLLM, "root": "Qwen3"}, {**VLLM, "root": "Qwen3-Instruct"}, False),
        ({"id": "other", "meta": LLAMA}, {"id": "another", "meta": LLAMA}, True),  # the only model, under an alias
    ],
)
async def test_a_cached_reply_is_found_for_the_same_weights(
    first: dict[str, object], second: dict[str, object], known: bool
) -> None:
    with loopback_server(always(GOOD)) as one, loopback_server(always(GOOD)) as other:
        one.listing, other.listing = (ServerReply(body={"data": [row]}) for row in (first, second))
        assert not await answered_from_cache(one)
        assert await answered_from_cache(one)
        assert await answered_from_cache(other) == known


@pytest.mark.parametrize("listing", [ServerReply(status=404), ServerReply(body={"data": [3, None]})])
async def test_a_server_without_metadata_is_identified_by_provider_and_model(listing: ServerReply) -> None:
    with loopback_server(always(GOOD)) as one, loopback_server(always(GOOD)) as other:
        one.listing = other.listing = listing
        assert not await answered_from_cache(one)
        assert await answered_from_cache(other)


async def test_a_loading_server_is_asked_for_its_models_again() -> None:
    with loopback_server(always(GOOD)) as server:
        server.listing = ServerReply(status=503)
        async with open_language_model(settings(server)) as model:
            before = await identity(model)
            server.listing = ServerReply(body={"data": [{"id": "m", "meta": LLAMA}]})
            assert await identity(model) != before == server.base_url


async def identity(model: LanguageModel) -> str:
    return (await model.connections.to(model.choice.tiers["flash"])).identity
