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
_INTEGRATIONS: Mapping[str, tuple[str, str, str | None, str | None]] = {
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


class Provider(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """One row of `providers.yaml`, where the fields are explained, or a provider of LangChain's.

    The latter's models are of the class `chat` in `module`, or are given by the caller.
    """

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
    module: str | None = None
    chat: str | None = None

    @classmethod
    def of_langchain(cls, vendor: str) -> "Provider":
        """The provider of an integration, or of a model that the caller gives; it or its server queues calls."""
        module, chat, key, prices = _INTEGRATIONS.get(vendor, ("", None, None, vendor))
        return cls(
            name=vendor,
            label=f"the LangChain model by {vendor}",
            key=key,
            json_mode="json_object",
            limit="max_completion_tokens" if vendor == "openai" else "max_tokens",
            concurrency={"flash": 1000, "pro": 1000},
            context=32_000,
            prices=prices,
            module=module,
            chat=chat,
        )


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model at an address, with its request parameters.

    `name` is its name in roles: a tier, PROVIDER:MODEL, or a name in MODEL_ROLES' file. `provider` is the row of
    `providers.yaml` with the endpoint's own values applied. `missing_key` is the variable of its key if that is not
    set: a replay needs none. `seconds` is its own time limit; `body` and `headers` are added to every request. `given`
    is the caller's own chat model.
    """

    name: str
    provider: Provider
    base_url: str | None
    api_key: SecretStr | None
    model: str
    concurrency: int
    missing_key: str | None = None
    thinking: bool = False
    seconds: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, SecretStr] = field(default_factory=dict)
    given: Any = field(default=None, compare=False, repr=False)

    @property
    def is_embedded(self) -> bool:
        """Whether it runs in a child process."""
        return self.provider.name == EMBEDDED

    @property
    def is_langchain(self) -> bool:
        """Whether LangChain knows its address and protocol, and not we."""
        return self.provider.module is not None

    @property
    def has_own_address(self) -> bool:
        """Whether its address differs from its provider's, so that only the server knows which model it serves."""
        known = self.is_embedded or self.is_langchain
        return not known and self.base_url != providers()[self.provider.name].base_url

    @property
    def where(self) -> str:
        """The provider and its address, for messages."""
        if self.is_langchain:
            return f"{self.model} by {self.provider.name}"
        return f"{self.provider.label} at {self.base_url}"

    @property
    def place(self) -> str:
        """Its provider, or the host of its own address."""
        host = urlsplit(self.base_url or "").netloc if self.has_own_address else ""
        return host or (self.provider.name if self.is_langchain else self.provider.label)

    def require(self) -> None:
        """Raise `SettingsError` if its key is not set, or LangChain's integration is not installed."""
        module = self.provider.module
        if module and find_spec(module) is None:
            raise SettingsError(
                f"The model {self.provider.name}:{self.model} needs a package that is not installed; run: pip install "
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
    known = () if settings.llm_base_url else (*_INTEGRATIONS, *providers())
    own: dict[Tier, Endpoint] = {}
    reasons = []
    models: Mapping[Tier, str | None] = {"flash": settings.flash_model, "pro": settings.pro_model}
    for tier, model in models.items():
        if (role := settings.model_roles.roles.get(tier)) is not None:
            own[tier] = _named(role, settings)
            reasons.append(f"MODEL_ROLES has {tier}={role}")
        elif model and ":" in model and model.partition(":")[0] in known:
            own[tier] = replace(_named(model, settings), thinking=_thinks(tier, settings))
            reasons.append(f"{tier.upper()}_MODEL is {model!r}")
    if not own:
        return _chosen(settings)
    flash = own["flash"] if "flash" in own else _chosen(settings).tiers["flash"]
    pro = own.get("pro")
    if pro is None:
        pro = replace(flash, thinking=flash.thinking or settings.pro_thinking)
        if settings.pro_model and "flash" not in settings.model_roles.roles and not flash.is_embedded:
            pro = replace(pro, model=settings.pro_model)  # another model of the provider that FLASH_MODEL names
    tiers: Mapping[Tier, Endpoint] = {"flash": replace(flash, name="flash"), "pro": replace(pro, name="pro")}
    return Choice(tiers=tiers, reason=", ".join(reasons))


def _thinks(tier: Tier, settings: Settings) -> bool:
    return settings.flash_thinking if tier == "flash" else settings.pro_thinking


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
    diverts = settings.llm_base_url and name != COMPATIBLE
    key = settings.secret(provider.key.upper(), by="LLM_BASE_URL" if diverts else None) if provider.key else None
    if key is None and settings.llm_base_url:
        key = settings.llm_api_key
    elif key is None and provider.key and name != COMPATIBLE:
        raise SettingsError(
            f"LLM_PROVIDER is {name!r} but {provider.key.upper()} is not set; set it in the environment or .env."
        )
    base_url = settings.llm_base_url or provider.base_url
    if name == COMPATIBLE and not base_url:
        raise SettingsError(
            f"LLM_PROVIDER is {name!r} but LLM_BASE_URL is not set; set it, for instance to http://127.0.0.1:8000/v1."
        )
    flash = provider.flash if name == EMBEDDED else settings.flash_model or provider.flash
    pro = flash if name == EMBEDDED else settings.pro_model or provider.pro or flash
    if name == EMBEDDED and (file := own_model_file(settings)) is not None:
        flash = pro = file.stem  # one file serves both tiers
    if flash is None or pro is None:
        raise SettingsError("FLASH_MODEL is not set; name the model that LLM_BASE_URL serves (PRO_MODEL follows it).")
    endpoint = Endpoint(
        name="flash",
        provider=provider,
        base_url=base_url,
        api_key=key,
        model=flash,
        concurrency=provider.concurrency["flash"],
        thinking=settings.flash_thinking,
    )
    slots = provider.concurrency["pro"]
    second = replace(endpoint, name="pro", model=pro, concurrency=slots, thinking=settings.pro_thinking)
    return Choice(tiers={"flash": endpoint, "pro": second}, reason=reason)


def _named(name: str, settings: Settings) -> Endpoint:
    """An endpoint in MODEL_ROLES' table, or PROVIDER:MODEL."""
    known = settings.model_roles.endpoints
    provider, colon, model = name.partition(":")
    row = known.get(name)
    if row is None and colon and model and provider in (*_INTEGRATIONS, *providers()):
        row = EndpointRow(provider=provider, model=model)
    if row is None:
        raise SettingsError(
            f"MODEL_ROLES names the unknown endpoint {name!r}; choose from: {', '.join([*known, *get_args(Tier)])}, or "
            "write PROVIDER:MODEL."
        )
    if row.given is not None or row.provider in _INTEGRATIONS:
        standard = Provider.of_langchain(row.provider)
    else:
        standard = named("provider", row.provider, providers())
    own = {field: value for field in _OVERRIDDEN if (value := getattr(row, field)) is not None}
    base_url, model = row.base_url or standard.base_url, row.model or standard.flash or ""
    if standard.name == EMBEDDED:
        file = own_model_file(settings)
        model = model if file is None else file.stem
    elif standard.module is None and not (base_url and model):
        lacking = "model" if base_url else "base_url"
        raise SettingsError(f"The endpoint {name!r} of MODEL_ROLES has no {lacking}; add it to its row.")
    # the provider's key is only sent to the provider's address
    variable = row.key or ((standard.key or "").upper() if base_url == standard.base_url and not row.given else "")
    key = settings.secret(variable, by="MODEL_ROLES" if row.key else None) if variable else None
    return Endpoint(
        name=name,
        provider=standard.model_copy(update=own),
        base_url=base_url,
        api_key=key,
        missing_key=variable if variable and key is None else None,
        model=model,
        concurrency=row.concurrency or standard.concurrency["flash"],
        thinking=row.thinking,
        seconds=row.seconds,
        body=row.body,
        headers=row.headers,
        given=row.given,
    )


_OVERRIDDEN = ("json_mode", "context", "logprobs", "prices")
