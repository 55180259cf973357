"""What the loop demands of a model: of the packaged one no plan and a single route, since it can follow neither."""

from collections.abc import Sequence

from ...llm.local.choice import own_model_file
from ...llm.providers import choose_provider
from ...llm.stages import serving, stage
from ...settings import Settings

_ROUTES = ("plain_pass", "chain_of_thought", "step_by_step", "chain_of_thought", "chain_of_thought")
_ROUTES_OF_THE_PACKAGED = ("plain_pass",)


def with_demands(settings: Settings) -> Settings:
    """The settings with ROUTES and PLANS filled in, unless set, as the models of these stages can follow them."""
    routes = _ROUTES_OF_THE_PACKAGED if _packaged("route", settings) else _ROUTES
    plans = "grammar" if _packaged("plan", settings) else "model"
    usual = {"routes": routes, "plans": plans}
    unset = {name: value for name, value in usual.items() if getattr(settings, name) is None}
    return settings.model_copy(update=unset) if unset else settings


def voters(settings: Settings) -> Sequence[str]:
    """The names of the routes that vote, in the order in which they are drawn."""
    if "vote" in settings.loop_without:
        return ()
    return _ROUTES if settings.routes is None else settings.routes


def _packaged(name: str, settings: Settings) -> bool:
    endpoint = serving(stage(name, settings), settings, choose_provider(settings))
    return endpoint.is_embedded and own_model_file(settings) is None
