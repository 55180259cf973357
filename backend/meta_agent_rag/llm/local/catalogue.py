"""The models in `models.yaml`: their sources, their places on disk, and the memory that they need."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, Field, PositiveFloat, PositiveInt

from ...discovery import named
from ...settings import Settings

PACKAGED = "smollm2-135m"
"""The name of the model in the extra `embedded`; it is not in the list, because it needs no download."""
SLOTS = 2
"""The number of calls that the embedded server answers concurrently, each with its own context window."""
PROMPT_CACHE_MIB = 1024
"""Memory that the embedded server may use for earlier prompts, in addition to its slots."""
_BESIDE_MIB = PROMPT_CACHE_MIB + 1024
"""The prompt cache, plus 1 GiB for llama.cpp's buffers and this process with its encoder (0.6 GiB)."""
_BYTES_A_VALUE = 2
"""Keys and values are stored in half precision."""


class LocalModel(BaseModel, frozen=True, extra="forbid"):
    """One row of `models.yaml`; the fields are explained there."""

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
        """The place of the downloaded file; the file exists only once it is complete and verified."""
        return settings.marag_data_dir.expanduser() / "models" / self.file

    def memory(self, settings: Settings) -> int:
        """Bytes of memory for a run with it: weights, the context of every slot, and what runs beside it."""
        layers, heads, size = self.attention
        context = 2 * layers * heads * size * _BYTES_A_VALUE * settings.embedded_context_tokens * SLOTS
        return self.bytes + context + (_BESIDE_MIB << 20)


@cache
def local_models() -> Mapping[str, LocalModel]:
    """All models in the list by name, smallest first."""
    rows = yaml.safe_load(files(__package__).joinpath("models.yaml").read_text(encoding="utf-8"))
    return {name: LocalModel(name=name, **row) for name, row in rows.items()}


def local_model(name: str) -> LocalModel:
    """The model with that name; raises `UnknownNameError`."""
    return named("model", name, local_models())
