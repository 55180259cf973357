"""What a shard takes from the run and what from its node, and what all shards together may spend."""

import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from benchmarks.run.config import RunConfig, RunOptions
from benchmarks.run.on_ray import ShardOutcome, ShardTask, carried_out, on_node, tasks_of
from benchmarks.run.provenance import changed_settings
from meta_agent_rag.settings import Settings, lent_environment

RUN = ("LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=sk-run", "FLASH_MODEL=of-the-run", "TIERS=flash")
NODE = ("LLM_PROVIDER=openai", "DEEPSEEK_API_KEY=sk-node", "FLASH_MODEL=of-the-node", "RETRIEVAL_TOP_K=3")


def tasks(folder: Path, count: int, settings: Settings) -> list[ShardTask]:
    config = RunConfig(dataset="sample", mode="gold", methods=("metarag",), n=6, settings=settings)
    return tasks_of(config, RunOptions(), folder, count)


def test_the_settings_of_the_run_replace_those_of_the_node(tmp_path: Path) -> None:
    run = Settings.load(RUN)
    found = on_node(run, Settings.load([*NODE, f"PROMPTS_DIR={tmp_path}", f"MARAG_DATA_DIR={tmp_path}"]))
    assert changed_settings(run.model_dump(mode="json"), found.model_dump(mode="json")) == []
    assert (found.flash_model, found.retrieval_top_k, found.prompts_dir) == ("of-the-run", 5, None)
    assert found.deepseek_api_key == SecretStr("sk-run")  # type: ignore[attr-defined]  # a field per provider
    assert found.marag_data_dir == tmp_path, "each node has its own"


def test_a_node_has_its_own_addresses_only_if_the_run_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Settings.load([*RUN, "LLM_BASE_URL=http://run:1/v1"])
    with lent_environment({"LLM_BASE_URL": "http://node:1/v1", "QDRANT_URL": "http://node:6333"}):
        found = on_node(run, Settings.load(NODE))
    assert (found.llm_base_url, found.qdrant_url) == ("http://node:1/v1", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("LLM_BASE_URL=http://of-the-start-folder:1/v1")
    assert on_node(run, Settings.load()).llm_base_url == "http://run:1/v1"


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
    (task,) = tasks(tmp_path, 1, Settings.load([*RUN, f"MODEL_ROLES={roles}"]))
    monkeypatch.setenv("MY_KEY", "sk-node")
    there = pickle.loads(pickle.dumps(task))
    assert there == task
    assert there.config.settings.model_fields_set == task.config.settings.model_fields_set
    with lent_environment({name: key.get_secret_value() for name, key in there.keys.items()}):
        assert there.config.settings.secret("MY_KEY") == SecretStr("sk-endpoint")
    assert os.environ["MY_KEY"] == "sk-node"
    assert "sk-" not in repr(task)


Call = tuple[Decimal, Decimal]
"""What a call could cost at most, and what it costs."""


class Shards:
    """Shards that make calls as long as the limit in their settings allows, in place of an engine."""

    def __init__(self, calls: Sequence[Sequence[Call]], folder: Path) -> None:
        self.tasks = tasks(folder, len(calls), Settings.load(RUN))
        self.calls = {task.shard: list(own) for task, own in zip(self.tasks, calls, strict=True)}
        self.spent = dict.fromkeys(self.calls, Decimal(0))
        self.rounds: list[list[str]] = []
        self.nodes: list[list[str]] = []

    def carry_out(self, tasks: Sequence[ShardTask]) -> list[ShardOutcome]:
        self.rounds.append([task.shard for task in tasks])
        self.nodes.append([task.node for task in tasks])
        return [self._worked(task) for task in reversed(tasks)]

    def _worked(self, task: ShardTask) -> ShardOutcome:
        limit, calls = task.config.settings.cost_limit_usd, self.calls[task.shard]
        while calls and (limit is None or self.spent[task.shard] + calls[0][0] <= Decimal(str(limit))):
            self.spent[task.shard] += calls.pop(0)[1]
        return ShardOutcome(shard=task.shard, at_limit=bool(calls), node=f"node of {task.shard}")

    def run(self, limit: float | None) -> list[bool]:
        outcomes = carried_out(self.tasks, self.carry_out, limit, lambda task: self.spent[task.shard])
        assert [outcome.shard for outcome in outcomes] == list(self.calls)
        return [outcome.at_limit for outcome in outcomes]


def calls(cents: int, count: int, *, at_most: int = 2) -> list[Call]:
    return [(Decimal(cents * at_most) / 100, Decimal(cents) / 100)] * count


def test_an_expensive_shard_gets_what_the_others_leave_over_on_its_node(tmp_path: Path) -> None:
    shards = Shards([calls(1, 1), calls(3, 3), calls(1, 1)], tmp_path)
    assert shards.run(0.15) == [False] * 3
    assert sum(shards.spent.values()) == Decimal("0.11")
    assert shards.rounds == [["1/3", "2/3", "3/3"], ["2/3"]]
    assert shards.nodes == [["", "", ""], ["node of 2/3"]]


def test_shares_that_are_too_small_for_a_call_are_joined(tmp_path: Path) -> None:
    shards = Shards([calls(4, 1, at_most=1)] * 4, tmp_path)
    assert shards.run(0.12) == [False, False, False, True]
    assert sum(shards.spent.values()) == Decimal("0.12")
    assert shards.run(0.12) == [False, False, False, True], "a spent limit allows nothing more"
    assert shards.run(0.16) == [False] * 4, "a higher one continues"


def test_a_shard_that_failed_is_not_repeated(tmp_path: Path) -> None:
    shards = Shards([calls(1, 1), calls(3, 3)], tmp_path)
    outcomes = carried_out(
        shards.tasks,
        lambda tasks: [replace(one, at_limit=False, error="lost") for one in shards.carry_out(tasks)],
        0.1,
        lambda task: shards.spent[task.shard],
    )
    assert [outcome.error for outcome in outcomes] == ["lost", "lost"]
    assert len(shards.rounds) == 1


_CALL = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
    lambda both: (Decimal(max(both)) / 1000, Decimal(min(both)) / 1000)
)


@given(given_calls=st.lists(st.lists(_CALL, max_size=6), min_size=1, max_size=6), mills=st.integers(1, 400))
def test_the_limit_holds_for_all_shards_together(given_calls: list[list[Call]], mills: int) -> None:
    shards = Shards(given_calls, Path("nowhere"))
    limit = Decimal(mills) / 1000
    at_limit = shards.run(float(limit))
    assert sum(shards.spent.values()) <= limit
    left = limit - sum(shards.spent.values())
    first = next((own[0][0] for own in shards.calls.values() if own), None)
    assert first is None or left < first, "what is left is too little for the next call"
    assert any(at_limit) == (first is not None)
