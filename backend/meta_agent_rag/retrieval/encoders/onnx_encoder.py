"""An exported encoder, computed by onnxruntime on the CPU: no torch, one file of weights, fast to start."""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import StorageError
from ...text.normalise import encodable
from ..vectors import FloatMatrix
from .prefixes import prefixes

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
FACTS_FILE = "encoder.json"
_BATCH = 4
"""Texts per run by default. On a CPU, small batches are faster: a layer's output is still in the processor's cache."""

_SMALL_BYTES = 200_000_000
"""Below this, a run is too small to split: each run uses one core, with as many active runs as cores."""

_SLAB = 1024
"""Texts whose tokens are held at once, at least; sorting them by length saves nearly all padding."""


@dataclass(frozen=True, kw_only=True)
class ExportFacts:
    """Properties that the exported graph lacks: its inputs' names, padding, and the model's own prompts."""

    dimension: int
    inputs: tuple[str, ...]
    pad_id: int
    pad_type_id: int
    pad_left: bool
    query_prompt: str
    passage_prompt: str
    source: str


@dataclass(frozen=True, kw_only=True)
class _Tokens:
    ids: "np.ndarray[Any, np.dtype[np.int32]]"
    types: "np.ndarray[Any, np.dtype[np.int32]]"


class OnnxEncoder:
    """The encoder in the folder `export`, which contains the graph, its tokenizer and its facts.

    The graph maps token ids to unit vectors, so it can contain any chain of modules. One
    object may be used by several threads. Raises `StorageError` if the folder cannot be read.
    """

    def __init__(self, *, name: str, export: Path, batch: int | None = None) -> None:
        self.name = name
        self._batch = batch or _BATCH
        self._facts = read_facts(export)
        self._tokenizer, self._session = _opened(export)
        self._prefixes = prefixes(name, self._facts.query_prompt, self._facts.passage_prompt)

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return self._facts.dimension

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, each with this encoder's prefix for questions."""
        return self._encode(texts, self._prefixes[0])

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; text beyond the model's window is ignored."""
        return self._encode(texts, self._prefixes[1])

    def _encode(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        size = max(_SLAB, self._batch)
        for start in range(0, len(texts), size):
            slab = [prefix + encodable(text) for text in texts[start : start + size]]
            self._fill(vectors[start : start + size], self._tokens(slab))
        return vectors

    def _tokens(self, texts: list[str]) -> list[_Tokens]:
        return [
            _Tokens(ids=np.asarray(found.ids, dtype=np.int32), types=np.asarray(found.type_ids, dtype=np.int32))
            for found in self._tokenizer.encode_batch(texts)
        ]

    def _fill(self, vectors: FloatMatrix, tokens: list[_Tokens]) -> None:
        """Compute the longest first, so that memory grows only once; several batches run concurrently, one per core."""
        order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row].ids))
        batches = [order[start : start + self._batch] for start in range(0, len(order), self._batch)]

        def one(rows: list[int]) -> None:
            vectors[rows] = self._vectors([tokens[row] for row in rows])

        if len(batches) == 1:
            one(batches[0])
            return
        with ThreadPoolExecutor(max_workers=min(cores(), len(batches)), thread_name_prefix="encode") as workers:
            for _ in workers.map(one, batches):
                pass

    def _vectors(self, batch: list[_Tokens]) -> FloatMatrix:
        """One run of the graph over texts of similar length, padded to the longest."""
        facts, width = self._facts, max(1, *(len(tokens.ids) for tokens in batch))
        ids = np.full((len(batch), width), facts.pad_id, dtype=np.int64)
        types = np.full_like(ids, facts.pad_type_id)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            place = slice(width - len(tokens.ids), width) if facts.pad_left else slice(0, len(tokens.ids))
            ids[row, place], types[row, place], mask[row, place] = tokens.ids, tokens.types, 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        (vectors,) = self._session.run(None, {name: feed[name] for name in facts.inputs})
        return np.asarray(vectors, dtype=np.float32)


def cores() -> int:
    """The number of processors that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def read_facts(export: Path) -> ExportFacts:
    """The facts of an exported graph. Raises `StorageError` if they are missing or damaged."""
    try:
        stated = json.loads((export / FACTS_FILE).read_text(encoding="utf-8"))
        return ExportFacts(**{**stated, "inputs": tuple(stated["inputs"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(export, error) from error


def _opened(export: Path) -> "tuple[Tokenizer, InferenceSession]":
    import onnxruntime
    from tokenizers import Tokenizer

    graph = export / MODEL_FILE
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors, which are also raised as exceptions
    # Spinning threads would take the cores from the language model that runs concurrently.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        options.intra_op_num_threads = 1 if graph.stat().st_size < _SMALL_BYTES else cores()
        tokenizer = Tokenizer.from_file(str(export / TOKENIZER_FILE))
        return tokenizer, onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # neither library has a base class for errors in its files
        raise _damaged(export, error) from error


def _damaged(export: Path, error: Exception) -> StorageError:
    return StorageError(f"The exported encoder in {str(export)!r} cannot be read; delete that folder. ({error})")
