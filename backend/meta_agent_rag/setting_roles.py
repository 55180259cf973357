"""The assignment of endpoints to roles: the value of MODEL_ROLES, from pairs or from a YAML file.

A role is one in `llm/stages.yaml`, a single stage, or a tier. It is assigned an endpoint in the file, a tier, or
PROVIDER:MODEL.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, Field, PositiveInt, SecretStr, ValidationError
from pydantic_settings import NoDecode

from .setting_types import CurrentStages, Url, pairs
from .wording import first_fault

JsonMode = Literal["json_object", "json_schema"]
ReplyLimit = Literal["max_tokens", "max_completion_tokens"]
_FORM = "ROLE=ENDPOINT,ROLE=ENDPOINT, for instance judge=openai:gpt-4.1, or give a .yaml file"


class EndpointRow(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """One endpoint in the file: a provider in `providers.yaml`, with the differences.

    `key` names the variable that holds the key, by default the provider's. `body` and `headers` are added to every
    request; their values are never shown. All other fields are those of `providers.yaml`, for this endpoint alone.
    """

    provider: str = "compatible"
    base_url: Url | None = None
    model: str | None = None
    key: str | None = None
    thinking: bool = False
    body: dict[str, Any] = {}
    headers: dict[str, SecretStr] = {}
    json_mode: JsonMode | None = Field(None, alias="json")
    limit: ReplyLimit | None = None
    thinking_off: dict[str, Any] | None = None
    thinking_on: dict[str, Any] | None = None
    concurrency: PositiveInt | None = None
    context: PositiveInt | None = None
    seconds: PositiveInt | None = None
    seeds: bool | None = None
    logprobs: bool | None = None
    prices: str | None = None


class ModelRoles(BaseModel, frozen=True, extra="forbid"):
    """Endpoints by name, and the names that are assigned to roles."""

    endpoints: dict[str, EndpointRow] = {}
    roles: Annotated[dict[str, str], CurrentStages] = {}


def _model_roles(value: object) -> object:
    """Parse `ROLE=ENDPOINT,...`, or the file at that path; a value that is not text is used as it is."""
    if not isinstance(value, str):
        return value
    if not value.endswith((".yaml", ".yml")):
        return {"roles": pairs(value, form=_FORM)}
    try:
        return ModelRoles.model_validate(yaml.safe_load(Path(value).read_text(encoding="utf-8")) or {})
    except ValidationError as error:
        raise ValueError(first_fault(error, with_value=False)) from None
    except OSError as error:
        raise ValueError(f"the file cannot be read ({error.strerror}); check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"the file is not YAML ({' '.join(str(error).split())})") from None


Roles = Annotated[ModelRoles, NoDecode, BeforeValidator(_model_roles)]
