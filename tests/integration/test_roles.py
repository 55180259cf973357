"""Several endpoints in one run: which is called for what, in which dialect, and what the run records."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from meta_agent_rag.testing.server import LoopbackServer, ServerReply, disagreeing, loopback_server
from tests.integration.test_runner import environment, in_process, lines, only_run

METHODS = ("--method", "metarag,standard_rag", "--n", "2", "--judge")


@dataclass(frozen=True, kw_only=True)
class RoleServers:
    """A writer that speaks DeepSeek's dialect, a critic that speaks OpenAI's, and a judge on llama.cpp's server."""

    writer: LoopbackServer
    critic: LoopbackServer
    judge: LoopbackServer

    def roles(self, folder: Path, **judge: Any) -> Path:
        """Write the file that maps the endpoints to roles; other roles use the tiers."""
        endpoints = {
            "second": {"provider": "openai", "base_url": self.critic.base_url, "model": "gpt-4.1", "key": "SECOND_KEY"},
            "impartial": {
                "provider": "llama_server",
                "base_url": self.judge.base_url,
                "model": "judge-7b",
                "headers": {"X-Team": "planted-header"},
                "body": {"top_k": 1},
                **judge,
            },
        }
        roles = {"critic": "second", "second_route": "second", "judge": "impartial"}
        file = folder / "roles.yaml"
        file.write_text(yaml.safe_dump({"endpoints": endpoints, "roles": roles}))
        return file


@pytest.fixture
def role_servers() -> Iterator[RoleServers]:
    with (
        loopback_server(disagreeing()) as writer,
        loopback_server(disagreeing()) as critic,
        loopback_server(disagreeing()) as judge,
    ):
        judge.listing = ServerReply(body={"data": [{"id": "judge-7b", "meta": {"n_params": 7, "n_ctx": 4096}}]})
        yield RoleServers(writer=writer, critic=critic, judge=judge)


@pytest.fixture
def env(role_servers: RoleServers, tmp_path: Path) -> dict[str, str]:
    own = {"MODEL_ROLES": str(role_servers.roles(tmp_path)), "SECOND_KEY": "sk-second-secret"}
    return {**environment(role_servers.writer.base_url, tmp_path / "data"), **own}


@pytest.mark.slow
def test_each_endpoint_is_called_in_its_own_dialect(
    role_servers: RoleServers, env: dict[str, str], tmp_path: Path
) -> None:
    done = in_process([*METHODS], env)
    assert done.exit_code == 0, done.output
    assert "deepseek-v4-flash at 127.0.0.1:" in done.stderr
    assert "critic: gpt-4.1 at 127.0.0.1:" in done.stderr
    calls = lines(only_run(tmp_path) / "calls.jsonl")
    served = {(call["role"], call["provider"], call["endpoint"], call["model"]) for call in calls}
    assert served == {
        ("writer", "deepseek", "flash", "deepseek-v4-flash"),
        ("critic", "openai", "second", "gpt-4.1"),
        ("second_route", "openai", "second", "gpt-4.1"),
        ("judge", "llama_server", "impartial", "judge-7b"),
    }
    assert all(body["thinking"] == {"type": "disabled"} and "max_tokens" in body for body in role_servers.writer.bodies)
    assert all("max_completion_tokens" in body and "max_tokens" not in body for body in role_servers.critic.bodies)
    assert all(body["response_format"] == {"type": "json_object"} for body in role_servers.critic.bodies)
    assert all(
        body["response_format"]["type"] == "json_schema" and body["top_k"] == 1 for body in role_servers.judge.bodies
    )
    asked = {"deepseek": role_servers.writer, "openai": role_servers.critic, "llama_server": role_servers.judge}
    paid = {name: [call for call in calls if call["provider"] == name and not call["cached"]] for name in asked}
    assert {name: len(server.bodies) for name, server in asked.items()} == {name: len(of) for name, of in paid.items()}
    assert all(call["cost_usd"] is not None for call in (*paid["deepseek"], *paid["openai"]))
    assert all(call["cost_usd"] is None for call in paid["llama_server"])


def test_the_run_and_its_record_name_the_endpoints_without_secrets(
    role_servers: RoleServers, env: dict[str, str], tmp_path: Path
) -> None:
    kept = tmp_path / "run.jsonl"
    assert in_process([*METHODS, "--record", str(kept)], env).exit_code == 0
    folder = only_run(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    head = json.loads(kept.read_text().splitlines()[0])["run"]
    for reported in (config["endpoints"], head["endpoints"]):
        assert {role: (one["provider"], one["model"]) for role, one in reported.items()} == {
            "writer": ("deepseek", "deepseek-v4-flash"),
            "look_up": ("deepseek", "deepseek-v4-flash"),
            "second_route": ("openai", "gpt-4.1"),
            "critic": ("openai", "gpt-4.1"),
            "judge": ("llama_server", "judge-7b"),
        }
        assert reported["judge"]["identity"].startswith("llama_server:")
    whole = kept.read_text() + (folder / "config.json").read_text() + (folder / "calls.jsonl").read_text()
    for secret in ("sk-second-secret", "planted-header", "sk-planted-secret"):
        assert secret not in whole


def test_a_cost_limit_needs_the_prices_of_what_each_row_calls(env: dict[str, str]) -> None:
    unpriced = {**env, "MODEL_ROLES": "critic=groq:unknown-x", "GROQ_API_KEY": "k"}
    words = ["--n", "1", "--cost-limit", "5"]
    done = in_process([*words, "--method", "standard_rag"], unpriced)
    assert done.exit_code == 0, done.output
    assert in_process([*words, "--method", "standard_rag,metarag"], unpriced).exit_code == 2, "the loop has a critic"
    sweep = ["--method", "standard_rag", "--sweep", "FLASH_MODEL=deepseek-v4-flash,unknown-x"]
    swept = in_process([*words, *sweep], {**env, "MODEL_ROLES": ""})
    assert swept.exit_code == 2
    assert "the price of unknown-x is unknown" in swept.stderr


@pytest.mark.parametrize("method", ["metarag", "standard_rag"])
def test_a_cost_limit_needs_every_price_before_anything_is_paid(
    role_servers: RoleServers, env: dict[str, str], tmp_path: Path, method: str
) -> None:
    unpriced = {"MODEL_ROLES": str(role_servers.roles(tmp_path, provider="compatible"))}
    words = ["--method", method, "--n", "1", "--judge", "--cost-limit", "5"]
    done = in_process(words, {**env, **unpriced})
    assert done.exit_code == 2
    assert "A cost limit needs prices, but the price of judge-7b is unknown" in done.stderr
    assert "`prices: free` in MODEL_ROLES" in done.stderr
    assert role_servers.writer.bodies == role_servers.judge.bodies == []
    role_servers.roles(tmp_path, provider="compatible", prices="free")
    done = in_process(words, {**env, **unpriced})
    assert done.exit_code == 0, done.output
    calls = lines(only_run(tmp_path) / "calls.jsonl")
    assert {call["model"]: float(call["cost_usd"]) > 0 for call in calls}["judge-7b"] is False
    assert json.loads((only_run(tmp_path) / "summary.json").read_text())["methods"][method]["cost_usd"] > 0


@pytest.mark.slow
def test_every_table_of_a_mixed_run_has_a_caveat(env: dict[str, str], tmp_path: Path) -> None:
    assert in_process([*METHODS], env).exit_code == 0
    folder = only_run(tmp_path)
    models = {name: found["models"] for name, found in summary(folder)["methods"].items()}
    assert models["standard_rag"] == {"deepseek-v4-flash": 2}
    assert set(models["metarag"]) == {"deepseek-v4-flash", "gpt-4.1"}
    report = (folder / "report.md").read_text()
    assert "**Mixed models**: " in report
    assert "standard_rag: deepseek-v4-flash (2)" in report
    ours = [file for file in (folder / "tables").glob("*.csv") if not file.stem.startswith("published")]
    assert len(ours) >= 5
    for file in ours:
        head, *cells = csv.reader(file.read_text().splitlines())
        assert (head[-1], {line[-1] for line in cells}) == ("caveat", {"mixed models"}), file.name


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.mark.slow
def test_a_resumed_run_accepts_its_judge_on_another_node_but_no_other_judge(
    role_servers: RoleServers, env: dict[str, str], tmp_path: Path
) -> None:
    assert in_process([*METHODS], env).exit_code == 0
    again = ["--resume", str(only_run(tmp_path)), "--set", f"MODEL_ROLES={env['MODEL_ROLES']}"]
    with loopback_server(disagreeing()) as node:
        node.listing = role_servers.judge.listing
        moved = RoleServers(writer=role_servers.writer, critic=role_servers.critic, judge=node)
        moved.roles(tmp_path, concurrency=8, context=4096)
        done = in_process(again, env)
        assert done.exit_code == 2, "evidence is cut to the context window, which affects answers"
        moved.roles(tmp_path, concurrency=8)
        assert in_process(again, env).exit_code == 0
        assert not node.bodies, "everything had been answered"
        node.listing = ServerReply(body={"data": [{"id": "judge-7b", "meta": {"n_params": 8}}]})
        done = in_process(again, env)
    assert done.exit_code == 2
    assert "different endpoints" in done.stderr
    role_servers.roles(tmp_path, model="judge-8b")
    done = in_process(again, env)
    assert done.exit_code == 2
    assert "different values of MODEL_ROLES" in done.stderr


def test_a_missing_key_is_reported_before_any_payment(
    role_servers: RoleServers, env: dict[str, str], tmp_path: Path
) -> None:
    del env["SECOND_KEY"]
    done = in_process([*METHODS], env)
    assert done.exit_code == 2
    assert "The model 'second' needs the key SECOND_KEY, which is not set" in done.stderr
    assert not role_servers.writer.bodies
    assert not (tmp_path / "RESULTS").exists()
