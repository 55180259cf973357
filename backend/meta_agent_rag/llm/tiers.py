"""Stages and their tiers: code asks for a stage, data and settings say which tier serves it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from ..errors import SettingsError, UnknownNameError
from ..settings import Settings, Tier


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A kind of call: who serves it and how long its reply may be, in tokens."""

    name: str
    tier: Tier
    max_tokens: int


@cache
def _built_in() -> Mapping[str, Stage]:
    rows = yaml.safe_load(files(__package__).joinpath("stages.yaml").read_text(encoding="utf-8"))
    return {name: Stage(name=name, **row) for name, row in rows.items()}


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
            raise SettingsError(f"STAGE_TIERS names {name!r}, which is no stage; stages are: {', '.join(_built_in())}.")
