"""Which provider, model and tier serve a stage: read from `providers.yaml` and `stages.yaml`, chosen by settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, SecretStr

from ..errors import SettingsError, UnknownNameError
from ..setting_types import Tier
from ..settings import Settings
from ..shipped import extensions

COMPATIBLE = "compatible"
EMBEDDED = "embedded"


class Provider(BaseModel):
    """One row of `providers.yaml`; its comment explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    label: str
    base_url: str | None = None
    key: str | None = None
    flash: str | None = None
    pro: str | None = None
    json_mode: Literal["json_object", "json_schema"]
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    thinking_off: Mapping[str, Any] = {}
    thinking_on: Mapping[str, Any] = {}
    concurrency: Mapping[Tier, int]
    context: int
    seconds: int = 180
    seeds: bool = False
    logprobs: bool = False
    prices: str | None = None
    source: str | None = None

    def default_model(self, tier: Tier) -> str | None:
        """The provider's own model of a tier, where it names one."""
        return self.flash if tier == "flash" else self.pro


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The provider of a run, where it is reached, its models, and why it was taken."""

    provider: Provider
    base_url: str | None
    api_key: SecretStr | None
    models: Mapping[Tier, str]
    reason: str


@cache
def providers() -> Mapping[str, Provider]:
    """All providers by name, in the order in which `auto` tries them."""
    rows = yaml.safe_load(files(__package__).joinpath("providers.yaml").read_text(encoding="utf-8"))
    return {
        name: Provider(
            name=name, **{("json_mode" if field == "json" else field): value for field, value in row.items()}
        )
        for name, row in rows.items()
    }


def choose_provider(settings: Settings) -> Choice:
    """Pick the provider that `LLM_PROVIDER` names, or the first one with a key.

    Raises `UnknownNameError` or `SettingsError` with the setting that is missing.
    """
    name, reason = _pick(settings)
    provider = providers()[name]
    key: SecretStr | None = getattr(settings, provider.key) if provider.key else None
    base_url = settings.llm_base_url or provider.base_url
    if key is None and settings.llm_base_url:
        key = settings.llm_api_key
    elif key is None and provider.key and name != COMPATIBLE:
        raise SettingsError(
            f"LLM_PROVIDER is {name!r} but {provider.key.upper()} is not set; set it in the environment or .env."
        )
    if name == COMPATIBLE and not base_url:
        raise SettingsError(
            f"LLM_PROVIDER is {name!r} but LLM_BASE_URL is not set; set it, for instance to http://127.0.0.1:8000/v1."
        )
    return Choice(provider=provider, base_url=base_url, api_key=key, models=_models(settings, provider), reason=reason)


def runs_here(settings: Settings) -> bool:
    """Does the embedded model answer, which costs nothing?"""
    return _pick(settings)[0] == EMBEDDED


def _pick(settings: Settings) -> tuple[str, str]:
    known = providers()
    if settings.llm_provider != "auto":
        if settings.llm_provider not in known:
            raise UnknownNameError("provider", settings.llm_provider, ["auto", *known])
        return settings.llm_provider, f"LLM_PROVIDER is {settings.llm_provider!r}"
    if settings.llm_base_url:
        return COMPATIBLE, "LLM_BASE_URL is set"
    for name, provider in known.items():
        if provider.key and name != COMPATIBLE and getattr(settings, provider.key) is not None:
            return name, f"{provider.key.upper()} is set"
    return EMBEDDED, "no provider key is set"


def _models(settings: Settings, provider: Provider) -> Mapping[Tier, str]:
    if provider.name == EMBEDDED and settings.embedded_model_path is not None:
        return dict.fromkeys(("flash", "pro"), settings.embedded_model_path.stem)
    own = provider.name == EMBEDDED  # one file serves both tiers, whatever models are named
    flash = (None if own else settings.flash_model) or provider.flash
    pro = (None if own else settings.pro_model) or provider.pro or flash
    if flash is None or pro is None:
        raise SettingsError("FLASH_MODEL is not set; name the model that LLM_BASE_URL serves (PRO_MODEL follows it).")
    return {"flash": flash, "pro": pro}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A kind of call: who serves it and how long its reply may be, in tokens."""

    name: str
    tier: Tier
    max_tokens: int


@cache
def _built_in() -> Mapping[str, Stage]:
    tables = (folder / "stages.yaml" for folder in (Path(str(files(__package__))), *extensions()))
    rows = (row for table in tables for row in yaml.safe_load(table.read_text(encoding="utf-8")).items())
    return {name: Stage(name=name, **row) for name, row in rows}


def stage(name: str, settings: Settings) -> Stage:
    """The stage as settings have it; raises `UnknownNameError`."""
    known = _built_in()
    if name not in known:
        raise UnknownNameError("stage", name, list(known))
    return Stage(name=name, tier=settings.stage_tiers.get(name, known[name].tier), max_tokens=known[name].max_tokens)


def check_stage_tiers(settings: Settings) -> None:
    """Refuse a STAGE_TIERS that names no stage."""
    for name in settings.stage_tiers:
        if name not in _built_in():
            raise SettingsError(f"STAGE_TIERS names the unknown stage {name!r}; choose from: {', '.join(_built_in())}.")
