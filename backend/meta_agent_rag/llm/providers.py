"""Providers are rows of `providers.yaml`; an endpoint is a provider's model at an address, chosen by the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, Field, SecretStr

from ..discovery import named
from ..errors import SettingsError, UnknownNameError
from ..settings import EndpointRow, JsonMode, Settings, Tier
from .local import own_model_file

COMPATIBLE = "compatible"
EMBEDDED = "embedded"
LANGCHAIN = "langchain"
"""The provider of a caller's own chat model in MODEL_ROLES' table."""
INTEGRATIONS: Mapping[str, tuple[str, str, str | None, str | None]] = {
    "anthropic": ("langchain_anthropic", "ChatAnthropic", "ANTHROPIC_API_KEY", "anthropic"),
    "azure_openai": ("langchain_openai", "AzureChatOpenAI", None, "azure"),
    "bedrock": ("langchain_aws", "ChatBedrockConverse", None, "aws"),
    "cohere": ("langchain_cohere", "ChatCohere", "COHERE_API_KEY", "cohere"),
    "fireworks": ("langchain_fireworks", "ChatFireworks", "FIREWORKS_API_KEY", "fireworks"),
    "google_genai": ("langchain_google_genai", "ChatGoogleGenerativeAI", "GOOGLE_API_KEY", "google"),
    "google_vertexai": ("langchain_google_vertexai", "ChatVertexAI", None, "google"),
    "huggingface": ("langchain_huggingface", "ChatHuggingFace", None, None),
    "mistralai": ("langchain_mistralai", "ChatMistralAI", "MISTRAL_API_KEY", "mistral"),
    "ollama": ("langchain_ollama", "ChatOllama", None, "free"),
    "perplexity": ("langchain_perplexity", "ChatPerplexity", "PPLX_API_KEY", "perplexity"),
    "together": ("langchain_together", "ChatTogether", "TOGETHER_API_KEY", "together"),
    "xai": ("langchain_xai", "ChatXAI", "XAI_API_KEY", "x-ai"),
}
"""LangChain's integrations as `init_chat_model` spells them: module, class, key, and the provider in genai-prices."""

_QUEUED = 1000
"""Calls in progress to a LangChain model: it or its server queues them."""
_USUAL_WINDOW = 32_000


class Provider(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """One row of `providers.yaml`; the fields are explained there."""

    name: str
    label: str
    base_url: str | None = None
    key: str | None = None
    flash: str | None = None
    pro: str | None = None
    json_mode: JsonMode = Field(alias="json")
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    thinking_off: Mapping[str, Any] = {}
    thinking_on: Mapping[str, Any] = {}
    concurrency: Mapping[Tier, int]
    context: int
    seconds: int = 180
    seeds: bool = False
    logprobs: bool = False
    reports_balance: bool = False
    prices: str | None = None
    source: str | None = None


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model at an address, with its request parameters.

    `name` is its name in roles: a tier, PROVIDER:MODEL, or a name in MODEL_ROLES' file. `provider` is the row of
    `providers.yaml` with the endpoint's own values applied. Endpoints of one `connection` share a client.
    `missing_key` is the variable of its key if that is not set: a replay needs none. `seconds` is its own time
    limit; `body` and `headers` are added to every request. `integration` is LangChain's name of the provider if the
    protocol is not OpenAI's.
    """

    name: str
    connection: str
    provider: Provider
    base_url: str | None
    api_key: SecretStr | None
    model: str
    concurrency: int
    missing_key: str | None = None
    integration: str = ""
    thinking: bool = False
    seconds: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, SecretStr] = field(default_factory=dict)

    @property
    def is_embedded(self) -> bool:
        """Whether it runs in a child process."""
        return self.provider.name == EMBEDDED

    @property
    def has_own_address(self) -> bool:
        """Whether its address differs from its provider's, so that only the server knows which model it serves."""
        own = self.is_embedded or self.integration
        return not own and self.base_url != providers()[self.provider.name].base_url

    @property
    def vendor(self) -> str:
        """The provider's name in the ledger."""
        return self.integration or self.provider.name

    @property
    def where(self) -> str:
        """The provider and its address, for messages."""
        if self.integration:
            return (
                f"{self.model} by {self.integration}" if self.integration in INTEGRATIONS else f"the model {self.model}"
            )
        return f"{self.provider.label} at {self.base_url}"

    @property
    def place(self) -> str:
        """Its provider, or the host of its own address."""
        host = urlsplit(self.base_url or "").netloc if self.has_own_address else ""
        return host or self.integration or self.provider.label

    def require(self) -> None:
        """Raise `SettingsError` if its key is not set, or LangChain's integration is not installed."""
        module = INTEGRATIONS[self.integration][0] if self.integration in INTEGRATIONS else None
        if module is not None and find_spec(module) is None:
            raise SettingsError(
                f"The model {self.integration}:{self.model} needs a package that is not installed; run: pip install "
                f"{module.replace('_', '-')}."
            )
        if self.missing_key is not None:
            raise SettingsError(
                f"The model {self.name!r} needs the key {self.missing_key}, which is not set; set it in the "
                "environment or .env."
            )

    def window(self, settings: Settings) -> int:
        """The tokens that prompt and reply share."""
        return settings.embedded_context_tokens if self.is_embedded else self.provider.context

    def thinking_room(self, settings: Settings) -> int:
        """Tokens allowed for hidden reasoning before the reply; 0 if it does not think."""
        return min(settings.thinking_tokens, self.window(settings) // 2) if self.thinking else 0


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The endpoints of both tiers, and the reason for the choice; the flash tier's provider is that of the run."""

    tiers: Mapping[Tier, Endpoint]
    reason: str

    @property
    def provider(self) -> Provider:
        """The provider of a run."""
        return self.tiers["flash"].provider

    @property
    def base_url(self) -> str | None:
        """Its address."""
        return self.tiers["flash"].base_url

    @property
    def api_key(self) -> SecretStr | None:
        """Its key."""
        return self.tiers["flash"].api_key

    @property
    def models(self) -> Mapping[Tier, str]:
        """The models of both tiers."""
        return {tier: endpoint.model for tier, endpoint in self.tiers.items()}


@cache
def providers() -> Mapping[str, Provider]:
    """All providers by name, in the order in which `auto` tries them."""
    rows = yaml.safe_load(files(__package__).joinpath("providers.yaml").read_text(encoding="utf-8"))
    return {name: Provider.model_validate({"name": name, **row}) for name, row in rows.items()}


def choose_provider(settings: Settings) -> Choice:
    """Choose the provider that `LLM_PROVIDER` names, or the first one with a key; MODEL_ROLES may reassign tiers.

    Raises `UnknownNameError`, or `SettingsError` with the missing setting.
    """
    # at LLM_BASE_URL, a colon is part of the name
    known = () if settings.llm_base_url else (*INTEGRATIONS, *providers())
    given = {"flash": settings.flash_model, "pro": settings.pro_model}
    spelled = {tier: name for tier, name in given.items() if name and ":" in name and name.partition(":")[0] in known}
    named = settings.model_roles.roles
    mapped = {tier: name for tier, name in {**spelled, **named}.items() if tier in given}
    if not mapped:
        return _chosen(settings)
    own = {tier: _named(name, settings) for tier, name in mapped.items()}
    if "flash" not in own:
        own["flash"] = _chosen(settings).tiers["flash"]
    tiers: Mapping[Tier, Endpoint] = {
        "flash": replace(own["flash"], name="flash"),
        "pro": replace(own.get("pro", own["flash"]), name="pro"),
    }
    reasons = [
        f"MODEL_ROLES has {tier}={mapped[tier]}" if tier in named else f"{tier.upper()}_MODEL is {mapped[tier]!r}"
        for tier in given
        if tier in mapped
    ]
    return Choice(tiers=tiers, reason=", ".join(reasons))


def endpoint_named(name: str, settings: Settings, choice: Choice) -> Endpoint:
    """The endpoint of a name in MODEL_ROLES: a tier, PROVIDER:MODEL, or one in its file.

    Raises `SettingsError` with the available names, or with the missing field.
    """
    if name in get_args(Tier):
        return next(endpoint for tier, endpoint in choice.tiers.items() if tier == name)
    provider, _, model = name.partition(":")
    own = name not in settings.model_roles.endpoints and provider == choice.provider.name
    if own and model and provider != EMBEDDED:
        return replace(choice.tiers["flash"], name=name, model=model, thinking=False)  # at that provider's address
    return _named(name, settings)


def _chosen(settings: Settings) -> Choice:
    """The provider that LLM_PROVIDER names or `auto` finds, for both tiers."""
    known, name = providers(), settings.llm_provider
    keyed = (
        one for one in known.values() if one.key and one.name != COMPATIBLE and getattr(settings, one.key) is not None
    )
    if name != "auto":
        if name not in known:
            raise UnknownNameError("provider", name, ["auto", *known])
        reason = f"LLM_PROVIDER is {name!r}"
    elif settings.llm_base_url:
        name, reason = COMPATIBLE, "LLM_BASE_URL is set"
    elif (first := next(keyed, None)) is not None:
        name, reason = first.name, f"{(first.key or '').upper()} is set"
    else:
        name, reason = EMBEDDED, "no provider key is set"
    provider = known[name]
    key: SecretStr | None = getattr(settings, provider.key) if provider.key else None
    base_url = settings.llm_base_url or provider.base_url
    if key is None and settings.llm_base_url:
        key = settings.llm_api_key
    elif key is None and provider.key and name != COMPATIBLE:
        raise SettingsError(
            f"LLM_PROVIDER is {name!r} but {provider.key.upper()} is not set; set it in the environment or .env."
        )
    if name == COMPATIBLE and not base_url:
        raise SettingsError(
            f"LLM_PROVIDER is {name!r} but LLM_BASE_URL is not set; set it, for instance to http://127.0.0.1:8000/v1."
        )
    thinking = {"flash": settings.flash_thinking, "pro": settings.pro_thinking}
    tiers: Mapping[Tier, Endpoint] = {
        tier: Endpoint(
            name=tier,
            connection=name,
            provider=provider,
            base_url=base_url,
            api_key=key,
            model=model,
            concurrency=provider.concurrency[tier],
            thinking=thinking[tier],
        )
        for tier, model in _models(settings, provider).items()
    }
    return Choice(tiers=tiers, reason=reason)


def _named(name: str, settings: Settings) -> Endpoint:
    """An endpoint in the file, or PROVIDER:MODEL with the provider's row in `providers.yaml`."""
    known = settings.model_roles.endpoints
    provider, colon, model = name.partition(":")
    if name in known:
        return _of_row(name, known[name], settings)
    if colon and model and provider in INTEGRATIONS:
        return _integration(name, EndpointRow(provider=provider, model=model), settings)
    if colon and model and provider in providers():
        return replace(_of_row(name, EndpointRow(provider=provider, model=model), settings), connection=provider)
    choices = ", ".join([*known, *get_args(Tier)])
    raise SettingsError(
        f"MODEL_ROLES names the unknown endpoint {name!r}; choose from: {choices}, or write PROVIDER:MODEL."
    )


_OVERRIDDEN = ("json_mode", "context", "logprobs", "prices")


def _integration(name: str, row: EndpointRow, settings: Settings) -> Endpoint:
    """A model of LangChain's, by an integration or a caller's own; the latter's provider is that of its prices."""
    _, _, variable, prices = INTEGRATIONS.get(row.provider, ("", "", None, row.prices))
    variable = row.key or variable
    key = settings.secret(variable, foreign=row.key is not None) if variable else None
    return Endpoint(
        name=name,
        connection=name,
        provider=Provider(
            name=LANGCHAIN,
            label="LangChain chat model",
            json_mode="json_object",
            limit="max_completion_tokens" if row.prices == "openai" else "max_tokens",
            concurrency={"flash": _QUEUED, "pro": _QUEUED},
            context=row.context or _USUAL_WINDOW,
            prices=row.prices or prices,
        ),
        integration=row.provider if row.provider in INTEGRATIONS else row.prices or LANGCHAIN,
        base_url=None,
        api_key=key,
        missing_key=variable if key is None else None,
        model=row.model or "",
        concurrency=row.concurrency or _QUEUED,
        seconds=row.seconds,
    )


def _of_row(name: str, row: EndpointRow, settings: Settings) -> Endpoint:
    if row.provider in INTEGRATIONS or row.provider == LANGCHAIN:
        return _integration(name, row, settings)
    standard = named("provider", row.provider, providers())
    own = {field: value for field in _OVERRIDDEN if (value := getattr(row, field)) is not None}
    base_url, model = row.base_url or standard.base_url, row.model or standard.flash
    if standard.name == EMBEDDED:
        model = _models(settings, standard)["flash"]
    elif base_url is None or model is None:
        lacking = "base_url" if base_url is None else "model"
        raise SettingsError(f"The endpoint {name!r} of MODEL_ROLES has no {lacking}; add it to its row.")
    # the provider's key is only sent to the provider's address
    variable = row.key or ((standard.key or "").upper() if base_url == standard.base_url else "")
    key = settings.secret(variable, foreign=row.key is not None) if variable else None
    return Endpoint(
        name=name,
        connection=f"{standard.name} {name}",
        provider=standard.model_copy(update=own),
        base_url=base_url,
        api_key=key,
        missing_key=variable if variable and key is None else None,
        model=model or "",
        concurrency=row.concurrency or standard.concurrency["flash"],
        thinking=row.thinking,
        seconds=row.seconds,
        body=row.body,
        headers=row.headers,
    )


def _models(settings: Settings, provider: Provider) -> Mapping[Tier, str]:
    if provider.name == EMBEDDED and (file := own_model_file(settings)) is not None:
        return dict.fromkeys(("flash", "pro"), file.stem)
    own = provider.name == EMBEDDED  # one file serves both tiers, regardless of the named models
    flash = (None if own else settings.flash_model) or provider.flash
    pro = (None if own else settings.pro_model) or provider.pro or flash
    if flash is None or pro is None:
        raise SettingsError("FLASH_MODEL is not set; name the model that LLM_BASE_URL serves (PRO_MODEL follows it).")
    return {"flash": flash, "pro": pro}
