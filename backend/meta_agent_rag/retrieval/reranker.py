"""An optional cross-encoder, which scores question and passage as a pair."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..errors import SettingsError
from ..extras import installed, require
from ..settings import Settings
from ..text.normalise import encodable
from .encoders.loading import first_line, model_folder, quiet_cache, quiet_transformers, unavailable
from .passage import Passage

_Scorer: TypeAlias = Callable[[str, list[str]], Sequence[float]]


class Reranker:
    """A cross-encoder, in one worker thread; loaded on first use.

    One that fastembed lists runs on onnxruntime, any other (a folder or a name on the hub) on torch.
    """

    def __init__(self, name: str, *, token: str | None = None, listed: bool) -> None:
        self.name = name
        self._token = token
        self._listed = listed
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reranker")

    async def rerank(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """How well each passage answers `query`: one score per passage, in order, higher is better.

        Scores are only comparable for the same query. Text beyond the model's window is
        ignored. Raises `SettingsError` if the model is not available or has not a single score.
        """
        if not passages:
            return []
        texts = [encodable(passage.searchable()) for passage in passages]  # tokenizers reject lone surrogates
        return await asyncio.wrap_future(self._worker.submit(self._scores, encodable(query), texts))

    def _scores(self, query: str, texts: list[str]) -> list[float]:
        scores = np.asarray(self._scorer(query, texts), dtype=np.float64)
        if scores.shape != (len(texts),):
            raise SettingsError(
                f"The reranker {self.name!r} returns {scores.shape[-1]} scores per pair; set RERANKER to a "
                "cross-encoder with one, or unset it."
            )
        return [float(score) for score in scores]

    @cached_property
    def _scorer(self) -> _Scorer:
        if self._listed:
            from fastembed.rerank.cross_encoder import TextCrossEncoder

            try:
                fast = TextCrossEncoder(self.name, cache_dir=quiet_cache())
            except Exception as error:  # fastembed raises what its download and its engine raise
                raise unavailable("reranker", self.name, error) from error
            return lambda query, texts: list(fast.rerank(query, texts))
        folder = model_folder("reranker", self.name, self._token)
        from sentence_transformers import CrossEncoder

        quiet_transformers()
        try:
            model = CrossEncoder(str(folder), local_files_only=True)
        except (OSError, ValueError) as error:
            raise SettingsError(f"The reranker {self.name!r} cannot be loaded: {first_line(error)}") from error
        heads = getattr(model.config, "architectures", None) or ()
        if not any(str(head).endswith("ForSequenceClassification") for head in heads):
            raise SettingsError(f"The reranker {self.name!r} is not a cross-encoder; set RERANKER to one, or unset it.")
        return lambda query, texts: model.predict([(query, text) for text in texts], show_progress_bar=False)


def load_reranker(settings: Settings) -> Reranker | None:
    """The cross-encoder that `settings.reranker` names, `None` if unset.

    Raises `SettingsError` for a folder that does not exist, and `MissingExtraError`.
    """
    name = settings.reranker
    if name is None:
        return None
    if name.startswith(("/", ".", "~")) and not Path(name).expanduser().is_dir():
        raise SettingsError(
            f"RERANKER {name!r} is not a folder; give a cross-encoder's folder or hub name, or unset it."
        )
    listed = False
    if installed("encoders"):
        from fastembed.rerank.cross_encoder import TextCrossEncoder

        models = TextCrossEncoder.list_supported_models()
        listed = name.lower() in {str(model["model"]).lower() for model in models}
    if not listed:
        require("torch", f"RERANKER={name}")
    return Reranker(name, token=settings.hf_token.get_secret_value() if settings.hf_token else None, listed=listed)
