"""Assembles a language model from the settings, or from chat models of the caller's."""

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from ..errors import InputError
from ..settings import EndpointRow, ModelRoles, Settings, Tier
from .budget import Budget
from .cache import ResponseCache
from .client import LanguageModel
from .connections import Connections
from .embedded import embedded_model_file
from .ledger import Ledger
from .local import decided, own_model_file
from .providers import Endpoint, choose_provider
from .stages import CHAT, Use, endpoints_in_use

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_LOG = logging.getLogger(__name__)
Given: TypeAlias = "BaseChatModel | LanguageModel | None"
"""What a caller may pass as `model`: any chat model of LangChain's, or an open language model."""


@asynccontextmanager
async def open_language_model(
    settings: Settings,
    *,
    model: Given = None,
    pro: "BaseChatModel | None" = None,
    ledger_path: Path | None = None,
    paid_usd: Decimal = Decimal(0),
    reservations: Path | None = None,
) -> AsyncIterator[LanguageModel]:
    """The model chosen by the settings, closed at the end; an open `model` is passed through.

    A chat model of LangChain's serves instead, for both tiers unless there is a `pro`.
    `paid_usd` is what an earlier part of the same run has paid, counted against its cost limit;
    `reservations` is a file with the maximum cost of calls in progress.
    """
    if isinstance(model, LanguageModel):
        yield model
        return
    settings = decided(with_model(settings, model, pro))
    if model is None:
        _LOG.info("Model: %s.", described(settings))
        for endpoint in endpoints_in_use(settings).values():
            endpoint.require()
    cache = ResponseCache(settings.marag_data_dir / "responses.sqlite") if settings.response_cache else None
    opened = LanguageModel(
        settings=settings,
        choice=choose_provider(settings),
        connections=Connections(settings=settings, stand_in=_stand_in(model)),
        ledger=Ledger(path=ledger_path or settings.marag_data_dir / "ledger.jsonl"),
        budget=Budget.under(settings.cost_limit_usd, paid_usd=paid_usd, journal=reservations),
        cache=cache,
    )
    try:
        yield opened
    finally:
        await opened.aclose()


def with_model(settings: Settings, model: Given, pro: "BaseChatModel | None" = None) -> Settings:
    """The settings with a caller's chat models as both tiers; a scripted one plays whatever the settings choose.

    Raises `InputError` if something is no chat model.
    """
    if model is None and pro is None:
        return settings
    from langchain_core.language_models import BaseChatModel

    for one in (model, pro):
        if not isinstance(one, BaseChatModel | LanguageModel | None):
            raise InputError(
                f"The model must be a chat model of LangChain's (BaseChatModel), not {type(one).__name__}; pass, for "
                'instance, ChatOpenAI(model="gpt-4.1-mini").'
            )
    flash = None if isinstance(model, LanguageModel) or _stand_in(model) else model
    given = {"flash": flash, "pro": pro or flash}
    rows = {f"given_{tier}": _row(one) for tier, one in given.items() if one is not None}
    if not rows:
        return settings
    roles = settings.model_roles
    tiers = {name.removeprefix("given_"): name for name in rows}
    changed = ModelRoles(endpoints={**roles.endpoints, **rows}, roles={**roles.roles, **tiers})
    return settings.model_copy(update={"model_roles": changed})


def _stand_in(model: Given) -> "BaseChatModel | None":
    """The model if it is scripted."""
    if model is None or isinstance(model, LanguageModel):
        return None
    return model if model._llm_type == "scripted" else None


def _row(model: "BaseChatModel") -> EndpointRow:
    """The endpoint of a caller's model, as far as the model describes itself."""
    about = model._get_ls_params()
    row = EndpointRow(
        provider=about.get("ls_provider") or "langchain",
        model=about.get("ls_model_name") or type(model).__name__,
        context=(model.profile or {}).get("max_input_tokens"),
    )
    row._given = model
    return row


def described(settings: Settings, uses: Collection[Use] = CHAT) -> str:
    """The serving model, its place, the reason for the choice, and the models of individual roles, in one line.

    Raises `SettingsError` if the embedded model is chosen and not installed.
    """
    used = endpoints_in_use(settings, uses)
    models: dict[str, list[str]] = {}
    for endpoint in used.values():
        if endpoint.name in get_args(Tier) and endpoint.model not in models.setdefault(_place(endpoint, settings), []):
            models[_place(endpoint, settings)].append(endpoint.model)
    served = ", ".join(f"{' and '.join(names)} {place}" for place, names in models.items())
    others = [
        f"{role}: {endpoint.model} {_place(endpoint, settings)}"
        for role, endpoint in used.items()
        if endpoint.name not in get_args(Tier)
    ]
    return "; ".join([*filter(None, [served]), choose_provider(settings).reason, *others])


def _place(endpoint: Endpoint, settings: Settings) -> str:
    if not endpoint.is_embedded:
        return f"at {endpoint.place}"
    embedded_model_file(settings)
    small = own_model_file(settings) is None
    return "on this machine, a very small model (`marag models` lists better ones)" if small else "on this machine"
