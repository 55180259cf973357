"""What the checks find of one claim."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .derived import Derived

Standing: TypeAlias = Literal["supported", "likely", "open", "refuted"]
"""What the rules say. `supported`: a sentence says it in the same order; `likely`: a sentence holds all of its words,
and nothing speaks against it; `refuted`: a figure or name is in no cited passage; `open`: they cannot tell."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """How well the cited passages support a claim.

    `score` is the share of what the claim speaks of that the best sentence holds, 0..1; `number` and `passage_id` are
    the passage that supports it, or that comes nearest, `None` where none is cited. `supported` is the verdict: of the
    rules (`standing`), or of the critic, then with the `words` of the passage that it named. `derived` are figures that
    follow from others; `missing` figures and names that the cited passages lack; `fault` says what speaks against it.
    """

    score: float
    passage_id: str | None
    supported: bool
    standing: Standing = "open"
    number: int | None = None
    words: tuple[str, ...] = ()
    derived: tuple[Derived, ...] = ()
    missing: tuple[str, ...] = ()
    fault: str | None = None
