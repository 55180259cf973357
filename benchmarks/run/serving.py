"""Which endpoints serve a run (by default one model for every method), and what is recorded about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from meta_agent_rag.llm.chat import Connection
from meta_agent_rag.llm.connections import Connections
from meta_agent_rag.llm.local import AUTO, PACKAGED, decided
from meta_agent_rag.llm.providers import Endpoint
from meta_agent_rag.llm.stages import ANSWER, Use, endpoints_in_use
from meta_agent_rag.settings import Settings

from ..recording import NoModel
from .arms import arm_settings
from .config import RunConfig

_OF_BASELINES = "writer"
"""The role of the baselines' stages (`methods/stages.yaml`)."""


def one_model(settings: Settings) -> Settings:
    """The settings of a new run: unless TIERS is set, the flash tier serves all stages, so that only methods differ.

    See docs/decisions/018. If the embedded model is used, it is named: `auto` may select another one later.
    """
    tiers = settings if "tiers" in settings.model_fields_set else settings.model_copy(update={"tiers": "flash"})
    embedded = any(endpoint.is_embedded for endpoint in endpoints_in_use(tiers, get_args(Use)).values())
    return decided(tiers) if embedded else tiers


def embedded_model_of(settings: Mapping[str, Any]) -> str:
    """The embedded model in a run's settings: settings without one predate the choice, or do not use it."""
    name = str(settings.get("embedded_model", AUTO))
    return PACKAGED if name == AUTO else name


def uses(config: RunConfig) -> tuple[Use, ...]:
    """What a run uses models for."""
    return (*ANSWER, "judge") if config.judge else ANSWER


def paying(config: RunConfig) -> list[tuple[Settings, list[Endpoint]]]:
    """The endpoints that each row calls, with its settings, and those of the judge; a baseline calls the writer's."""
    found = []
    for arm in config.arms:
        settings = arm_settings(arm, config.settings)
        by_role = endpoints_in_use(settings, ANSWER)
        found.append((settings, [by_role[role] for role in by_role if arm.method.loop or role == _OF_BASELINES]))
    if config.judge:
        judging: tuple[Use, ...] = ("judge",)
        found.append((config.settings, list(endpoints_in_use(config.settings, judging).values())))
    return found


async def served_by(config: RunConfig) -> dict[str, Mapping[str, Any]]:
    """For `config.json`: the name, provider and model behind each role, and the identity that the server reports.

    A row's own endpoints are also listed, under its name. Raises `SettingsError` if a key or a model file is missing.
    """
    settings = config.settings
    shared = endpoints_in_use(settings, uses(config))
    found = dict(shared)
    for arm in config.arms:
        for role, endpoint in endpoints_in_use(arm_settings(arm, settings), ANSWER).items():
            if arm.assignments and endpoint != shared.get(role):
                found[f"{arm.base}: {role}"] = endpoint
    connections = Connections(settings=settings)
    try:
        return {
            role: {
                "endpoint": endpoint.name,
                "connection": endpoint.connection,
                "provider": endpoint.provider.name,
                "model": endpoint.model,
                "identity": (await connections.to(endpoint)).identity,
            }
            for role, endpoint in found.items()
        }
    finally:
        await connections.aclose()


@dataclass(frozen=True, kw_only=True)
class RecordedConnections(Connections):
    """Connections without a server, under the identities of a record: a replay makes no call."""

    run: Mapping[str, Any]

    async def to(self, endpoint: Endpoint) -> Connection:
        """A stub that serves nothing; records of earlier versions have one identity for all roles."""
        known = {(one["connection"], one["model"]): one["identity"] for one in self.run.get("endpoints", {}).values()}
        identity = known.get((endpoint.connection, endpoint.model), self.run["endpoint"])
        return Connection(endpoint=endpoint, identity=identity, model=NoModel())
