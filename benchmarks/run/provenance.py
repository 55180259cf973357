"""What serves a run, and what is needed to reproduce it: commit, lock, data, endpoints and settings."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.datasets import LoadedQuestions
from meta_agent_rag.llm.connections import Connections
from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.local import AUTO, PACKAGED, decided
from meta_agent_rag.llm.providers import EMBEDDED, Endpoint, choose_provider, providers
from meta_agent_rag.llm.stages import ANSWER, Use, endpoints_in_use
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.settings import Key, ModelRoles, Settings, Url

from .arms import arm_settings
from .config import RunConfig

OF_A_MACHINE = ("marag_data_dir", "encoder_device")
"""Settings that belong to a machine, not to an experiment."""
OWN_FILES = (
    *("prompts_dir", "deficits_dir", "operators_dir", "routes_dir", "methods_dir", "datasets_dir"),
    "monitor_calibration",
)
"""Settings that name the user's own files, which records do not contain."""
_FREE = (*OF_A_MACHINE, "cost_limit_usd", "llm_timeout_seconds", "llm_max_retries", "response_cache")
_OF_THE_NODE = ("base_url", "key", "headers", "concurrency", "seconds")
"""The fields of an endpoint that differ between nodes or accounts and that no reply depends on."""
_OF_BASELINES = "writer"
"""The role of the baselines' stages (`methods/stages.yaml`)."""
_ROOT = Path(__file__).parents[2]
_GIT_SECONDS = 10
_CODE_FILES = ("--", "backend", "benchmarks", ":!benchmarks/results", "pyproject.toml", "uv.lock")


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
                found[f"{arm.name}: {role}"] = endpoint
    connections = Connections(settings=settings)
    try:
        return {
            role: {
                "endpoint": endpoint.name,
                "provider": endpoint.provider.name,
                "model": endpoint.model,
                "identity": (await connections.to(endpoint)).identity,
            }
            for role, endpoint in found.items()
        }
    finally:
        await connections.aclose()


def run_config(
    config: RunConfig, loaded: LoadedQuestions, served: Mapping[str, Mapping[str, Any]], sample: Mapping[str, Any]
) -> dict[str, Any]:
    """The contents of `config.json`; secrets are masked.

    `served` is what `served_by` returns about endpoints, and `sample` states the whole that a shard is part of.
    """
    choice = choose_provider(config.settings)
    known = config.recorded  # a replay may run where neither the model nor its encoder is installed
    if known is None:
        own = [arm_settings(arm, config.settings) for arm in config.arms]
        embedded = embedded_model_file(config.settings).name if choice.provider.name == EMBEDDED else None
        named = [*(one.monitor_encoder for one in own), *([config.settings.encoder] * (config.mode == "open_domain"))]
        # by their names in the settings: one that is unavailable is replaced
        encoders = {name: load_encoder(config.settings, name).encoder.name for name in dict.fromkeys(named)}
        folders = dict.fromkeys(one.deficits_dir for one in own)
        deficits = {deficit.name for folder in folders for deficit in discover_deficits(folder)}
    else:
        embedded, encoders = known["provider"]["embedded_model"], known["encoders"]
        deficits = set(known["quadrants"])
    lock = _ROOT / "uv.lock"
    return {
        "experiment": config.experiment,
        "concurrency": config.concurrency,
        "sample": dict(sample),
        "revision": loaded.revision,
        "model_words": config.model_words,
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {
            "name": choice.provider.name,
            "base_url": choice.base_url,
            "models": dict(choice.models),
            "embedded_model": embedded,
        },
        "endpoints": {role: dict(one) for role, one in served.items()},
        "encoders": encoders,
        "deficits": sorted(deficits),
        "own_files": own_files(config.settings),
        "settings": config.settings.model_dump(mode="json"),
        "commit": commit(),
        "lock": hashlib.sha256(lock.read_bytes()).hexdigest()[:12] if lock.is_file() else None,
        "version": version("meta-agent-rag"),
        "python": sys.version.split()[0],
    }


def own_files(settings: Settings) -> str | None:
    """A digest of the user's own files: prompts, deficits, methods, data sets, ...; `None` if there are none."""
    places = [place for name in OWN_FILES if (place := getattr(settings, name)) is not None]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    texts = [(file.name, file.read_bytes()) for file in files if file.is_file() and "__pycache__" not in file.parts]
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:12] if texts else None


def recorded_run(described: Mapping[str, Any]) -> dict[str, Any]:
    """The first line of a record: the result of `run_config`, without this machine's folders."""
    named = {**described["experiment"]}
    for name in ("data_file", "aliases_file"):
        named[name] = None if named[name] is None else Path(named[name]).name
    local = (*OF_A_MACHINE, "cost_limit_usd")
    settings = {name: value for name, value in described["settings"].items() if name not in local}
    if settings.get("embedded_model_path"):
        settings["embedded_model_path"] = Path(settings["embedded_model_path"]).name
    first = next(iter(described["endpoints"].values()), None)
    return {
        **described,
        "experiment": named,
        "settings": settings,
        "endpoint": "" if first is None else first["identity"],
        "pooled": described["sample"]["pooled"],
    }


def recorded_settings(run: Mapping[str, Any]) -> Settings:
    """The settings of a recorded run; keys are neither recorded nor needed, and settings since removed are left out.

    A record may come from anyone, so it names no folder to write to, no address to contact and no device.
    """
    given = {name: value for name, value in run["settings"].items() if name in _recordable()}
    provider = run["provider"]["name"]
    key = providers()[provider].key
    keys: dict[str, object] = {} if key is None else {key: "replay"}
    chosen = {"llm_provider": provider, "embedded_model": embedded_model_of(given), "cost_limit_usd": None}
    values = {**given, **keys, **chosen}
    try:
        Settings(**values)
    except ValidationError as error:  # values that a setting had when the record was made, and no longer has
        values = {name: values[name] for name in values if name not in {fault["loc"][0] for fault in error.errors()}}
    return Settings.load(**values)


@cache
def _recordable() -> frozenset[str]:
    """Names of the settings that are read from a record: none that names a file, folder or address to be used."""
    recorded = {"llm_base_url", "embedded_model_path"}  # only their names matter
    local = (Path, Path | None, Url | None, Key | None)
    return frozenset(
        name
        for name, field in Settings.model_fields.items()
        if name not in OF_A_MACHINE and (name in recorded or field.annotation not in local)
    )


def carried_settings(now: Settings, before: Mapping[str, Any], given: frozenset[str]) -> Settings:
    """The settings of a run that is continued: its own, except for what belongs to the machine or the account.

    Keys, folders, devices and addresses are those of this process, and so are the settings `given` on the command line.
    """
    values = {
        name: before[name]
        for name, field in Settings.model_fields.items()
        if name in before
        and name not in (*OF_A_MACHINE, *given)
        and field.annotation != Key | None
        and not (field.annotation == Url | None and name in now.model_fields_set)
        and not (name == "cost_limit_usd" and before[name] is None)
    }
    own = {name: getattr(now, name) for name in Settings.model_fields if name not in values}
    return Settings.load(**values).model_copy(update=own)


def conditions(run: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's answers depend on besides its experiment and its code, by aspect, from its `config.json`.

    Servers may move and keys may change: of an address only whether it is set counts. The identity of a server that
    could not be asked is its address, so it is unknown.
    """
    roles = {
        role: [one.get("provider"), one.get("model"), None if "//" in (name := one.get("identity") or "") else name]
        for role, one in run.get("endpoints", {}).items()
    }
    settings = {
        name: _in_force(name, run["settings"]) for name in {*run["settings"], *Settings.model_fields} - {*_FREE}
    }
    return {
        "data": [run["dataset"].get(name) for name in ("sha256", "aliases_sha256")],
        "provider": {name: value for name, value in run["provider"].items() if name != "base_url"},
        "endpoints": roles,
        "own files": run.get("own_files"),
        "encoders": run.get("encoders"),
        **{name.upper(): settings[name] for name in sorted(settings) if not name.endswith(("_key", "_token"))},
    }


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The conditions in which two runs differ; an unknown identity equals any."""
    before, now = conditions(one), conditions(other)
    for role in before["endpoints"].keys() & now["endpoints"].keys():
        first, second = before["endpoints"][role], now["endpoints"][role]
        if None in (first[2], second[2]):
            first[2] = second[2] = None
    return [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]


def _in_force(name: str, settings: Mapping[str, Any]) -> object:
    """A setting's value as JSON, or its default if it was added later."""
    field = Settings.model_fields.get(name)
    value = settings[name] if name in settings or field is None else field.get_default(call_default_factory=True)
    if name.endswith("_url"):
        return value is not None
    if name == "embedded_model":
        return embedded_model_of(settings)
    if name == "model_roles":
        roles = ModelRoles.model_validate(value)
        value = roles.roles, {key: row.model_dump(exclude=set(_OF_THE_NODE)) for key, row in roles.endpoints.items()}
    return json.loads(json.dumps(value, default=str))


def commit() -> str | None:
    """The commit of the checkout, with a digest of the changes if files were changed; `None` outside one."""
    if not (_ROOT / "backend").is_dir():
        return None  # installed: any enclosing repository is not ours
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
        edits = _git("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color", *_CODE_FILES) if changed else ""
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}-changed-{hashlib.sha256(edits.encode()).hexdigest()[:8]}" if changed else head


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, timeout=_GIT_SECONDS)
    return done.stdout.decode("utf-8", "backslashreplace").strip()
