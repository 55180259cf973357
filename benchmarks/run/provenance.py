"""What is needed to reproduce a run, for `config.json`."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any

from meta_agent_rag.agent.deficits import Deficit, discover_deficits
from meta_agent_rag.datasets import LoadedQuestions
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.providers import EMBEDDED, choose_provider, providers
from meta_agent_rag.prompts import prompt, prompt_names
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.settings import ModelRoles, Settings, Url

from .arms import arm_settings
from .config import RunConfig
from .serving import embedded_model_of

_ROOT = Path(__file__).parents[2]
_GIT_SECONDS = 10
_DIFF = (
    "diff",
    "HEAD",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--full-index",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_CODE_FILES = ("--", "backend", "benchmarks", ":!benchmarks/results", "pyproject.toml", "uv.lock")
_USUAL_RULES = tuple(field.default for field in fields(Deficit) if field.name in {"detect", "repair", "heuristic"})
_OF_THIS_MACHINE = ("marag_data_dir", "cost_limit_usd", "encoder_device")
OWN_FILES = (
    *("prompts_dir", "deficits_dir", "operators_dir", "routes_dir", "methods_dir", "datasets_dir"),
    "monitor_calibration",
)
"""Settings that name the user's own files, which records do not contain."""
RECORDED_FILES = ("deficits", "calibration", "prompts", "rows")
"""Parts of `config.json` that are digests of the versions in use."""


def run_config(
    config: RunConfig, loaded: LoadedQuestions, served: Mapping[str, Mapping[str, Any]], sample: Mapping[str, Any]
) -> dict[str, Any]:
    """The contents of `config.json`; secrets are masked.

    `served` is what `serving.served_by` returns about endpoints, and `sample` states the whole that a shard is part of.
    """
    choice = choose_provider(config.settings)
    known = config.recorded  # a replay may run where neither the model nor its encoder is installed
    own = own_code(config.settings)
    return {
        "experiment": experiment(config),
        **({} if own is None else {"own_code": own}),
        "concurrency": config.concurrency,
        "sample": dict(sample),
        "revision": loaded.revision,
        "model_words": config.model_words,
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {
            "name": choice.provider.name,
            "base_url": choice.base_url,
            "models": dict(choice.models),
            "embedded_model": _embedded_model(config, choice.provider.name)
            if known is None
            else known["provider"]["embedded_model"],
        },
        "endpoints": {role: dict(one) for role, one in served.items()},
        "encoders": _encoders(config) if known is None else known["encoders"],
        **(
            _files(config)
            if known is None or not config.recorded_arms
            else {name: known[name] for name in RECORDED_FILES}
        ),
        "settings": config.settings.model_dump(mode="json"),
        "commit": commit(),
        "version": version("meta-agent-rag"),
        "python": sys.version.split()[0],
    }


def _embedded_model(config: RunConfig, provider: str) -> str | None:
    if provider != EMBEDDED:
        return None
    return embedded_model_file(config.settings).name


def _encoders(config: RunConfig) -> dict[str, str]:
    """The encoders in use, by their names in the settings: one that is unavailable is replaced."""
    settings = [arm_settings(arm, config.settings) for arm in config.arms]
    names = dict.fromkeys(own.monitor_encoder for own in settings)
    if config.mode == "open_domain":
        names[config.settings.encoder] = None
    return {name: load_encoder(config.settings, name).encoder.name for name in names}


def _files(config: RunConfig) -> dict[str, Any]:
    """Digests of the deficits, prompts and calibration in use, and of those that single rows use instead."""
    shared = _digests(config.settings)
    own = {arm.base: _digests(arm_settings(arm, config.settings)) for arm in config.arms if arm.assignments}
    return {**shared, "rows": {name: digests for name, digests in own.items() if digests != shared}}


def changed_files(run: Mapping[str, Any], settings: Settings) -> list[str]:
    """Prompts and deficits of a record that have changed since, each with both digests."""
    now = {kind: _digests(settings)[kind] for kind in ("prompts", "deficits")}
    former = {one.name: _former_digest(one) for one in discover_deficits(settings.deficits_dir)}
    return [
        f"{name} {digest}, now {now[kind].get(name, 'gone')}"
        for kind in now
        for name, digest in run.get(kind, {}).items()
        if digest not in {now[kind].get(name), former.get(name)}
    ]


def _digests(settings: Settings) -> dict[str, Any]:
    return {
        "deficits": {deficit.name: _digest(deficit) for deficit in discover_deficits(settings.deficits_dir)},
        "calibration": _file_digest(settings.monitor_calibration),
        "prompts": {
            name: prompt(name, settings.prompts_dir, methods=settings.methods_dir).digest
            for name in prompt_names(settings.methods_dir)
        },
    }


def _file_digest(path: Path | None) -> str | None:
    """First 12 hex digits of a file's SHA-256; `None` if the file is missing."""
    return None if path is None or not path.is_file() else hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _digest(deficit: Deficit) -> str:
    """First 12 hex digits of the SHA-256 over a deficit's fields and the file of its rules: alike in every Python."""
    data = (deficit.when, deficit.directive, deficit.answer_mode, deficit.retrieves, deficit.examples)
    more = (deficit.priority, deficit.quadrant, deficit.last_resort, deficit.speaks)
    rules = [rule for rule in (deficit.detect, deficit.repair, deficit.heuristic) if rule not in _USUAL_RULES]
    written = {text: None for rule in rules if (text := _written(rule)) is not None}
    given = [one for rule in rules for one in _given(rule)]
    return hashlib.sha256(repr((*data, *more, *written, *given)).encode()).hexdigest()[:12]


def _former_digest(deficit: Deficit) -> str:
    """The digest in records of 2026, which holds in one version of Python and leaves out `detect`."""
    shapes = (deficit.when, deficit.directive, deficit.answer_mode, deficit.retrieves, deficit.examples)
    rule = getattr(deficit.heuristic, "__code__", None)
    rest = (deficit.priority, deficit.quadrant, None if rule is None else _code(rule), *_given(deficit.heuristic))
    return hashlib.sha256(repr((*shapes, *rest)).encode()).hexdigest()[:12]


def _written(rule: object) -> str | None:
    """The file that defines a rule, without comments on lines of their own; without a file, the rule's byte code."""
    code = getattr(rule, "__code__", None)
    if code is None:
        return None
    try:
        text = Path(code.co_filename).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return repr(_code(code))
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def _given(rule: object) -> tuple[str, ...]:
    """A rule's data besides its code: defaults, and values of the enclosing function."""
    named = getattr(rule, "__kwdefaults__", None) or {}
    cells = [cell.cell_contents for cell in getattr(rule, "__closure__", None) or ()]
    values = (*(getattr(rule, "__defaults__", None) or ()), *(named[name] for name in sorted(named)), *cells)
    data = (str, int, float, bool, tuple, frozenset)
    return tuple(repr(_constant(value)) for value in values if isinstance(value, data))


def _code(rule: CodeType) -> tuple[str, str, tuple[str, ...]]:
    """Byte code, constants and names, without the addresses and the order of sets, which differ by process."""
    constants = tuple(map(_constant, rule.co_consts))
    return rule.co_code.hex(), repr(constants), rule.co_names


def _constant(value: object) -> object:
    if isinstance(value, CodeType):
        return _code(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def experiment(config: RunConfig) -> dict[str, Any]:
    """What a resumed run must have in common with its start."""
    return {
        "dataset": config.dataset,
        "mode": config.mode,
        "methods": list(config.methods),
        "n": config.n,
        "limit": config.limit,
        "sample_ids": list(config.sample_ids),
        "shard": config.shard,
        "seed": config.seed,
        "data_file": None if config.data_file is None else str(config.data_file.resolve()),
        "aliases_file": None if config.aliases_file is None else str(config.aliases_file.resolve()),
        "revision": config.revision,
        "corpus": config.corpus,
        "sweeps": list(config.sweeps),
        "ablations": list(config.ablations),
        "oracles": list(config.oracles),
        "equals": list(config.equals),
        "repeats": config.repeats,
        "judge": config.judge,
    }


def as_begun(config: RunConfig, was: Mapping[str, Any]) -> RunConfig:
    """The configuration with the experiment of an earlier run, as `experiment` described it."""
    try:
        return replace(
            config,
            dataset=was["dataset"],
            mode=was["mode"],
            methods=tuple(was["methods"]),
            n=was["n"],
            limit=was["limit"],
            sample_ids=tuple(was["sample_ids"]),
            shard=was.get("shard"),
            seed=was["seed"],
            data_file=config.data_file or (None if was["data_file"] is None else Path(was["data_file"])),
            aliases_file=config.aliases_file or (None if was["aliases_file"] is None else Path(was["aliases_file"])),
            revision=was.get("revision"),
            corpus=was["corpus"],
            sweeps=tuple(was["sweeps"]),
            ablations=tuple(was["ablations"]),
            oracles=tuple(was["oracles"]),
            equals=tuple(was.get("equals", ())),
            repeats=was["repeats"],
            judge=was["judge"],
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            f"The run's configuration lacks {error}: it was started by another version; start a new run."
        ) from None


def recorded_run(described: Mapping[str, Any]) -> dict[str, Any]:
    """The first line of a record: the result of `run_config`, without this machine's folders."""
    named = {**described["experiment"]}
    for name in ("data_file", "aliases_file"):
        named[name] = None if named[name] is None else Path(named[name]).name
    settings = {name: value for name, value in described["settings"].items() if name not in _OF_THIS_MACHINE}
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
    """The settings of a recorded run; keys are neither recorded nor needed.

    A record may come from anyone, so it names no folder to write to, no address to contact and no device.
    """
    given = {name: value for name, value in run["settings"].items() if name in _recordable()}
    provider = run["provider"]["name"]
    key = providers()[provider].key
    keys: dict[str, object] = {} if key is None else {key: "replay"}
    chosen = {"llm_provider": provider, "embedded_model": embedded_model_of(given), "cost_limit_usd": None}
    return Settings.load(**{**given, **keys, **chosen})


@cache
def _recordable() -> frozenset[str]:
    """Names of the settings that a record may contain, including the user's own files, so that they can be refused."""
    recorded = {"llm_base_url", "embedded_model_path", *OWN_FILES}  # only the names of the first two
    local = (Path, Path | None, Url | None)
    return frozenset(
        name
        for name, field in Settings.model_fields.items()
        if not name.endswith(("_key", "_token"))
        and name not in _OF_THIS_MACHINE
        and (name in recorded or field.annotation not in local)
    )


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of settings that shape answers and differ between two runs."""
    free = {*_OF_THIS_MACHINE, "llm_timeout_seconds", "llm_max_retries", "response_cache", "hf_token"}
    names = sorted(name for name in {*before, *now} - free if not name.endswith("_key"))
    return [name for name in names if _in_force(name, before) != _in_force(name, now)]


_OF_THE_NODE = ("base_url", "key", "headers", "concurrency", "seconds")
"""The fields of an endpoint that differ between nodes or accounts and that no reply depends on."""


def _in_force(name: str, settings: Mapping[str, Any]) -> object:
    """A setting's value, or its default if it was added later; for an address only whether it is set: servers move."""
    field = Settings.model_fields.get(name)
    value = settings[name] if name in settings or field is None else field.get_default(call_default_factory=True)
    if name.endswith("_url"):
        return value is not None
    if name == "embedded_model":
        return embedded_model_of(settings)
    if name == "model_roles":
        roles = ModelRoles.model_validate(value)
        return roles.roles, {key: row.model_dump(exclude=set(_OF_THE_NODE)) for key, row in roles.endpoints.items()}
    return json.loads(json.dumps(value, default=str))


def commit() -> str | None:
    """The commit of the checkout, with a digest of the changes if files were changed; `None` outside one."""
    if not (_ROOT / "backend").is_dir():
        return None  # installed: any enclosing repository is not ours
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
        edits = _git(*_DIFF, *_CODE_FILES) if changed else ""
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}-changed-{hashlib.sha256(edits.encode()).hexdigest()[:8]}" if changed else head


def own_code(settings: Settings) -> str | None:
    """A digest of the user's own methods, operators, routes and data sets; `None` if there are none."""
    folders = (settings.methods_dir, settings.operators_dir, settings.routes_dir, settings.datasets_dir)
    files = [file for folder in folders if folder is not None for file in sorted(folder.glob("*.py"))]
    texts = [(file.name, file.read_bytes()) for file in files]
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:12] if texts else None


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, timeout=_GIT_SECONDS)
    return done.stdout.decode("utf-8", "backslashreplace").strip()
