"""The result of checking one claim."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .deriving.derived import Derived

Standing: TypeAlias = Literal["supported", "likely", "open", "refuted"]
"""The rules' verdict. `supported`: a sentence says it in the same order; `likely`: a sentence contains all its words
and nothing contradicts it; `refuted`: a figure or name is in no passage; `open`: the rules cannot decide."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """How well the cited passages support a claim.

    `score` is the share (0..1) of the claim's items that the best sentence contains; `number` and `passage_id` are
    the passage that supports it or comes closest, `None` if none is cited. `supported` is the verdict of the rules
    (`standing`), or of the critic, then with the `words` that it quoted, and in `also` the numbers of further passages
    that contain some of them. `derived` are figures that follow from others; `missing` figures and names that the
    passages lack; `fault` says why it is unsupported.
    """

    score: float
    passage_id: str | None
    supported: bool
    standing: Standing = "open"
    number: int | None = None
    words: tuple[str, ...] = ()
    also: tuple[int, ...] = ()
    derived: tuple[Derived, ...] = ()
    missing: tuple[str, ...] = ()
    fault: str | None = None
