"""The contract of every row of `providers.yaml`, and how a provider is chosen."""

from collections.abc import Mapping
from typing import Any

import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.llm.providers import COMPATIBLE, EMBEDDED, Choice, Provider, choose_provider, providers
from meta_agent_rag.settings import Settings

ALL = providers()
SECRET = "sk-0123456789-very-secret"
WITH_KEY = [name for name, row in ALL.items() if row.key and name != COMPATIBLE]
URL = "http://127.0.0.1:8000/v1"


def choose(**values: Any) -> Choice:
    return choose_provider(Settings.load(**values))


def key_of(name: str) -> str:
    key = ALL[name].key
    assert key is not None
    return key


def enough_for(name: str) -> Mapping[str, str]:
    """The minimal settings for using a provider."""
    if ALL[name].key is None:
        return {} if ALL[name].flash else {"flash_model": "local"}
    if name == COMPATIBLE:
        return {"llm_base_url": URL, "llm_api_key": SECRET, "flash_model": "local"}
    return {key_of(name): SECRET}


@pytest.mark.parametrize("row", ALL.values(), ids=ALL)
def test_every_row_is_complete(row: Provider) -> None:
    assert row.label
    assert set(row.concurrency) == {"flash", "pro"}
    assert all(slots >= 1 for slots in row.concurrency.values())
    assert row.context >= 4_096
    assert row.key is None or "SecretStr" in str(Settings.model_fields[row.key].annotation)
    assert (row.flash is None) == (row.pro is None)
    assert (row.base_url is None) == (row.name in (COMPATIBLE, EMBEDDED))
    assert row.base_url is None or row.base_url.startswith(("https://", "http://127.0.0.1"))


@pytest.mark.parametrize("name", ALL)
def test_a_provider_is_selected_by_name(name: str) -> None:
    choice = choose(llm_provider=name, **enough_for(name))
    assert choice.provider is ALL[name]
    assert set(choice.models) == {"flash", "pro"}
    assert all(choice.models.values())
    assert choice.reason == f"LLM_PROVIDER is {name!r}"
    assert choice.base_url == (URL if name == COMPATIBLE else ALL[name].base_url)
    assert (choice.tiers["flash"].api_key is None) == (ALL[name].key is None)


@pytest.mark.parametrize("name", WITH_KEY)
def test_a_missing_key_is_reported(name: str) -> None:
    others = {key_of(other): SECRET for other in WITH_KEY if other != name}
    with pytest.raises(SettingsError, match=f"LLM_PROVIDER is {name!r} but {key_of(name).upper()} is not set"):
        choose(llm_provider=name, llm_api_key=SECRET, **others)


@pytest.mark.parametrize("first", range(len(WITH_KEY)))
def test_auto_selects_the_first_provider_with_a_key(first: int) -> None:
    choice = choose(**{key_of(name): SECRET for name in reversed(WITH_KEY[first:])})
    assert choice.provider.name == WITH_KEY[first]
    assert choice.reason == f"{key_of(WITH_KEY[first]).upper()} is set"
    assert choice.models == {"flash": choice.provider.flash, "pro": choice.provider.pro}


def test_a_base_url_takes_precedence_and_receives_no_provider_key() -> None:
    choice = choose(llm_base_url=URL, flash_model="local", **{key_of(name): SECRET for name in WITH_KEY})
    assert choice.provider.name == COMPATIBLE
    assert choice.base_url == URL
    assert choice.reason == "LLM_BASE_URL is set"
    assert choice.tiers["flash"].api_key is None
    assert choice.models == {"flash": "local", "pro": "local"}
