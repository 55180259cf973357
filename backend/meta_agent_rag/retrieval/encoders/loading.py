"""The encoders that ENCODER may name, of the Hugging Face hub or of LangChain, and the choice among them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError, SettingsError
from ...extras import installed, missing, require
from ...settings import Settings
from ...text.normalise import encodable
from ..vectors import FloatMatrix
from . import Encoder
from .hashing import HashEncoder
from .packaged import PackagedEncoder

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from langchain_core.embeddings import Embeddings
    from sentence_transformers import SentenceTransformer

HASH = "hash-64"
PACKAGED = "all-MiniLM-L6-v2"
_PACKAGED_NAMES = (PACKAGED, PackagedEncoder.name)
_ON_THE_CPU = ("auto", "cpu")
_SEARCH = "Represent this sentence for searching relevant passages: "
_PREFIXES = (
    ("bge-*-en*", _SEARCH, ""),
    ("snowflake-arctic-embed-*", _SEARCH, ""),
    ("mxbai-embed-large*", _SEARCH, ""),
    ("nomic-embed-text-*", "search_query: ", "search_document: "),
    ("*e5-*", "query: ", "passage: "),
)
"""Prefixes of questions and passages, from the model cards, for models whose configuration does not state them."""
_UNUSED_FILES = ("onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf")
_BATCHES = {"cpu": 32}
_GPU_BATCH = 256


@dataclass(frozen=True, kw_only=True)
class FastEmbedEncoder:
    """A model that fastembed lists, on the CPU; downloaded to the hub's cache and loaded on first use."""

    model_name: str

    @property
    def name(self) -> str:
        """The model's name after `fastembed:`, since its weights are not always those of the original."""
        return f"fastembed:{self.model_name}"

    @property
    def dimension(self) -> int:
        """The length of the vectors, from fastembed's list."""
        return int(self._model.embedding_size)

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, each with this model's prefix for questions."""
        return self._encode(texts, table_prefixes(self.model_name)[0])

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; text beyond the model's window is ignored."""
        return self._encode(texts, table_prefixes(self.model_name)[1])

    def _encode(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        rows = np.array(list(self._model.embed([prefix + encodable(text) for text in texts])), dtype=np.float32)
        return unit_rows(rows)

    @cached_property
    def _model(self) -> "TextEmbedding":
        from fastembed import TextEmbedding
        from huggingface_hub import constants
        from loguru import logger

        logger.disable("fastembed")
        try:
            return TextEmbedding(self.model_name, cache_dir=str(constants.HF_HUB_CACHE))  # shared with other tools
        except Exception as error:  # fastembed raises what its download and its engine raise
            raise _unavailable(self.model_name, error) from error


@dataclass(frozen=True, kw_only=True)
class TorchEncoder:
    """A sentence-transformers model, a folder or a name on the hub; torch and the weights are loaded on first use.

    `device` is torch's name for one; `auto` lets it choose.
    """

    model_name: str
    token: str | None = None
    device: str = "auto"

    @property
    def name(self) -> str:
        """The model's name, or its folder, after `torch:`."""
        return f"torch:{self.model_name}"

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return int(self._model.get_embedding_dimension() or 0)

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, each with this model's prefix for questions."""
        own = self._model.prompts.get("query")
        return self._encode(texts, own or table_prefixes(self.model_name)[0])

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; text beyond the model's window is ignored."""
        own = self._model.prompts.get("passage") or self._model.prompts.get("document")
        return self._encode(texts, own or table_prefixes(self.model_name)[1])

    def _encode(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        model = self._model
        vectors = model.encode(
            [encodable(text) for text in texts],
            prompt=prefix,
            batch_size=_BATCHES.get(model.device.type, _GPU_BATCH),
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _model(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
        logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
        folder = _model_folder(self.model_name, self.token)
        device = None if self.device == "auto" else self.device
        try:
            return SentenceTransformer(str(folder), device=device, local_files_only=True)
        except (OSError, ValueError, RuntimeError, AssertionError) as error:
            on = f"on ENCODER_DEVICE={device}; set it to auto, or install its driver" if device else "; set another"
            raise SettingsError(
                f"The encoder {self.model_name!r} cannot be loaded {on}. ({_first_line(error)})"
            ) from error


def _model_folder(name: str, token: str | None) -> Path:
    """The folder of a model: a local one, else from the hub's cache, else downloaded. Raises `SettingsError`."""
    local = Path(name).expanduser()
    if (local / "config.json").is_file():
        return local.resolve()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    try:
        try:
            return Path(snapshot_download(name, local_files_only=True))
        except LocalEntryNotFoundError:
            return Path(snapshot_download(name, token=token, ignore_patterns=list(_UNUSED_FILES), etag_timeout=3.0))
    except (OSError, ValueError) as error:  # the client's errors are of these kinds
        raise _unavailable(name, error) from error


def _unavailable(name: str, error: Exception) -> SettingsError:
    """The error for a model that can neither be found nor downloaded."""
    return SettingsError(
        f"The encoder {name!r} is neither a folder with a model, nor cached, nor available from the hub "
        f"({_first_line(error)}); connect to the hub once, check the name and HF_TOKEN, or unset ENCODER."
    )


def table_prefixes(name: str) -> tuple[str, str]:
    """The prefixes for (a question, a passage), by the model's name; empty if it needs none.

    >>> table_prefixes("intfloat/multilingual-e5-large")
    ('query: ', 'passage: ')
    """
    last = Path(name).name
    return next(((query, passage) for glob, query, passage in _PREFIXES if fnmatchcase(last, glob)), ("", ""))


def unit_rows(rows: FloatMatrix) -> FloatMatrix:
    """The rows scaled to length 1."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def _first_line(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


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
