"""Local models: the list, and which one the embedded provider selects."""

from typing import Any

import pytest

from benchmarks.run.provenance import carried_settings, differing, one_model
from meta_agent_rag.llm import local
from meta_agent_rag.llm.local import listed_model, local_models
from meta_agent_rag.settings import Settings

GB = 10**9


def settings(**values: object) -> Settings:
    return Settings.load((), llm_provider="embedded", **values)


def downloaded(*names: str) -> None:
    for name in names:
        file = local_models()[name].path(Settings.load())
        file.parent.mkdir(exist_ok=True)
        file.touch()


def taken(**values: object) -> str | None:
    model = listed_model(settings(**values))
    return None if model is None else model.name


def test_auto_selects_the_largest_downloaded_model_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken() is None
    downloaded("qwen2.5-7b", "qwen2.5-1.5b", "smollm2-1.7b")
    for memory_gb, name, tokens in (
        (100, "qwen2.5-7b", 8192),
        (7, "smollm2-1.7b", 8192),
        (5, "qwen2.5-1.5b", 8192),
        (5, "smollm2-1.7b", 1024),
        (2, None, 8192),
    ):
        monkeypatch.setattr(local, "machine_memory", lambda memory_gb=memory_gb: memory_gb * GB)
        assert taken(embedded_context_tokens=tokens) == name
    monkeypatch.setattr(local, "machine_memory", lambda: None)
    assert taken() == "qwen2.5-7b"


def as_json(one: Settings) -> dict[str, Any]:
    return one.model_dump(mode="json")


def run_with(one: Settings) -> dict[str, Any]:
    return {"dataset": {}, "provider": {}, "settings": as_json(one)}


def test_a_run_keeps_the_model_that_auto_selected_at_its_start() -> None:
    downloaded("qwen2.5-1.5b")
    begun = one_model(settings())
    assert begun.embedded_model == "qwen2.5-1.5b"
    downloaded("qwen2.5-7b")
    assert taken() == "qwen2.5-7b"
    resumed = carried_settings(settings(), as_json(begun), frozenset())
    assert resumed.embedded_model == "qwen2.5-1.5b"
    assert differing(run_with(begun), run_with(resumed)) == []
    given = frozenset({"embedded_model"})
    other = carried_settings(settings(embedded_model="qwen2.5-7b"), as_json(begun), given)
    assert differing(run_with(begun), run_with(other)) == ["EMBEDDED_MODEL"]
