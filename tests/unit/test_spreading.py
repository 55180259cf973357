"""What a shard on a node takes from the run, and what from the node."""

import os
import pickle
from pathlib import Path

import pytest
from pydantic import SecretStr

from benchmarks.run.provenance import changed_settings
from benchmarks.spreading.node import endpoint_keys, on_node
from benchmarks.spreading.shard_task import places
from meta_agent_rag.settings import Settings, lent_environment

RUN = ("LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=sk-run", "FLASH_MODEL=of-the-run", "TIERS=flash")
NODE = ("LLM_PROVIDER=openai", "DEEPSEEK_API_KEY=sk-node", "FLASH_MODEL=of-the-node", "RETRIEVAL_TOP_K=3")


def test_the_settings_of_the_run_replace_those_of_the_node(tmp_path: Path) -> None:
    run = Settings.load(RUN)
    found = on_node(run, Settings.load([*NODE, f"PROMPTS_DIR={tmp_path}", f"MARAG_DATA_DIR={tmp_path}"]))
    assert changed_settings(run.model_dump(mode="json"), found.model_dump(mode="json")) == []
    assert (found.flash_model, found.retrieval_top_k, found.prompts_dir) == ("of-the-run", 5, None)
    assert found.deepseek_api_key == SecretStr("sk-run")  # type: ignore[attr-defined]  # a field per provider
    assert found.marag_data_dir == tmp_path, "each node has its own"


def test_a_node_has_its_own_addresses_only_if_the_run_has_one() -> None:
    moved = ("LLM_BASE_URL=http://node:1/v1", "QDRANT_URL=http://node:6333", "ELASTICSEARCH_URL=http://node:9200")
    found = on_node(Settings.load([*RUN, "LLM_BASE_URL=http://run:1/v1"]), Settings.load([*NODE, *moved]))
    assert (found.llm_base_url, found.qdrant_url) == ("http://node:1/v1", None)
    assert on_node(Settings.load([*RUN, "LLM_BASE_URL=http://run:1/v1"]), Settings.load()).llm_base_url is not None


@pytest.mark.parametrize(
    ("run", "used"),
    [
        (RUN, True),
        (("DEEPSEEK_API_KEY=sk-run",), True),
        ((), False),
        (("LLM_PROVIDER=openai", "LLM_BASE_URL=http://run:1/v1", "LLM_API_KEY=sk-run"), False),
    ],
)
def test_a_key_of_the_node_is_used_unless_it_changes_the_provider(run: tuple[str, ...], used: bool) -> None:
    found = on_node(Settings.load(run), Settings.load(["OPENAI_API_KEY=sk-node"]))
    assert (found.secret("OPENAI_API_KEY") is not None) == used


def test_keys_of_endpoints_travel_with_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = tmp_path / "roles.yaml"
    roles.write_text("endpoints: {mine: {base_url: 'http://h:1/v1', model: m, key: MY_KEY}}\nroles: {critic: mine}\n")
    monkeypatch.setenv("MY_KEY", "sk-endpoint")
    settings = Settings.load([*RUN, f"MODEL_ROLES={roles}"])
    assert endpoint_keys(settings) == {"MY_KEY": SecretStr("sk-endpoint")}
    (task,) = places(tmp_path, tmp_path, [], 1, settings=settings)
    monkeypatch.setenv("MY_KEY", "sk-node")
    there = pickle.loads(pickle.dumps(task))
    assert there == task
    assert there.settings.model_fields_set == settings.model_fields_set
    with lent_environment({name: key.get_secret_value() for name, key in there.keys.items()}):
        assert there.settings.secret("MY_KEY") == SecretStr("sk-endpoint")
    assert os.environ["MY_KEY"] == "sk-node"
    assert "sk-" not in repr(task)
