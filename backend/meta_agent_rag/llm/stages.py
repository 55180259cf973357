"""The stages in `stages.yaml`: the role of each, and the endpoint that serves it with given settings."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import yaml

from ..discovery import named
from ..errors import SettingsError
from ..settings import Settings, Tier
from ..shipped import extensions
from .providers import Choice, Endpoint, choose_provider, endpoint_named

Use = Literal["answer", "conversation", "judge"]
ANSWER: tuple[Use, ...] = ("answer",)
CHAT: tuple[Use, ...] = ("answer", "conversation")
_TASK_AND_REPLY_TOKENS = 1800
_LEAST_EVIDENCE_TOKENS = 256
_SMALLEST_WINDOW = 512
"""Below it, a prompt with the least evidence cannot fit."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A kind of call: its role, the tier that serves it, the maximum length of its reply in tokens, and its use.

    A judge keeps its tier regardless of TIERS, because it is not part of what it judges.
    """

    name: str
    role: str
    tier: Tier
    max_tokens: int
    use: Use = "answer"


@cache
def stages() -> Mapping[str, Stage]:
    """All stages by name, those of the benchmark last."""
    package = Path(str(files(__package__)))
    tables = (folder / "stages.yaml" for folder in (package, *extensions()))
    rows = (row for table in tables for row in yaml.safe_load(table.read_text(encoding="utf-8")).items())
    return {name: Stage(name=name, **row) for name, row in rows}


def stage(name: str, settings: Settings) -> Stage:
    """The stage as configured by the settings; raises `UnknownNameError`."""
    found = named("stage", name, stages())
    tier = found.tier if settings.tiers == "by_stage" or found.use == "judge" else settings.tiers
    return replace(found, tier=tier, max_tokens=settings.stage_tokens.get(name, found.max_tokens))


def serving(served: Stage, settings: Settings, choice: Choice) -> Endpoint:
    """The endpoint of a stage: the one that MODEL_ROLES assigns to the stage or its role, else that of its tier."""
    roles = settings.model_roles.roles
    name = roles.get(served.name) or roles.get(served.role) or served.tier
    return endpoint_named(name, settings, choice)


def endpoints_in_use(settings: Settings, uses: Collection[Use] = CHAT) -> dict[str, Endpoint]:
    """The endpoint of every role of these uses, by role; a role with several endpoints has an entry per stage."""
    choice = choose_provider(settings)
    found: dict[str, Endpoint] = {}
    for name in stages():
        served = stage(name, settings)
        if served.use not in uses:
            continue
        endpoint = serving(served, settings, choice)
        if found.setdefault(served.role, endpoint).name != endpoint.name:
            found[served.name] = endpoint
    return found


def evidence_room(settings: Settings) -> int:
    """Tokens available for evidence in a prompt: the setting, or the space left in the smallest window in use."""
    rooms = [
        endpoint.window(settings) - endpoint.thinking_room(settings) - _TASK_AND_REPLY_TOKENS
        for endpoint in endpoints_in_use(settings).values()
    ]
    return max(min(settings.evidence_tokens, *rooms), _LEAST_EVIDENCE_TOKENS)


def runs_here(settings: Settings, uses: Collection[Use] = ANSWER) -> bool:
    """Whether the embedded model serves all of these uses, so that they are free."""
    return all(endpoint.is_embedded for endpoint in endpoints_in_use(settings, uses).values())


def check_stages(settings: Settings) -> None:
    """Reject settings that name an unknown stage, role or endpoint."""
    for name in settings.stage_tokens:
        if name not in stages():
            raise SettingsError(f"STAGE_TOKENS names the unknown stage {name!r}; choose from: {', '.join(stages())}.")
    roles = dict.fromkeys(one.role for one in stages().values())
    for name in settings.model_roles.roles:
        if name not in (*roles, *stages(), *get_args(Tier)):
            raise SettingsError(
                f"MODEL_ROLES names the unknown role {name!r}; choose from: {', '.join((*roles, *get_args(Tier)))}, or "
                "a stage of llm/stages.yaml."
            )
    for name in settings.model_roles.endpoints:
        if name in get_args(Tier):
            raise SettingsError(
                f"MODEL_ROLES gives an endpoint the name of the tier {name!r}; rename it, and map {name} to it "
                "under `roles`."
            )
    for endpoint in endpoints_in_use(settings, get_args(Use)).values():
        if endpoint.window(settings) < _SMALLEST_WINDOW:
            raise SettingsError(
                f"The context window of {endpoint.model!r} ({endpoint.window(settings)} tokens) is too small; "
                f"a task, its evidence and a reply need at least {_SMALLEST_WINDOW}."
            )
