"""A listed model in use: it answers under its own name, and a run keeps using it."""

from pathlib import Path

import pytest

from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.local import local_models
from meta_agent_rag.llm.messages import Message
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.settings import Settings

pytest.importorskip("xllamacpp")
SMALL, LARGE = "qwen2.5-1.5b", "qwen2.5-7b"
STEM = "qwen2.5-1.5b-instruct-q4_k_m"


def downloaded(name: str) -> Path:
    """A listed model, with the weights of the packaged one."""
    packaged = embedded_model_file(Settings.load(["EMBEDDED_MODEL=smollm2-135m"]))
    file = local_models()[name].path(Settings.load())
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(packaged)
    return file


async def test_the_model_chosen_by_auto_answers_under_its_own_name() -> None:
    downloaded(SMALL)
    settings = Settings.load((), llm_provider="embedded", response_cache=False, embedded_context_tokens=2_048)
    async with open_language_model(settings) as model:
        downloaded(LARGE)  # a model downloaded later is not used
        session = model.session()
        await session.areply("look_up", [Message(role="user", content="Say yes.")])
        identity = (await model.connections.to(model.choice.tiers["flash"])).identity
    (row,) = session.rows
    assert (row.provider, row.model, row.error) == ("embedded", STEM, None)
    assert row.completion_tokens
    assert identity.startswith(f"embedded:{STEM}-")
