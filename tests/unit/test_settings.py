"""Settings: where a value comes from, and how invalid values are reported."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from meta_agent_rag import settings as settings_module
from meta_agent_rag.errors import SettingsError
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Settings

SECRET = "sk-0123456789-very-secret"
KEYS = [name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)]


def dotenv(text: str) -> None:
    Path(".env").write_text(text, encoding="utf-8")


def test_an_address_with_a_query_is_rejected_and_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"LLM_BASE_URL .* contains a query") as caught:
        Settings.load(["LLM_BASE_URL=http://127.0.0.1:9/v1?key=SECRETKEY"])
    assert "SECRETKEY" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://exämple..com/v1", "http://127.0.0.1:99999/v1", "foo", "http://"])
def test_an_impossible_host_or_port_is_rejected(url: str) -> None:
    with pytest.raises(SettingsError, match=r"LLM_BASE_URL .* write it as http://HOST:PORT/PATH"):
        Settings.load([f"LLM_BASE_URL={url}"])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("LLM_MAX_RETRIES", "many", "it must be a whole number"),
        ("COST_LIMIT_USD", "-1", "it must be more than 0"),
        ("FLASH_THINKING", "perhaps", "it must be true or false"),
        ("SELECTION", "first", "it must be 'best' or 'last'"),
        ("STAGE_TOKENS", "write=1,write=2", "it names 'write' twice"),
    ],
)
@pytest.mark.parametrize("source", ["--set", "environment", ".env"])
def test_an_invalid_value_is_reported_in_one_sentence_with_the_setting(
    name: str, value: str, reason: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "environment":
        monkeypatch.setenv(name, value)
    elif source == ".env":
        dotenv(f"{name}={value}\n")
    with pytest.raises(SettingsError) as caught:
        Settings.load([f"{name}={value}"] if source == "--set" else [])
    sentence = str(caught.value)
    assert sentence.startswith(f"The setting {name} cannot be {value!r}: ")
    assert reason in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "pydantic" not in sentence
    assert "Input" not in sentence
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DEEPSEEK_API_KEYS", "DEEPSEEK_API_KEY"),
        ("deepseek_key", "DEEPSEEK_API_KEY"),
        ("EMBED_MODEL_PATH", "EMBEDDED_MODEL_PATH"),
    ],
)
def test_a_misspelt_line_is_reported_once_without_its_value(
    name: str, meant: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings_module._warn_once.cache_clear()
    dotenv(f"{name}={SECRET}\n")
    Settings.load()
    Settings.load()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == f"Unknown setting {name.upper()} in .env is ignored; did you mean {meant}?"


def test_a_malformed_line_is_reported_once_with_its_number(caplog: pytest.LogCaptureFixture) -> None:
    settings_module._warn_once.cache_clear()
    dotenv("LLM_MAX_RETRIES=1\nFLASH_MODEL: abc\n")
    assert Settings.load().llm_max_retries == 1
    Settings.load().secret("OTHER_KEY")
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "Line 2 of .env is not NAME=VALUE and is ignored; correct it."


def test_a_place_may_begin_with_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.load(["MARAG_DATA_DIR=~/marag"]).marag_data_dir == tmp_path / "marag"
    with pytest.raises(SettingsError, match="begins with an unknown home folder"):
        Settings.load(["PROMPTS_DIR=~nobody-of-that-name/prompts"])


def test_infinity_is_no_limit() -> None:
    with pytest.raises(SettingsError, match="INGEST_SECONDS"):
        Settings.load(["INGEST_SECONDS=inf"])


def test_a_file_that_is_not_utf8_is_reported() -> None:
    Path(".env").write_bytes(b"LLM_PROVIDER=caf\xe9\n")
    with pytest.raises(SettingsError, match=r"\.env in this folder is not UTF-8"):
        Settings.load()


@pytest.mark.parametrize("name", KEYS)
def test_secrets_are_never_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name.upper(), f" {SECRET}\t")
    settings = Settings.load()
    key = getattr(settings, name)
    assert isinstance(key, SecretStr)
    assert key.get_secret_value() == SECRET  # surrounding spaces are a copying mistake
    shown = [repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump(mode="json"))]
    assert not any(SECRET in text for text in (*shown, str(settings.model_dump())))


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("slip", [f"“{SECRET}”", f"{SECRET}\n{SECRET}"])
def test_a_key_unfit_for_a_header_is_rejected_without_being_shown(name: str, slip: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load([f"{name}={slip}"])
    assert str(caught.value).startswith(f"The setting {name.upper()} has an invalid value: ")
    assert SECRET not in f"{caught.value!r} {caught.value}"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("folder", ["DEFICITS_DIR", "OPERATORS_DIR", "ROUTES_DIR", "METHODS_DIR", "DATASETS_DIR"])
def test_code_folders_are_not_taken_from_a_file(
    folder: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings_module._warn_once.cache_clear()
    dotenv(f"{folder}=./ops\nRRF_K=8\n")
    read = Settings.load()
    assert (getattr(read, folder.lower()), read.rrf_k) == (None, 8)
    assert f"{folder} in .env is ignored" in caplog.text
    monkeypatch.setenv(folder, "./mine")
    assert getattr(Settings.load(), folder.lower()) == Path("mine")
    assert getattr(Settings.load([f"{folder}=./other"]), folder.lower()) == Path("other")


@pytest.mark.parametrize("address", ["LLM_BASE_URL", "QDRANT_URL", "ELASTICSEARCH_URL"])
def test_an_address_of_a_file_gets_no_key_of_the_environment(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings_module._warn_once.cache_clear()
    key = settings_module._KEY_OF_ADDRESS[address.lower()]
    monkeypatch.setenv(key.upper(), SECRET)
    dotenv(f"{address}=http://elsewhere.example/v1\n")
    assert getattr(Settings.load(), key) is None
    assert f"{key.upper()} of the environment is not sent there" in caplog.text
    assert SECRET not in caplog.text
    assert getattr(Settings.load([f"{address}=http://127.0.0.1:9/v1"]), key).get_secret_value() == SECRET
    dotenv(f"{address}=http://elsewhere.example/v1\n{key.upper()}=from-the-file\n")
    assert getattr(Settings.load(), key).get_secret_value() == "from-the-file"
    monkeypatch.setenv(address, "http://127.0.0.1:9/v1")
    assert getattr(Settings.load(), key).get_secret_value() == SECRET


def test_an_empty_value_hides_those_of_lower_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    dotenv(f"DEEPSEEK_API_KEY={SECRET}\nRRF_K=8\n")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "")
    monkeypatch.setenv("COST_LIMIT_USD", "5")
    read = Settings.load(["COST_LIMIT_USD=", "RRF_K="])
    assert (read.secret("DEEPSEEK_API_KEY"), read.cost_limit_usd, read.rrf_k) == (None, None, 60)


def test_no_address_of_a_file_gets_the_key_that_the_environment_has_for_a_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("LLM_PROVIDER", "openai")
    dotenv("LLM_BASE_URL=http://elsewhere.example/v1\n")
    assert choose_provider(Settings.load()).tiers["flash"].api_key is None
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:9/v1")
    assert choose_provider(Settings.load()).tiers["flash"].api_key == SecretStr(SECRET)


def test_roles_of_a_file_get_keys_of_the_same_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "endpoints: {e: {base_url: 'http://elsewhere.example/v1', model: m, key: AWS_SECRET_ACCESS_KEY}}\n"
    Path("roles.yaml").write_text(f"{rows}roles: {{flash: e, pro: e}}\n", encoding="utf-8")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    dotenv("MODEL_ROLES=roles.yaml\n")
    assert Settings.load().secret("AWS_SECRET_ACCESS_KEY", by="MODEL_ROLES") is None
    trusted = Settings.load(["MODEL_ROLES=roles.yaml"]).secret("AWS_SECRET_ACCESS_KEY", by="MODEL_ROLES")
    assert trusted is not None
    assert trusted.get_secret_value() == SECRET
    dotenv("MODEL_ROLES=roles.yaml\nAWS_SECRET_ACCESS_KEY=own\n")
    own = Settings.load().secret("AWS_SECRET_ACCESS_KEY", by="MODEL_ROLES")
    assert own is not None
    assert own.get_secret_value() == "own"
    monkeypatch.setenv("MODEL_ROLES", "")
    assert not Settings.load().model_roles.endpoints
