"""Several endpoints in one run: which is called for what, in which dialect, and what the run records."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from meta_agent_rag.testing.server import LoopbackServer, ServerReply, disagreeing, loopback_server
from tests.integration.test_runner import environment, in_process, lines, only_run, succeeded

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
    done = succeeded([*METHODS], env)
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


def test_the_run_and_its_record_have_no_secrets(role_servers: RoleServers, env: dict[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    assert in_process([*METHODS, "--record", str(kept)], env).exit_code == 0
    folder = only_run(tmp_path)
    whole = kept.read_text() + (folder / "config.json").read_text() + (folder / "calls.jsonl").read_text()
    for secret in ("sk-second-secret", "planted-header", "sk-planted-secret"):
        assert secret not in whole


def test_a_missing_key_is_reported_before_any_payment(
    role_servers: RoleServers, env: dict[str, str], tmp_path: Path
) -> None:
    del env["SECOND_KEY"]
    done = in_process([*METHODS], env)
    assert done.exit_code == 2
    assert "The model 'second' needs the key SECOND_KEY, which is not set" in done.stderr
    assert not role_servers.writer.bodies
    assert not (tmp_path / "RESULTS").exists()
