"""Local models: the list, and which one the embedded provider selects."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.run.provenance import carried_settings, differing, one_model
from meta_agent_rag.errors import SettingsError
from meta_agent_rag.llm import local
from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.local import PACKAGED, decided, listed_model, local_models, own_model_file
from meta_agent_rag.llm.providers import choose_provider
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


def test_a_named_model_is_used_whether_it_fits_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "machine_memory", lambda: GB)
    downloaded("qwen2.5-7b")
    assert taken(embedded_model=" Qwen2.5-7B ") == "qwen2.5-7b"
    assert taken(embedded_model=PACKAGED) is None
    with pytest.raises(SettingsError, match=r"unknown model 'qwen'; choose from: auto, smollm2-135m, qwen2\.5-1\.5b"):
        taken(embedded_model="qwen")


def test_a_custom_model_file_takes_precedence(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.touch()
    chosen = settings(embedded_model="qwen3-4b", embedded_model_path=own)
    assert own_model_file(chosen) == embedded_model_file(chosen) == own
    assert choose_provider(chosen).models == {"flash": "own", "pro": "own"}
    assert decided(chosen) is chosen


def test_the_file_names_the_model_in_ledger_and_results() -> None:
    chosen = settings(embedded_model="qwen3-4b")
    with pytest.raises(SettingsError, match=r"'qwen3-4b' is not downloaded; run `marag models get qwen3-4b`"):
        embedded_model_file(chosen)
    downloaded("qwen3-4b")
    assert embedded_model_file(chosen).name == "Qwen3-4B-Instruct-2507-Q4_K_M.gguf"
    assert embedded_model_file(settings()) == embedded_model_file(chosen)
    assert set(choose_provider(chosen).models.values()) == {"Qwen3-4B-Instruct-2507-Q4_K_M"}


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
