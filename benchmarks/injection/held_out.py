"""Detection and false positive rates on texts whose frame, goal, language or source was held out of training."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from .sources import OVERRIDES, SEED, LabelledText
from .training import Fitted, Windows, fit

By: TypeAlias = Literal["frame", "goal", "language"]
KINDS: tuple[By, ...] = get_args(By)
FOLDS = 8
ENCYCLOPEDIA = ("wikipedia_passage", "paragraph")
_FALSE_ALARMS, _LOST_PARAGRAPHS = 0.0025, 0.0005
"""Half of the acceptable loss: the rate on new texts is higher than on those that the threshold was set on."""


def scores(texts: Sequence[LabelledText], windows: Windows, by: By) -> NDArray[np.float64]:
    """The score of each text by a model fitted without its group: `by` for generated attacks, else its own group."""
    found = np.zeros(len(texts))
    for part, fitted in folds(texts, windows, by):
        found[part] = fitted.scores(windows, len(texts))[part]
    return found


def folds(texts: Sequence[LabelledText], windows: Windows, by: By) -> Iterator[tuple[NDArray[np.int64], Fitted]]:
    """Folds of the texts, made of whole groups, each with a model fitted on the others."""
    groups = np.array([(text.attack, getattr(text, by) or text.group) for text in texts])
    names, numbers = np.unique(groups, axis=0, return_inverse=True)
    turn = np.random.default_rng(SEED).permutation(len(names)) % FOLDS
    for number in range(FOLDS):
        held = turn[numbers.ravel()] == number
        yield np.flatnonzero(held), fit(texts, windows, np.flatnonzero(~held))


def threshold(texts: Sequence[LabelledText], found: NDArray[np.float64]) -> float:
    """The lowest threshold that loses few harmless texts from real sources, and even fewer paragraphs."""
    harmless = np.array([not text.attack and text.kind != "made" for text in texts])
    paragraphs = harmless & np.array([text.kind in ENCYCLOPEDIA for text in texts])
    limits = ((paragraphs, _LOST_PARAGRAPHS), (harmless, _FALSE_ALARMS))
    return max(
        float(np.quantile(found[chosen], 1 - share, method="inverted_cdf")) for chosen, share in limits if chosen.any()
    )


def rates(texts: Sequence[LabelledText], flagged: NDArray[np.bool_]) -> dict[str, dict[str, object]]:
    """Texts and flagged texts by kind, and over the kinds that should be detected and those that should not."""
    rows = {}
    for harmless, kind in sorted({(not text.attack, text.kind) for text in texts}):
        rows[kind] = _rate([text.kind == kind and text.attack != harmless for text in texts], flagged, not harmless)
    rows["override kinds"] = _rate([text.kind in OVERRIDES for text in texts], flagged, attack=True)
    rows["harmless"] = _rate([not text.attack for text in texts], flagged, attack=False)
    return {kind: row for kind, row in rows.items() if row["texts"]}


def by_tag(texts: Sequence[LabelledText], flagged: NDArray[np.bool_], by: By) -> dict[str, dict[str, object]]:
    """Texts and flagged texts by frame, goal or language of the generated attacks."""
    tags = [getattr(text, by) if text.attack else "" for text in texts]
    rows = {tag: _rate([own == tag for own in tags], flagged, attack=True) for tag in sorted({*tags} - {""})}
    return rows | {f"every {by}": _rate([bool(own) for own in tags], flagged, attack=True)}


def _rate(chosen: Sequence[bool], flagged: NDArray[np.bool_], attack: bool) -> dict[str, object]:
    own = np.flatnonzero(chosen)
    return {"attack": attack, "texts": len(own), "flagged": int(flagged[own].sum())}
