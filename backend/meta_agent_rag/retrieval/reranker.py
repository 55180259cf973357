"""An optional cross-encoder, which scores question and passage as a pair."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SettingsError
from ..extras import require
from ..settings import Settings
from ..text.normalise import encodable
from .encoders import hub
from .passage import Passage

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_BATCH = 16
_REMEDY = "set RERANKER to the folder or hub name of a cross-encoder, or unset it"


class Reranker:
    """The cross-encoder in `folder`, on torch, in one worker thread; loaded on first use."""

    def __init__(self, *, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reranker")

    async def rerank(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """How well each passage answers `query`: one score per passage, in order, higher is better.

        Scores are only comparable for the same query. Text beyond the model's window is
        ignored. Raises `SettingsError` if the folder contains no cross-encoder with a single score.
        """
        if not passages:
            return []
        # tokenizers reject lone surrogates
        pairs = [(encodable(query), encodable(passage.searchable())) for passage in passages]
        return await asyncio.wrap_future(self._worker.submit(self._scores, pairs))

    def _scores(self, pairs: list[tuple[str, str]]) -> list[float]:
        scores = np.asarray(self._model.predict(pairs, batch_size=_BATCH, show_progress_bar=False), dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise SettingsError(f"The reranker {self.name!r} returns {scores.shape[-1]} scores per pair; {_REMEDY}.")
        return [float(score) for score in scores]

    @cached_property
    def _model(self) -> "CrossEncoder":
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            model: CrossEncoder = CrossEncoder(str(self._folder), local_files_only=True)
        except (OSError, ValueError) as error:
            raise SettingsError(f"The reranker {self.name!r} cannot be read: {error}") from error
        return model


def load_reranker(settings: Settings) -> Reranker | None:
    """The cross-encoder that `settings.reranker` names, `None` if unset.

    A name is a local folder, or a model on the hub, taken from its local cache before the hub is
    contacted. Loads no weights yet; may block for 3 s if the hub does not respond, and for a download.

    Raises `SettingsError` if it is not available; there is no substitute.
    """
    name = settings.reranker
    if name is None:
        return None
    require("torch", f"RERANKER={name}")
    local = Path(name).expanduser()
    if (local / "config.json").is_file():
        folder: Path | None = local.resolve()
    else:
        token = settings.hf_token.get_secret_value() if settings.hf_token else None
        folder = hub.cached_folder(name, "reranker") or hub.downloaded_folder(name, token, "reranker")
    if folder is None:
        raise SettingsError(f"The reranker {name!r} is not cached and the hub does not respond; {_REMEDY}.")
    if not _scores_pairs(folder):
        raise SettingsError(f"The reranker {name!r} is not a cross-encoder; {_REMEDY}.")
    return Reranker(name=name, folder=folder)


def _scores_pairs(folder: Path) -> bool:
    """Does the model have a head trained for scoring? A plain encoder would silently get a random one."""
    try:
        if (folder / "modules.json").is_file():
            modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
            return not any(str(row["type"]).endswith(".Pooling") for row in modules)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return any(str(name).endswith("ForSequenceClassification") for name in config.get("architectures") or ())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
