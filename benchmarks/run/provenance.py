"""What is needed to reproduce a run: commit, lock, data and settings; and which runs have them in common."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from meta_agent_rag.datasets import LoadedQuestions
from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.local import decided
from meta_agent_rag.llm.providers import EMBEDDED, choose_provider, providers
from meta_agent_rag.llm.stages import Use, endpoints_in_use
from meta_agent_rag.retrieval.corpus.corpus import read_documents
from meta_agent_rag.retrieval.corpus.sample import SAMPLE
from meta_agent_rag.settings import Key, ModelRoles, PlacePath, Settings, Url

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


def run_config(config: RunConfig, loaded: LoadedQuestions, sample: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of `config.json`, with secrets masked; `sample` states the whole that a shard is part of."""
    choice = choose_provider(config.settings)
    if config.recorded is not None:  # a replay may run where the model is not installed
        embedded = config.recorded["provider"]["embedded_model"]
    else:
        embedded = embedded_model_file(config.settings).name if choice.provider.name == EMBEDDED else None
    lock = _ROOT / "uv.lock"
    return {
        "experiment": config.experiment,
        "concurrency": config.concurrency,
        "sample": dict(sample),
        "revision": loaded.revision,
        "model_words": config.model_words,
        "dataset": {
            "source": loaded.source,
            "sha256": loaded.sha256,
            "aliases_sha256": loaded.aliases_sha256,
            **_corpus(config),
        },
        "provider": {
            "name": choice.provider.name,
            "base_url": choice.base_url,
            "models": dict(choice.models),
            "embedded_model": embedded,
        },
        "own_files": own_files(config.settings),
        "settings": config.settings.model_dump(mode="json"),
        "commit": commit(),
        "lock": hashlib.sha256(lock.read_bytes()).hexdigest()[:12] if lock.is_file() else None,
        "version": version("meta-agent-rag"),
    }


def _corpus(config: RunConfig) -> dict[str, str]:
    """A digest of the documents of a corpus of the user's own."""
    if config.corpus in (None, SAMPLE) or config.recorded is not None:
        return {}
    held = read_documents(config.settings.marag_data_dir, str(config.corpus))
    texts = sorted((document.id, document.content_hash) for document in held)
    return {"corpus_sha256": hashlib.sha256(repr(texts).encode()).hexdigest()}


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
    return {**described, "experiment": named, "settings": settings, "pooled": described["sample"]["pooled"]}


def recorded_settings(run: Mapping[str, Any]) -> Settings:
    """The settings of a recorded run; keys are neither recorded nor needed, and settings since removed are left out.

    A record may come from anyone, so it names no folder to write to, no address to contact and no device.
    """
    given = {name: value for name, value in run["settings"].items() if name in _recordable()}
    values = {**given, "cost_limit_usd": None}
    provider = providers().get(run["provider"].get("name", ""))  # FLASH_MODEL names one of LangChain's
    if provider is not None:
        values |= {"llm_provider": provider.name, **({provider.key: "replay"} if provider.key else {})}
    try:
        Settings(**values)
    except ValidationError as error:  # values that a setting had when the record was made, and no longer has
        values = {name: values[name] for name in values if name not in {fault["loc"][0] for fault in error.errors()}}
    return Settings.load(**values)


@cache
def _recordable() -> frozenset[str]:
    """Names of the settings that are read from a record: none that names a file, folder or address to be used."""
    recorded = {"llm_base_url", "embedded_model_path"}  # only their names matter
    local = (Path, PlacePath | None, Url | None, Key | None)
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

    Servers may move and keys may change: of an address only whether it is set counts.
    """
    shaping = (name for name in sorted(Settings.model_fields) if not name.endswith(("_key", "_token")))
    return {
        "data": [run["dataset"].get(name) for name in ("sha256", "aliases_sha256")],
        "corpus": run["dataset"].get("corpus_sha256"),
        "provider": {name: value for name, value in run["provider"].items() if name != "base_url"},
        "own files": run.get("own_files"),
        **{name.upper(): _in_force(name, run["settings"]) for name in shaping if name not in _FREE},
    }


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The conditions in which two runs differ."""
    before, now = conditions(one), conditions(other)
    unknown = None in (before["corpus"], now["corpus"])  # of a run by an earlier version
    return [name for name in before if before[name] != now[name] and not (name == "corpus" and unknown)]


def _in_force(name: str, settings: Mapping[str, Any]) -> object:
    """A setting's value as JSON, or its default if it was added later."""
    value = settings.get(name, Settings.model_fields[name].get_default(call_default_factory=True))
    if name.endswith("_url"):
        return value is not None
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
        edits = _git("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color", *_CODE_FILES)
        new = _git("ls-files", "-z", "--others", "--exclude-standard", *_CODE_FILES).split("\0")
        edits += "".join(f"{name}\n{(_ROOT / name).read_text('utf-8', 'replace')}" for name in new if name)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}-changed-{hashlib.sha256(edits.encode()).hexdigest()[:8]}" if edits else head


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, timeout=_GIT_SECONDS)
    return done.stdout.decode("utf-8", "backslashreplace").strip()
