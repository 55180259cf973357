"""Fits the model of `retrieval.screening.injection_classifier` on attacks and harmless texts, labelled as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meta_agent_rag.retrieval.screening.injection_classifier import KEYS, Grams, LinearModel

from .phrases import made

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SEED = 1
_ATTACKS, _HARMLESS = 3000, 1500
_KEPT = 30_000
_STRENGTH = 20.0
_WEIGHT_OF_MADE = 0.3
_WEIGHT_OF_ATTACKS = 3
_CLOSE = 1.0
_HINT = -1.0


@dataclass(frozen=True, kw_only=True)
class LabelledText:
    """One text of a training set. `mixed`: the attack is some part of it; `doubtful`: there may be none to see."""

    text: str
    attack: bool
    kind: str
    mixed: bool = False
    doubtful: bool = False
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of texts: n-gram counts a row, scaled, and the text that each row is from."""

    rows: "csr_matrix"
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Windows":
        """Cut texts as the model does when it reads."""
        from scipy.sparse import csr_matrix

        keys: list[NDArray[np.uint32]] = []
        owners: list[int] = []
        for number, text in enumerate(texts):
            found = _keys_of(text)
            keys += found
            owners += [number] * len(found)
        ends = np.cumsum([0, *map(len, keys)])
        scale = np.concatenate([np.full(len(one), 1 / np.sqrt(len(one))) for one in keys])
        rows = csr_matrix((scale, np.concatenate(keys), ends), shape=(len(keys), KEYS))
        return cls(rows=rows, owners=np.array(owners))


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Weights of keys that count, and what is added."""

    keys: NDArray[np.uint32]
    weights: NDArray[np.float32]
    bias: float

    def scores(self, windows: Windows, count: int) -> NDArray[np.float64]:
        """The score of each of `count` texts: that of its worst window."""
        dense = np.zeros(KEYS)
        dense[self.keys] = self.weights
        scores = np.full(count, -np.inf)
        np.maximum.at(scores, windows.owners, windows.rows @ dense + self.bias)
        return scores

    def model(self, threshold: float) -> LinearModel:
        """As the package reads it."""
        weights = np.zeros(KEYS, dtype=np.float32)
        weights[self.keys] = self.weights
        return LinearModel(weights=weights, bias=self.bias, threshold=threshold)

    def save(self, path: Path, threshold: float) -> None:
        """Write the file that the package reads."""
        order = np.argsort(self.keys)
        np.savez_compressed(
            path,
            keys=self.keys[order],
            weights=self.weights[order].astype(np.float16),
            bias=np.float64(self.bias),
            threshold=np.float64(threshold),
        )


def made_texts() -> list[LabelledText]:
    """The sentences of `phrases.yaml`."""
    return [
        LabelledText(text=text, attack=attack, kind="made", weight=_WEIGHT_OF_MADE)
        for attack in (True, False)
        for text in made("attacks" if attack else "harmless", _ATTACKS if attack else _HARMLESS, SEED)
    ]


def fit(texts: Sequence[LabelledText], windows: Windows, chosen: NDArray[np.int64]) -> Fitted:
    """Fit on the texts of these numbers.

    Which window of a mixed text is the attack is not known: a first model, fitted without these texts, points at it,
    and the second is fitted on what it pointed at.
    """
    inside = np.isin(windows.owners, chosen)
    rows, owners = windows.rows[np.flatnonzero(inside)], windows.owners[inside]
    labels = np.array([texts[owner].attack for owner in owners])
    weights = np.array([texts[owner].weight for owner in owners])
    mixed = np.array([texts[owner].mixed for owner in owners])
    first = _fitted(rows, labels, weights, np.flatnonzero(~mixed))
    guesses = rows @ _dense(first) + first.bias
    kept = ~mixed
    for owner in np.unique(owners[mixed]):
        own = np.flatnonzero(owners == owner)
        least = _HINT if texts[owner].doubtful else -np.inf
        kept[own] = guesses[own] >= max(guesses[own].max() - _CLOSE, least)
    return _fitted(rows, labels, weights, np.flatnonzero(kept))


def _fitted(rows: Any, labels: NDArray[Any], weights: NDArray[Any], chosen: NDArray[np.int64]) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=_STRENGTH, solver="liblinear", class_weight={True: _WEIGHT_OF_ATTACKS, False: 1}, random_state=SEED
    )
    model.fit(rows[chosen], labels[chosen], sample_weight=weights[chosen])
    found = model.coef_[0]
    keys = np.argsort(-np.abs(found), kind="stable")[:_KEPT]
    return Fitted(keys=keys.astype(np.uint32), weights=found[keys].astype(np.float32), bias=float(model.intercept_[0]))


def _dense(fitted: Fitted) -> NDArray[np.float64]:
    dense = np.zeros(KEYS)
    dense[fitted.keys] = fitted.weights
    return dense


def _keys_of(text: str) -> list[NDArray[np.uint32]]:
    grams = Grams.of(text)
    series = list(grams.series())
    letters = [grams.letters(token) for token in grams.tokens]
    return [
        np.concatenate([keys[start : max(end - length + 1, start)] for keys, length in series] + letters[start:end])
        for start, end in grams.windows()
    ]
