"""Exports a sentence-transformers model to ONNX once, and checks that its vectors stay the same."""

import json
import warnings
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .encoder import Encoder
from .onnx_encoder import FACTS_FILE, MODEL_FILE, TOKENIZER_FILE, ExportFacts, OnnxEncoder
from .onnx_place import ExportPlace
from .prefixes import own_prompts

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer


LARGEST_DISTANCE = 1e-4
"""The cosine distance up to which two vectors of one text count as equal."""

_OPSET = 17
_NO_LIMIT = 1_000_000
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_EXAMPLES = ["A short text.", "A text that is longer than the other, so that one of the two is padded."]
_CHECKED = (
    "x",
    "",
    "Which river flows through the town where she was born?",
    "  blanks around it,\n\na line break and a\ttab  ",
    "Zürich, naïve, São Paulo; İstanbul, ﬁne, e\u0301.",
    "東京とソウル 서울 Москва القاهرة",
    "emoji 🙂👩‍🚀, a control \x00 character and a lone \ud800 surrogate",
    "UPPER CASE, 3.14 %, (brackets) and e-mail@example.org",
    "A sentence of middling length about nothing in particular. " * 6,
    "A text that is longer than any window of an encoder that reads sentences. " * 120,
)


class _NotExportedError(Exception):
    """The model cannot be exported, or its export differs."""


def export_model(model: "SentenceTransformer", original: Encoder, place: ExportPlace) -> str | None:
    """Export `model`, whose vectors `original` provides, to `place`; returns `None`, or the reason for a failure.

    A reason that concerns the model is recorded in `place`, so that the export is not retried each time; an
    unwritable disk is not.
    """
    try:
        with place.building() as folder:
            _write(model, folder, place.source)
            _check(original, OnnxEncoder(name=original.name, export=folder))
            place.install(folder)
    except OSError as error:
        return _line(error)
    except Exception as error:  # noqa: BLE001  # an exporter's layers raise various errors; recorded and logged
        with suppress(OSError):
            place.refuse(_line(error))
        return _line(error)
    return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _write(model: "SentenceTransformer", folder: Path, source: Path) -> None:
    import torch

    features = dict(model.tokenizer(_EXAMPLES, padding=True, truncation=True, return_tensors="pt"))
    if not {"input_ids", "attention_mask"} <= set(features) <= _INPUTS:
        raise _NotExportedError(f"its inputs are {', '.join(sorted(features))}")
    axes = {name: {0: "texts", 1: "tokens"} for name in features} | {"vectors": {0: "texts"}}
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # about what tracing cannot see; the check of the vectors covers it
        torch.onnx.export(
            _whole(model, list(features)),
            tuple(value.to(model.device) for value in features.values()),
            str(folder / MODEL_FILE),
            input_names=list(features),
            output_names=["vectors"],
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )
    _tokenizer(model).save(str(folder / TOKENIZER_FILE))
    facts = _facts(model, tuple(features), source)
    (folder / FACTS_FILE).write_text(json.dumps(asdict(facts), indent=2), encoding="utf-8")


def _whole(model: "SentenceTransformer", inputs: list[str]) -> "torch.nn.Module":
    """All modules of the model combined, from token ids to unit vectors."""
    import torch

    dimension = model.get_embedding_dimension()  # may be less than the last module's output

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: torch.Tensor) -> torch.Tensor:
            vectors = self.model(dict(zip(inputs, values, strict=True)))["sentence_embedding"]
            return torch.nn.functional.normalize(vectors[:, :dimension], dim=-1)

    return Whole().eval()


def _tokenizer(model: "SentenceTransformer") -> "Tokenizer":
    """The model's tokenizer, truncating at the model's window; its own file may truncate elsewhere, and pad."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise _NotExportedError(f"{type(model.tokenizer).__name__} is not a tokenizer of the `tokenizers` library")
    tokenizer: Tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    window = model.max_seq_length
    if window is not None and window < _NO_LIMIT:
        tokenizer.enable_truncation(window, direction=model.tokenizer.truncation_side)
    return tokenizer


def _facts(model: "SentenceTransformer", inputs: tuple[str, ...], source: Path) -> ExportFacts:
    query, passage = own_prompts(model.prompts)
    return ExportFacts(
        dimension=int(model.get_embedding_dimension() or 0),
        inputs=inputs,
        pad_id=int(model.tokenizer.pad_token_id or 0),
        pad_type_id=int(model.tokenizer.pad_token_type_id or 0),
        pad_left=model.tokenizer.padding_side == "left",
        query_prompt=query,
        passage_prompt=passage,
        source=str(source),
    )


def _check(original: Encoder, exported: OnnxEncoder) -> None:
    """Compare the vectors of varied texts: single, in batches, and questions with their prefix."""
    for texts in (_CHECKED[:1], _CHECKED):
        pairs = (
            (original.encode_passages(texts), exported.encode_passages(texts)),
            (original.encode_queries(texts), exported.encode_queries(texts)),
        )
        for expected, found in pairs:
            if expected.shape != found.shape:
                raise _NotExportedError(f"vectors of shape {found.shape} instead of {expected.shape}")
            distance = float(np.max(1.0 - np.einsum("ij,ij->i", expected, found, dtype=np.float64)))
            if not distance < LARGEST_DISTANCE:  # so that NaN does not pass
                raise _NotExportedError(f"vectors differ by a cosine distance of {distance:.2g}")
