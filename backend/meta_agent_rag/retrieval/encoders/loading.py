"""Chooses the encoder that the settings name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError, SettingsError
from ...extras import installed, missing, require
from ...settings import Settings
from ..vectors import FloatMatrix
from .encoder import Encoder
from .hashing import HashEncoder
from .hub import FastEmbedEncoder, TorchEncoder, unit_rows
from .packaged import PackagedEncoder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

HASH = "hash-64"
PACKAGED = "all-MiniLM-L6-v2"
_PACKAGED_NAMES = (PACKAGED, PackagedEncoder.name)
_ON_THE_CPU = ("auto", "cpu")


@dataclass(frozen=True, kw_only=True)
class EncoderChoice:
    """The chosen encoder; `note` says in one line why, `None` if it is the requested one."""

    encoder: Encoder
    note: str | None = None


def load_encoder(settings: Settings, name: str | None = None) -> EncoderChoice:
    """The encoder with the given `name` (default: `settings.encoder`); loads no weights yet.

    - `all-MiniLM-L6-v2`: the packaged one; without the extra `encoders`, `hash-64` replaces it, and the note says so.
    - `hash-64`: compares words, without a model.
    - `fastembed:MODEL`: a model that fastembed lists, on the CPU; the extra `encoders`.
    - `torch:MODEL`: a folder or a model of the hub, with sentence-transformers on `settings.encoder_device`; the
      extra `torch`.
    - MODEL: the former if fastembed lists it and no GPU is required, else the latter.

    Raises `MissingExtraError`, and `SettingsError` for a GPU with an encoder that is not on torch.
    """
    token = settings.hf_token.get_secret_value() if settings.hf_token else None
    device = settings.encoder_device
    chosen = _chosen(settings.encoder, token, device) if device not in _ON_THE_CPU else None
    if chosen is not None and not isinstance(chosen.encoder, TorchEncoder):
        raise SettingsError(
            f"ENCODER_DEVICE={device} requires an encoder on torch, for instance "
            f"ENCODER=torch:sentence-transformers/{PACKAGED}; set one, or ENCODER_DEVICE=auto."
        )
    return _chosen(name or settings.encoder, token, device)


@cache
def _chosen(name: str, token: str | None, device: str) -> EncoderChoice:
    if name == HASH:
        return EncoderChoice(encoder=HashEncoder())
    if name in _PACKAGED_NAMES:
        if installed("encoders"):
            return EncoderChoice(encoder=PackagedEncoder())
        note = f"{missing('encoders', f'The encoder {name!r}')} Until then texts are compared by their words."
        return EncoderChoice(encoder=HashEncoder(), note=note)
    runtime, mark, model = name.partition(":")
    if not mark or runtime not in ("fastembed", "torch"):
        runtime, model = _runtime(name, device), name
    if runtime == "fastembed":
        require("encoders", f"The encoder {name!r}")
        return EncoderChoice(encoder=FastEmbedEncoder(model_name=model))
    require("torch", f"The encoder {name!r}")
    return EncoderChoice(encoder=TorchEncoder(model_name=model, token=token, device=device))


def _runtime(name: str, device: str) -> str:
    if device not in _ON_THE_CPU or (Path(name).expanduser() / "config.json").is_file() or not installed("encoders"):
        return "torch"
    from fastembed import TextEmbedding

    listed = {str(model["model"]).lower() for model in TextEmbedding.list_supported_models()}
    return "fastembed" if name.lower() in listed else "torch"


class LangChainEncoder:
    """A LangChain `Embeddings` object as an `Encoder`, with rows scaled to length 1.

    Its name is made of the class and of its `model` or `model_name`; a corpus built with it needs the same again.
    """

    folder = None

    def __init__(self, embeddings: "Embeddings") -> None:
        self._embeddings = embeddings
        model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
        self.name = ":".join(["langchain", type(embeddings).__name__, *([model] if isinstance(model, str) else [])])

    @cached_property
    def dimension(self) -> int:
        """The length of the vectors, found by encoding a word once."""
        return len(self._embeddings.embed_query("dimension"))

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, one at a time, as `embed_query` does."""
        return self._rows([self._embeddings.embed_query(text) for text in texts])

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages."""
        return self._rows(self._embeddings.embed_documents(list(texts)) if texts else [])

    def _rows(self, rows: list[list[float]]) -> FloatMatrix:
        return unit_rows(np.array(rows, dtype=np.float32).reshape(len(rows), self.dimension))


def as_encoder(given: object) -> Encoder:
    """An object that a caller passed as an encoder. Raises `InputError` if it is none."""
    if all(hasattr(given, name) for name in ("name", "dimension", "encode_queries", "encode_passages")):
        return given  # type: ignore[return-value]
    if all(callable(getattr(given, name, None)) for name in ("embed_documents", "embed_query")):
        return LangChainEncoder(given)  # type: ignore[arg-type]
    raise InputError(
        f"{type(given).__name__} is no encoder; pass an object of LangChain's Embeddings, or set ENCODER to a name."
    )
