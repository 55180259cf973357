"""Fits the model of `retrieval.screening.injection_classifier` on attacks and harmless texts, labelled as a whole."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meta_agent_rag.retrieval.screening.concepts import lexicon
from meta_agent_rag.retrieval.screening.features import DISTANCES, KEYS, Features
from meta_agent_rag.retrieval.screening.injection_classifier import CONCEPTS_ADDED, GRAMS_ADDED, LinearModel
from meta_agent_rag.text.language import language_of

from .making import LANGUAGES, attacks, grammar, harmless, placed
from .sources import SEED, LabelledText

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_KEPT = 60_000
_STRENGTH = 15.0
_WEIGHT_OF_ATTACKS = 2
_WEIGHT_OF_FOLLOWING, _WEIGHT_OF_TOGETHER = 0.3, 0.45
"""Weight of concepts relative to n-grams: with a higher value, the fit relies on them more."""
_WEIGHT_OF_MADE = 1.0
_WEIGHT_OF_FOUND = 0.5
_WEIGHT_OF_WRITTEN = 2.0
_CLOSE, _HINT, _HARD, _SHARE = 1.0, -1.0, -2.5, 0.25
_EACH, _EACH_FOREIGN, _EACH_HARMLESS = 90, 24, 60
_TURNS = 6
"""Number of documents made of the harmless sentences of a kind."""


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of texts, one scaled row each, and the text of each row."""

    rows: "csr_matrix"
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Windows":
        """Divide texts into windows as the model does at inference."""
        from scipy.sparse import csr_matrix

        keys: list[NDArray[np.int32]] = []
        values: list[NDArray[np.float32]] = []
        owners: list[int] = []
        for number, text in enumerate(texts):
            for row, weights in _columns(Features.of(text)):
                keys.append(row.astype(np.int32))
                values.append(weights.astype(np.float32))
                owners.append(number)
        ends = np.cumsum([0, *map(len, keys)])
        rows = csr_matrix((np.concatenate(values), np.concatenate(keys), ends), shape=(len(keys), COLUMNS))
        rows.sum_duplicates()
        return cls(rows=rows, owners=np.array(owners))


CONCEPTS = len(lexicon().names)
FOLLOWING = KEYS
TOGETHER = FOLLOWING + len(DISTANCES) * CONCEPTS**2
COLUMNS = TOGETHER + CONCEPTS**2
"""Columns of a row: keys of n-grams, then successions of two concepts by kind, then pairs of them in one window."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A weight for each column, most of them 0, and the intercept."""

    weights: NDArray[np.float64]
    bias: float

    def scores(self, windows: Windows, count: int) -> NDArray[np.float64]:
        """The score of each of `count` texts: the highest score of its windows."""
        scores = np.full(count, -np.inf)
        np.maximum.at(scores, windows.owners, windows.rows @ self.weights + self.bias)
        return scores

    def model(self, threshold: float) -> LinearModel:
        """In the format that the package reads."""
        following = self.weights[FOLLOWING:TOGETHER].reshape(len(DISTANCES), CONCEPTS, CONCEPTS)
        together = self.weights[TOGETHER:].reshape(CONCEPTS, CONCEPTS)
        return LinearModel(
            grams=self.weights[:KEYS].astype(np.float32),
            following=(following * _WEIGHT_OF_FOLLOWING).astype(np.float32),
            together=(together * _WEIGHT_OF_TOGETHER).astype(np.float32),
            bias=self.bias,
            threshold=threshold,
        )

    def save(self, path: Path, threshold: float) -> None:
        """Write the file that the package reads."""
        model = self.model(threshold)
        keys = np.flatnonzero(model.grams)
        np.savez_compressed(
            path,
            keys=keys.astype(np.uint32),
            weights=model.grams[keys].astype(np.float16),
            following=model.following.astype(np.float16),
            together=model.together.astype(np.float16),
            bias=np.float64(model.bias),
            threshold=np.float64(threshold),
        )


def made_attacks(prose: Sequence[Sequence[str]]) -> list[LabelledText]:
    """The attacks of the grammar, two thirds of them within ordinary prose."""
    chance, found = random.Random(SEED), []
    foreign = grammar("harmless")["languages"]
    for language in LANGUAGES:
        for made in attacks(language, _EACH if language == "en" else _EACH_FOREIGN, SEED):
            count = chance.randrange(4)
            around = chance.choice(prose)[:count] if language == "en" else chance.sample(foreign[language], count)
            found.append(
                LabelledText(
                    text=placed(made.text, around, chance),
                    attack=True,
                    kind="made",
                    group=f"frame {made.frame}",
                    frame=made.frame,
                    goal=made.goal,
                    language=language,
                    mixed=bool(around),
                    weight=_WEIGHT_OF_MADE,
                )
            )
    return found


def written_attacks(prose: Sequence[Sequence[str]]) -> list[LabelledText]:
    """The attacks of `grammar/written.yaml`, two thirds of them within ordinary prose, and paragraphs with attacks.

    A kind is a frame.
    """
    chance, found = random.Random(SEED), []
    foreign = grammar("harmless")["languages"]
    for kind, texts in grammar("written").items():
        for text in texts:
            language, count = language_of(text), chance.randrange(4)
            around = chance.sample(foreign[language], count) if language in foreign else chance.choice(prose)[:count]
            found.append(_written(placed(text, around, chance), kind, language, mixed=bool(around)))
    for kind, texts in grammar("attack_paragraphs").items():
        found += [_written(text, kind, language_of(text), mixed=True) for text in texts]
    return found


def _written(text: str, kind: str, language: str, *, mixed: bool) -> LabelledText:
    return LabelledText(
        text=text,
        attack=True,
        kind="made",
        group=f"frame {kind}",
        frame=kind,
        language=language,
        mixed=mixed,
        weight=_WEIGHT_OF_WRITTEN,
    )


def made_harmless() -> list[LabelledText]:
    """The harmless sentences of the grammar, each alone, and small documents of several sentences of a kind."""
    chance, kinds = random.Random(SEED), dict[str, list[str]]()
    for made in harmless(_EACH_HARMLESS, SEED):
        kinds.setdefault(made.frame, []).append(made.text)
    texts = [(text, kind) for kind, own in kinds.items() for text in own]
    texts += [(" ".join(chance.sample(own, 4)), kind) for kind, own in kinds.items() for _ in range(_TURNS)]
    return [
        LabelledText(text=text, attack=False, kind="made", group=f"made {kind}", weight=_WEIGHT_OF_MADE)
        for text, kind in texts
    ]


def written_harmless() -> list[LabelledText]:
    """The texts of `grammar/lookalikes.yaml` and `harmless_paragraphs.yaml`: orders and secrets among people."""
    return [
        LabelledText(text=text, attack=False, kind="made", group=f"written {kind}", weight=_WEIGHT_OF_WRITTEN)
        for file in ("lookalikes", "harmless_paragraphs")
        for kind, texts in grammar(file).items()
        for text in texts
    ]


def fit(texts: Sequence[LabelledText], windows: Windows, chosen: NDArray[np.int64]) -> Fitted:
    """Fit on the texts of these numbers.

    Which window of a mixed text contains the attack is unknown: a first model, fitted without these texts and on some
    of the harmless windows, selects it; the second model is fitted on the selected windows, and on the harmless windows
    that the first one found hard.
    """
    inside = np.flatnonzero(np.isin(windows.owners, chosen))
    rows, owners = windows.rows[inside], windows.owners[inside]
    labels = np.array([texts[owner].attack for owner in owners])
    mixed = np.array([texts[owner].mixed for owner in owners])
    weights = np.array([texts[owner].weight for owner in owners]) * np.where(labels, 1.0, _WEIGHT_OF_FOUND)
    some = np.random.default_rng(SEED).random(len(owners)) < _SHARE
    first = _fitted(rows, labels, weights, owners, np.flatnonzero(np.where(labels, ~mixed, some)))
    guesses = rows @ first.weights + first.bias
    best = np.full(len(texts), -np.inf)
    np.maximum.at(best, owners, guesses)
    least = np.array([_HINT if text.doubtful else -np.inf for text in texts])
    worst = (guesses >= best[owners] - _CLOSE) & (guesses >= least[owners])
    return _fitted(rows, labels, weights, owners, np.flatnonzero(np.where(labels, worst, some | (guesses > _HARD))))


def _fitted(rows: Any, labels: Any, weights: Any, owners: Any, chosen: NDArray[np.int64]) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    labels, weights, owners = labels[chosen], weights[chosen], owners[chosen]
    counts = np.bincount(owners)[owners]
    model = LogisticRegression(
        C=_STRENGTH, solver="liblinear", class_weight={True: _WEIGHT_OF_ATTACKS, False: 1}, random_state=SEED, tol=1e-3
    )
    model.fit(rows[chosen], labels, sample_weight=np.where(labels, weights / np.sqrt(counts), weights))
    found = model.coef_[0].copy()
    found[np.argsort(-np.abs(found[:KEYS]), kind="stable")[_KEPT:]] = 0.0
    return Fitted(weights=found, bias=float(model.intercept_[0]))


def _columns(found: Features) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """For each window, its non-zero columns and their values."""
    grams, letters, named = list(found.grams()), found.letters(), found.together()
    pairs = _pairs(found)
    for number, (start, end) in enumerate(zip(found.starts, found.ends, strict=True)):
        keys = np.concatenate([own[start : max(end - length + 1, start)] for own, length in grams] + letters[start:end])
        first, last = found.first[number], found.last[number]
        following = [columns for row in range(first, last) for other, columns in pairs[row] if other < last]
        concepts = np.flatnonzero(named[number])
        together = TOGETHER + (concepts[:, None] * CONCEPTS + concepts[None, :])[np.triu_indices(len(concepts))]
        blocks = (
            (keys.astype(np.int64), 1 / np.sqrt(len(keys) + GRAMS_ADDED)),
            (_joined(following), _WEIGHT_OF_FOLLOWING / np.sqrt(last - first + CONCEPTS_ADDED)),
            (together, _WEIGHT_OF_TOGETHER / np.sqrt(len(concepts) + CONCEPTS_ADDED)),
        )
        yield (
            np.concatenate([columns for columns, _ in blocks]),
            np.concatenate([np.full(len(columns), value) for columns, value in blocks]),
        )


def _pairs(found: Features) -> list[list[tuple[int, NDArray[np.int64]]]]:
    """For each row of concepts, the rows that follow it, with the columns of both."""
    pairs: list[list[tuple[int, NDArray[np.int64]]]] = [[] for _ in found.places]
    concepts = [np.flatnonzero(row) for row in found.marked]
    for step, rows, kinds in found.followers():
        for row, kind in zip(rows, kinds, strict=True):
            base = FOLLOWING + kind * CONCEPTS**2
            both = base + (concepts[row][:, None] * CONCEPTS + concepts[row + step][None, :]).ravel()
            pairs[row].append((row + step, both))
    return pairs


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.array([], dtype=np.int64)
