"""What must be known to repeat a run, for `config.json`."""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from meta_agent_rag.agent.deficits import Deficit, discover_deficits
from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.providers import EMBEDDED, choose_provider
from meta_agent_rag.prompts import prompt, prompt_names

from .config import RunConfig
from .datasets import LoadedQuestions

_ROOT = Path(__file__).parents[1]


def run_config(config: RunConfig, loaded: LoadedQuestions) -> dict[str, Any]:
    """The contents of `config.json`; secrets are masked."""
    choice = choose_provider(config.settings)
    embedded = embedded_model_file(config.settings).name if choice.provider.name == EMBEDDED else None
    return {
        "experiment": experiment(config),
        "concurrency": config.concurrency,
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {
            "name": choice.provider.name,
            "base_url": choice.base_url,
            "models": dict(choice.models),
            "embedded_model": embedded,
        },
        "deficits": {deficit.name: _digest(deficit) for deficit in discover_deficits(config.settings.deficits_dir)},
        "prompts": {name: prompt(name, config.settings.prompts_dir).digest for name in prompt_names()},
        "settings": config.settings.model_dump(mode="json"),
        "commit": commit(),
        "version": version("meta-agent-rag"),
        "python": sys.version.split()[0],
    }


def _digest(deficit: Deficit) -> str:
    """First 12 hex digits of the SHA-256 over what of a deficit reaches a prompt or the loop."""
    shapes = (deficit.when, deficit.directive, deficit.answer_mode, deficit.retrieves, deficit.examples)
    return hashlib.sha256(repr(shapes).encode()).hexdigest()[:12]


def experiment(config: RunConfig) -> dict[str, Any]:
    """What a resumed run must have in common with its beginning."""
    return {
        "dataset": config.dataset,
        "mode": config.mode,
        "methods": list(config.methods),
        "n": config.n,
        "limit": config.limit,
        "seed": config.seed,
        "data_file": None if config.data_file is None else str(config.data_file.resolve()),
        "aliases_file": None if config.aliases_file is None else str(config.aliases_file.resolve()),
        "corpus": config.corpus,
        "without_deficits": list(config.without_deficits),
    }


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of settings that shape answers and differ between two runs."""
    free = {"cost_limit_usd", "llm_timeout_seconds", "llm_max_retries", "response_cache", "hf_token", "marag_data_dir"}
    return sorted(
        name for name in {*before, *now} - free if not name.endswith("_key") and before.get(name) != now.get(name)
    )


def commit() -> str | None:
    """The commit of the checkout, with a mark where files were changed; `None` outside one."""
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}{'-changed' if changed else ''}"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, text=True, timeout=10)
    return done.stdout.strip()
