"""Which endpoint serves a stage, for every way of configuring it."""

from pathlib import Path

import pytest
import yaml

from meta_agent_rag.errors import SettingsError, UnknownNameError
from meta_agent_rag.llm.providers import Endpoint, choose_provider
from meta_agent_rag.llm.stages import check_stages, serving, stage
from meta_agent_rag.settings import Settings

SECRET = "sk-0123456789-very-secret"
NODE = "http://node7:8000/v1"


def settings(*assignments: str, file: dict[str, object] | None = None) -> Settings:
    if file is not None:
        Path("roles.yaml").write_text(yaml.safe_dump(file))
        assignments = (*assignments, "MODEL_ROLES=roles.yaml")
    return Settings.load(["LLM_PROVIDER=deepseek", f"DEEPSEEK_API_KEY={SECRET}", *assignments])


def served(name: str, own: Settings) -> Endpoint:
    check_stages(own)
    return serving(stage(name, own), own, choose_provider(own))


@pytest.mark.parametrize(
    ("assignments", "models"),
    [
        ([], ("deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v4-pro", "deepseek-v4-flash")),
        (["TIERS=flash"], ("deepseek-v4-flash", "deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v4-flash")),
        (["TIERS=pro"], ("deepseek-v4-pro", "deepseek-v4-pro", "deepseek-v4-pro", "deepseek-v4-pro")),
        (
            ["TIERS=flash", "MODEL_ROLES=evaluate=pro"],
            ("deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v4-pro", "deepseek-v4-flash"),
        ),
        (
            ["MODEL_ROLES=critic=openai:gpt-4.1,judge=groq:m/n"],
            ("deepseek-v4-flash", "gpt-4.1", "m/n", "deepseek-v4-flash"),
        ),
        (
            ["MODEL_ROLES=writer=pro,baseline=deepseek:other"],
            ("deepseek-v4-pro", "deepseek-v4-pro", "deepseek-v4-pro", "other"),
        ),
    ],
)
def test_a_stage_overrides_its_role_and_a_role_its_tier(assignments: list[str], models: tuple[str, ...]) -> None:
    own = settings(*assignments)
    assert tuple(served(name, own).model for name in ("write", "evaluate", "judge", "baseline")) == models


def test_a_key_is_sent_only_to_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    moved = {"provider": "openai", "base_url": NODE, "model": "m"}
    own = settings(file={"endpoints": {"proxy": moved}, "roles": {"critic": "proxy", "judge": "openai:gpt-4.1"}})
    assert served("evaluate", own).api_key is None
    key = served("judge", own).api_key
    assert key is not None
    assert key.get_secret_value() == SECRET


def test_a_key_is_read_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"provider": "openai", "model": "gpt-4.1", "key": "JUDGE_KEY"}
    own = settings(file={"endpoints": {"third": row}, "roles": {"judge": "third"}})
    with pytest.raises(SettingsError, match=r"'third' needs the key JUDGE_KEY, which is not set"):
        served("judge", own).require()
    Path(".env").write_text(f"JUDGE_KEY={SECRET}\n")
    served("judge", own).require()
    monkeypatch.setenv("JUDGE_KEY", "of the environment")
    key = served("judge", own).api_key
    assert key is not None
    assert key.get_secret_value() == "of the environment"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ({"roles": {"judge": "nobody"}}, "names the unknown endpoint 'nobody'; choose from: flash, pro, or write"),
        ({"roles": {"juge": "pro"}}, "names the unknown role 'juge'; choose from: writer, "),
        ({"endpoints": {"a": {"model": "m"}}, "roles": {"judge": "a"}}, "'a' of MODEL_ROLES has no base_url"),
        ({"endpoints": {"pro": {"base_url": NODE, "model": "m"}}}, "the name of the tier 'pro'"),
        ({"endpoints": {"a": {"provider": "b", "model": "m"}}, "roles": {"judge": "a"}}, "There is no provider 'b'"),
    ],
)
def test_a_mistake_in_the_file_is_reported_in_one_sentence(file: dict[str, object], said: str) -> None:
    with pytest.raises((SettingsError, UnknownNameError)) as caught:
        check_stages(settings(file=file))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("endpoints: {a: {given: m}}", "field 'endpoints.a.given': unknown field"),
        ("endpoints: {a: {concurrency: 0}}", "field 'endpoints.a.concurrency': it must be more than 0"),
        ("endpoints: {a: {base_url: 'http://me:secret@h/v1'}}", "it contains a user name or password"),
        ("roles: [", "the file is not YAML"),
    ],
)
def test_a_malformed_file_is_reported_with_the_field_but_no_values(text: str, said: str) -> None:
    Path("roles.yaml").write_text(text)
    with pytest.raises(SettingsError, match=r"^The setting MODEL_ROLES cannot be 'roles.yaml': ") as caught:
        Settings.load(["MODEL_ROLES=roles.yaml"])
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)
