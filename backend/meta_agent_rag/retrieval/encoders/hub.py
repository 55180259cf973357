"""Encoders and rerankers of the Hugging Face hub: on onnxruntime with fastembed, or on torch."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import SettingsError
from ...text.normalise import encodable
from ..vectors import FloatMatrix

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder
    from sentence_transformers import CrossEncoder, SentenceTransformer

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

    @property
    def folder(self) -> Path | None:
        """The folder with the model's tokenizer."""
        folder = getattr(self._model.model, "_model_dir", None)
        return None if folder is None else Path(folder)

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

        try:
            return TextEmbedding(self.model_name, cache_dir=_quiet_cache())
        except Exception as error:  # fastembed raises what its download and its engine raise
            raise unavailable("encoder", self.model_name, error) from error


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

    @cached_property
    def folder(self) -> Path:
        """The model's folder, in the hub's cache unless it is local."""
        return model_folder("encoder", self.model_name, self.token)

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

        _quiet_transformers()
        device = None if self.device == "auto" else self.device
        try:
            return SentenceTransformer(str(self.folder), device=device, local_files_only=True)
        except (OSError, ValueError, RuntimeError, AssertionError) as error:
            on = f"on ENCODER_DEVICE={device}; set it to auto, or install its driver" if device else "; set another"
            raise SettingsError(f"The encoder {self.model_name!r} cannot be loaded {on}. ({_line(error)})") from error


def model_folder(kind: str, name: str, token: str | None = None) -> Path:
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
        raise unavailable(kind, name, error) from error


def unavailable(kind: str, name: str, error: Exception) -> SettingsError:
    """The error for a model that can neither be found nor downloaded."""
    return SettingsError(
        f"The {kind} {name!r} is neither a folder with a model, nor cached, nor available from the hub "
        f"({_line(error)}); connect to the hub once, check the name and HF_TOKEN, or unset {kind.upper()}."
    )


def fastembed_reranker(name: str) -> "TextCrossEncoder":
    """A cross-encoder that fastembed lists, on the CPU."""
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    try:
        return TextCrossEncoder(name, cache_dir=_quiet_cache())
    except Exception as error:  # fastembed raises what its download and its engine raise
        raise unavailable("reranker", name, error) from error


def torch_reranker(name: str, token: str | None) -> "CrossEncoder":
    """A cross-encoder of sentence-transformers, in a folder or on the hub."""
    folder = model_folder("reranker", name, token)
    from sentence_transformers import CrossEncoder

    _quiet_transformers()
    try:
        return CrossEncoder(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise SettingsError(f"The reranker {name!r} cannot be loaded: {_line(error)}") from error


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


def _quiet_cache() -> str:
    """The hub's cache, which fastembed then shares with other tools; without its own log on stderr."""
    from huggingface_hub import constants
    from loguru import logger

    logger.disable("fastembed")
    return str(constants.HF_HUB_CACHE)


def _quiet_transformers() -> None:
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
