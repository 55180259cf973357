"""The settings for models: which one serves each stage, and with which parameters."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, StringConstraints

from .setting_roles import ModelRoles, Roles
from .setting_types import Key, ProviderKeys, StageTiers, StageTokens, Url


class ModelSettings(ProviderKeys):
    """Settings for models, after the keys of all providers."""

    llm_provider: str = Field(
        "auto",
        description="Provider by name (see `marag doctor`); `auto` takes the first key found, else the embedded model.",
    )
    llm_base_url: Url | None = Field(
        None,
        description="Any OpenAI-compatible endpoint, for instance http://127.0.0.1:8000/v1 (vLLM, Ollama, llama.cpp).",
    )
    llm_api_key: Key | None = Field(None, description="API key for LLM_BASE_URL, if it requires one.")
    flash_model: str | None = Field(None, description="Model of the flash tier; default: the provider's.")
    pro_model: str | None = Field(None, description="Model of the pro tier; default: the provider's.")
    embedded_model: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)] = Field(
        "auto",
        description="Model of the embedded provider: a name of `marag models`, or `auto`, the largest that is "
        "downloaded and fits this machine's memory, else the packaged SmolLM2-135M-Instruct.",
    )
    embedded_model_path: Path | None = Field(
        None, description="A GGUF file of your own for the embedded provider; comes before EMBEDDED_MODEL."
    )
    embedded_context_tokens: PositiveInt = Field(
        8192, description="Context window of the embedded model in tokens, per slot."
    )
    stage_tiers: StageTiers = Field(
        default_factory=dict,
        description="Stages moved to another tier, for instance evaluate=flash,short_answer=flash.",
    )
    tiers: Literal["by_stage", "flash", "pro"] = Field(
        "by_stage",
        description="One tier for all stages, or `by_stage`: first drafts and look-ups by flash, repairs and critic by "
        "pro. Benchmarks default to `flash`, so that every method has the same model.",
    )
    model_roles: Roles = Field(
        default_factory=ModelRoles,
        description="Roles served by other endpoints, as judge=openai:gpt-4.1,writer=pro, or a .yaml file of "
        "endpoints and roles (docs/models.md).",
    )
    flash_thinking: bool = Field(
        False, description="Enable thinking for the flash tier, which then ignores temperature."
    )
    pro_thinking: bool = Field(False, description="Enable thinking for the pro tier, which then ignores temperature.")
    thinking_tokens: PositiveInt = Field(
        16384,
        description="Tokens for hidden reasoning, beyond the limit of the stage, where thinking is on; at most half "
        "the context window.",
    )
    stage_tokens: StageTokens = Field(
        default_factory=dict,
        description="Maximum tokens of a stage's reply, for instance write=900,look_up=64; default: llm/stages.yaml.",
    )
    writer_temperature: Annotated[float, Field(ge=0.0, le=2.0)] = Field(
        0.0, description="Sampling temperature of every stage."
    )
    llm_timeout_seconds: PositiveFloat | None = Field(
        None,
        description="Time limit for one attempt of a call, including its retries; a call that hangs is "
        "attempted up to three times. Default: 180, or 900 with the embedded model.",
    )
    llm_max_retries: Annotated[int, Field(ge=0, le=20)] = Field(
        3, description="Retries of a call that failed with 408, 409, 429, 5xx or a lost connection."
    )
    response_cache: bool = Field(True, description="Answer a repeated call from the local cache at no cost.")
    cost_limit_usd: Annotated[float, Field(gt=0.0)] | None = Field(
        None, description="Stop before a call that could raise the cost of this run above this many dollars."
    )
    price_as: str | None = Field(
        None,
        description="Price all tokens as if this model had used them, except those of endpoints that MODEL_ROLES calls "
        "free; this changes reported costs only.",
    )
