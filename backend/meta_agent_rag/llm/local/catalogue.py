"""The models of `models.yaml`: where each comes from, where it lies, and the memory that it needs."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from ...errors import UnknownNameError
from ...settings import Settings

PACKAGED = "smollm2-135m"
"""The name of the model that the extra `embedded` brings; it is not in the list, since nothing is to be fetched."""
SLOTS = 2
"""Calls that the embedded server answers side by side, each with a context window of its own."""
PROMPT_CACHE_MIB = 1024
"""What the embedded server may keep of earlier prompts, beyond its slots."""
_BESIDE_MIB = PROMPT_CACHE_MIB + 1024
"""The prompt cache, and 1 GiB for llama.cpp's buffers and this process with its encoder (0.6 GiB)."""
_BYTES_A_VALUE = 2
"""Keys and values are kept in half precision."""


class LocalModel(BaseModel):
    """One row of `models.yaml`; its comment explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    file: Annotated[str, Field(pattern=r"^[\w.-]+\.gguf$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    bytes: PositiveInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    licence: str
    parameters: PositiveFloat
    attention: tuple[PositiveInt, PositiveInt, PositiveInt]

    def path(self, settings: Settings) -> Path:
        """Where the file lies once it is downloaded: there is none before it is whole and checked."""
        return settings.marag_data_dir.expanduser() / "models" / self.file

    def memory(self, settings: Settings) -> int:
        """Bytes of memory that a run with it takes: weights, the context of every slot, and what runs beside it."""
        layers, heads, size = self.attention
        context = 2 * layers * heads * size * _BYTES_A_VALUE * settings.embedded_context_tokens * SLOTS
        return self.bytes + context + (_BESIDE_MIB << 20)


@cache
def local_models() -> Mapping[str, LocalModel]:
    """All models of the list by name, smallest first."""
    rows = yaml.safe_load(files(__package__).joinpath("models.yaml").read_text(encoding="utf-8"))
    return {name: LocalModel(name=name, **row) for name, row in rows.items()}


def local_model(name: str) -> LocalModel:
    """The model of that name; raises `UnknownNameError`."""
    known = local_models()
    if name not in known:
        raise UnknownNameError("model", name, list(known))
    return known[name]
