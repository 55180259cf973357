"""Checks everything that a run needs, without spending anything."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Literal, TypeAlias, get_args

from .errors import MetaRagError, UnknownModelError
from .llm.providers import EMBEDDED, Endpoint, choose_provider
from .settings import Settings, Tier
from .wording import counted

_POINTER_HERE = re.compile(r" \(`marag doctor`[^)]*\)")


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One line of the check-up; `remedy` says how to resolve a note or a failure."""

    subject: str = ""
    status: Literal["ok", "note", "fail"] = "ok"
    words: str
    remedy: str = ""


_Check: TypeAlias = Callable[[Settings], Awaitable[CheckResult]]


async def check_up(settings: Settings) -> list[CheckResult]:
    """All results, in the order in which a run needs the components."""
    checks: dict[str, _Check] = {
        "data folder": _data_folder,
        "provider": _provider,
        "model": _model,
        "roles": _roles,
        "prices": _prices,
        "encoder": lambda given: _encoder_called(given, given.encoder),
        "monitor": _monitor,
        "stores": _stores,
        "documents": _documents,
    }
    results: list[CheckResult] = []
    for subject, check in checks.items():
        try:
            results.append(replace(await check(settings), subject=subject))
        except MetaRagError as error:
            words, _, remedy = _POINTER_HERE.sub("", str(error)).partition("; ")
            results.append(CheckResult(subject=subject, status="fail", words=words, remedy=remedy))
    return results


async def _data_folder(settings: Settings) -> CheckResult:
    folder = settings.marag_data_dir
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    try:
        with TemporaryFile(dir=existing) as probe:  # writing also detects a full or locked disk
            probe.write(b"0")
            probe.flush()
    except OSError:
        remedy = "Set MARAG_DATA_DIR to a writable folder."
        return CheckResult(status="fail", words=f"{folder} cannot be written", remedy=remedy)
    return CheckResult(words=f"{folder} (Python {sys.version.split()[0]})")


async def _provider(settings: Settings) -> CheckResult:
    choice = choose_provider(settings)
    models = ", ".join(f"{tier} {model}" for tier, model in choice.models.items())
    return CheckResult(words=f"{choice.provider.label}: {models}; {choice.reason}")


async def _roles(settings: Settings) -> CheckResult:
    """Every endpoint that MODEL_ROLES names: its key is set, and it responds."""
    from .llm.stages import Use, check_stages, endpoints_in_use

    check_stages(settings)
    served = endpoints_in_use(settings, get_args(Use))
    flash = choose_provider(settings).tiers["flash"]
    flash.require()
    others = {
        role: endpoint
        for role, endpoint in served.items()
        if endpoint.name not in get_args(Tier)
        or (endpoint.provider.name, endpoint.base_url) != (flash.provider.name, flash.base_url)
    }
    for endpoint in {endpoint.name: endpoint for endpoint in others.values()}.values():
        endpoint.require()
        if not endpoint.is_embedded:
            await _list_models(endpoint)
    words = ", ".join(f"{role}: {one.model} at {one.place}" for role, one in others.items())
    return CheckResult(words=words or "all served by the tiers (MODEL_ROLES)")


async def _model(settings: Settings) -> CheckResult:
    from .llm.embedded import embedded_model_file
    from .llm.local import fits, listed_model, local_models, own_model_file

    choice = choose_provider(settings)
    if choice.provider.name != EMBEDDED:
        await _list_models(choice.tiers["flash"])
        said = "responds and accepts the key" if choice.base_url else "is installed and has its key; no call was made"
        return CheckResult(words=f"{choice.base_url or choice.provider.name} {said}")
    file = embedded_model_file(settings)
    words = f"{file.name}, {file.stat().st_size / 1e6:.0f} MB"
    if settings.embedded_model_path is not None:
        return CheckResult(words=f"{words} (EMBEDDED_MODEL_PATH)")
    words = f"{words} (EMBEDDED_MODEL={settings.embedded_model})"
    if own_model_file(settings) is None:
        first = next(iter(local_models()))
        remedy = (
            f"For useful answers, run `marag models get {first}` (`marag models` lists more) or set DEEPSEEK_API_KEY."
        )
        return CheckResult(status="note", words=f"{words}: a very small model", remedy=remedy)
    model = listed_model(settings)
    if model is not None and not fits(model, settings):
        words = f"{words}: needs {model.memory(settings) / 1e9:.1f} GB of memory, more than this machine has"
        remedy = "Set EMBEDDED_MODEL=auto or a smaller model from `marag models`, or lower EMBEDDED_CONTEXT_TOKENS."
        return CheckResult(status="note", words=words, remedy=remedy)
    return CheckResult(words=words)


async def _list_models(endpoint: Endpoint) -> None:
    """List the endpoint's models, which costs nothing, or open LangChain's integration; raises a `ModelError`."""
    from .llm.chat import opened
    from .llm.connections import fetched

    if endpoint.is_langchain:
        await asyncio.to_thread(opened, endpoint)
        return
    with suppress(UnknownModelError):  # an endpoint that cannot list models can still answer
        await fetched(endpoint, "/models")


async def _prices(settings: Settings) -> CheckResult:
    from .llm.client import utc_now
    from .llm.pricing import unpriced_models
    from .llm.stages import CHAT, Use, runs_here

    if runs_here(settings, CHAT):
        return CheckResult(words="the embedded model is free")
    if unpriced := unpriced_models(settings, get_args(Use), at=utc_now()):
        remedy = "A cost limit cannot be enforced; set `prices: free` in MODEL_ROLES for a server of your own."
        return CheckResult(status="note", words=f"no known price for {', '.join(unpriced)}", remedy=remedy)
    return CheckResult(words="known for every model (`marag prices`)")


async def _monitor(settings: Settings) -> CheckResult:
    from .agent.monitor import monitor_encoder, policy

    policy(settings)
    await asyncio.to_thread(monitor_encoder, settings)
    return await _encoder_called(settings, settings.monitor_encoder)


async def _encoder_called(settings: Settings, name: str) -> CheckResult:
    from .retrieval.encoders.loading import load_encoder

    choice = await asyncio.to_thread(load_encoder, settings, name)
    if choice.note:
        return CheckResult(status="note", words=choice.note, remedy="No action needed if this is intended.")
    await asyncio.to_thread(lambda: choice.encoder.dimension)  # loads a model of the hub, and says if it cannot
    return CheckResult(words=f"encoder {choice.encoder.name}")


async def _stores(settings: Settings) -> CheckResult:
    from .retrieval.corpus.corpus import list_corpora, reach, stores_for

    await reach(settings)
    found = await asyncio.to_thread(list_corpora, settings.marag_data_dir)
    corpora = ", ".join(f"{one.name} ({counted(one.passages, 'passage')})" for one in found)
    return CheckResult(
        words=f"{stores_for(settings)}; corpora: {corpora or 'none yet, `sample` is built on first use'}",
    )


async def _documents(settings: Settings) -> CheckResult:
    """The components for reading, chunking and citing, and files of one's own, that are resolved only on use."""
    from .agent.deficits import discover_deficits
    from .chat.phrases import check_files
    from .ingestion.pipeline import chunking_of
    from .prompts import check_prompts

    discover_deficits(settings.deficits_dir)
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    check_files(settings.coach_dir)
    chunking_of(settings)
    words = f"chunker {settings.chunker}, citations {settings.citation_style}"
    return CheckResult(words=words)
