"""The types of setting values, and a setting for the key of each provider in `providers.yaml`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, PositiveInt, SecretStr, create_model
from pydantic_settings import BaseSettings, NoDecode

from .discovery import by_todays_stage, todays_stage

T = TypeVar("T")
Tier = Literal["flash", "pro"]
UnitFloat = Annotated[float, Field(ge=0.0, le=1.0)]
_PROVIDERS = Path(__file__).parent / "llm" / "providers.yaml"


def _current(values: Mapping[str, T]) -> dict[str, T]:
    """The values by the current names of stages; former names are reported."""
    for name in values:
        todays_stage(name)
    return by_todays_stage(values)


def _by_stage(value_name: str, example: str) -> BeforeValidator:
    """Parses `stage=value,stage=value`; a mapping is used as it is."""
    form = f"STAGE={value_name},STAGE={value_name}, for instance {example}"
    return BeforeValidator(lambda value: pairs(value, form=form) if isinstance(value, str) else value)


def pairs(text: str, *, form: str) -> dict[str, str]:
    """`NAME=VALUE,NAME=VALUE` as a mapping; raises `ValueError` with the expected `form`."""
    items = [item.partition("=") for item in text.split(",") if item.strip()]
    if any(not equals for _, equals, _ in items):
        raise ValueError(f"write it as {form}")
    found = {name.strip(): value.strip() for name, _, value in items}
    if len(found) < len(items):
        names = [name.strip() for name, _, _ in items]
        raise ValueError(f"it names {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _key(secret: SecretStr) -> SecretStr:
    """A key without surrounding blanks; rejects characters that an HTTP header cannot contain."""
    text = secret.get_secret_value().strip()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("it contains characters that keys never have; copy it again")
    return SecretStr(text)


def _address(url: str) -> str:
    """A URL with a valid host and port and without credentials, since addresses are shown and recorded."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("it contains a user name or password, which would be shown; use the key's setting instead")
    if "?" in url or "#" in url:
        raise ValueError(
            "it contains a query string, which would be shown but never sent; write it as http://HOST:PORT/PATH"
        )
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        _ = parts.port  # reading it triggers the check
    except ValueError:  # includes encoding errors
        raise ValueError("its host or port is invalid; write it as http://HOST:PORT/PATH") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it is not a URL; write it as http://HOST:PORT/PATH")
    return url


def _names(value: object) -> object:
    """A list of names in environment syntax, separated by commas."""
    if not isinstance(value, str):
        return value
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise ValueError("it names nothing; leave it empty for the default")
    return names


def _device(name: str) -> str:
    """A device by torch's name, in lower case."""
    device = name.strip().lower()
    if not re.fullmatch(r"auto|cpu|mps|cuda(?::\d{1,3})?", device):
        raise ValueError("write auto, cpu, cuda, cuda:1 (the second GPU) or mps")
    return device


LoopPart = Literal["derivation", "grammar", "plan_checks", "operators", "vote", "search"]


def _loop_parts(value: object) -> object:
    """Parts joined by `+` or commas, so that a sweep can name several at once; `none` leaves out nothing."""
    names = _names(value.replace("+", ",")) if isinstance(value, str) else value
    return () if names == ("none",) else names


Url = Annotated[str, AfterValidator(_address)]
Key = Annotated[SecretStr, AfterValidator(_key)]
Device = Annotated[str, AfterValidator(_device)]
CurrentStages = AfterValidator(_current)
StageTiers = Annotated[dict[str, Tier], NoDecode, _by_stage("TIER", "evaluate=flash"), CurrentStages]
StageTokens = Annotated[dict[str, PositiveInt], NoDecode, _by_stage("TOKENS", "write=900"), CurrentStages]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
LoopParts = Annotated[tuple[LoopPart, ...], NoDecode, BeforeValidator(_loop_parts)]


def _provider_keys() -> dict[str, Any]:
    """A field for the key of every provider with an address of its own."""
    rows = yaml.safe_load(_PROVIDERS.read_text(encoding="utf-8")).values()
    labels = {row["key"]: row["label"] for row in rows if "key" in row and "base_url" in row}
    return {key: (Key | None, Field(None, description=f"API key for {label}.")) for key, label in labels.items()}


if TYPE_CHECKING:

    class ProviderKeys(BaseSettings):
        """The keys of all providers."""

else:
    ProviderKeys = create_model("ProviderKeys", __base__=BaseSettings, **_provider_keys())
