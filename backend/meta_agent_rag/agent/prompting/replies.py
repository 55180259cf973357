"""The JSON that each stage requests, as pydantic models.

`maxLength` and `maxItems` are hints for endpoints that decode under a schema: they keep a small model
from running on. They are not validated, since a longer reply is acceptable.
"""

from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, create_model, field_validator

from ...grounding.abstention import is_abstention
from ..deficits import DeficitRegistry
from ..state import NO_DEFICIT
from .packing import without_marks

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _text(value: object) -> object:
    return "" if value is None else value


_Blank = Annotated[str, BeforeValidator(_text), StringConstraints(strip_whitespace=True)]
"""A text that may be empty or null."""


def _without_blanks(value: object) -> object:
    """A list without its blank entries: models send `[""]` when asked to leave a list empty."""
    if not isinstance(value, list):
        return value
    return [item for item in value if not isinstance(item, str) or item.strip()]


def _joined(value: object) -> object:
    """A text, or the texts of a list separated by semicolons."""
    return "; ".join(map(str, value)) if isinstance(value, list) else _text(value)


def _share(value: object) -> float | None:
    """A number in 0..1, given as such or as a percentage; an invalid self-estimate is not worth a retry."""
    written = str(value).strip()
    try:
        number = float(written.rstrip("%"))
    except ValueError:
        return None
    number = number / 100.0 if written.endswith("%") or 1.0 < number <= 100.0 else number
    return number if 0.0 <= number <= 1.0 else None


def _at_most(**hints: Any) -> Any:
    return Field(json_schema_extra=hints)


Line = Annotated[_Text, _at_most(maxLength=240)]
Sentence = Annotated[_Text, _at_most(maxLength=300)]
Lines = Annotated[list[Line], BeforeValidator(_without_blanks)]
Confidence = Annotated[float | None, BeforeValidator(_share)]
Short = Annotated[_Text, _at_most(maxLength=100)]


class ReplyModel(BaseModel, frozen=True, extra="ignore", coerce_numbers_to_str=True):
    """Base of all replies: unknown keys are ignored, numbers are taken as text, marks of passages are left out."""

    @field_validator("*", mode="before")
    @classmethod
    def _unmarked(cls, value: object) -> object:
        if isinstance(value, list):
            return [without_marks(item) if isinstance(item, str) else item for item in value]
        return without_marks(value) if isinstance(value, str) else value


class DraftReply(ReplyModel):
    """Stage `write`."""

    quotes: Annotated[Lines, _at_most(maxItems=3)]
    answer: Line
    short_answer: Short
    confidence: Annotated[Confidence, _at_most(minimum=0, maximum=1)] = None


def _one_or_more(value: object) -> object:
    """A list of texts; models send a single one as a text, and none as null."""
    if isinstance(value, str) or value is None:
        value = [value or ""]
    return _without_blanks(value)


class GroundedReply(DraftReply, json_schema_extra={"required": ["quotes", "answer", "short_answer"]}):
    """Stage `rewrite` over documents: what is left empty, null or out was not found."""

    quotes: Annotated[Annotated[list[Line], BeforeValidator(_one_or_more)], _at_most(maxItems=3)] = []
    answer: Annotated[_Blank, _at_most(maxLength=240)] = ""
    short_answer: Annotated[_Blank, _at_most(maxLength=100)] = ""

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """An abstention in plain words, as the system message orders: "NOT FOUND"."""
        return cls() if text and is_abstention(text) else None


class AnswererReply(GroundedReply, json_schema_extra={"required": ["quotes", "answer", "short_answer"]}):
    """Stage `write` over documents: whole sentences are quoted, and there is room to explain."""

    quotes: Annotated[Annotated[list[Sentence], BeforeValidator(_one_or_more)], _at_most(maxItems=3)] = []
    answer: Annotated[_Blank, _at_most(maxLength=500)] = ""


def _verdict(value: object) -> object:
    """A verdict as asked for; anything else, such as "unsupported", supports nothing."""
    plain = str(value).strip().lower().replace("_", " ")
    return plain if plain in {"supported", "contradicted"} else "not stated"


class ClaimVerdict(ReplyModel, json_schema_extra={"required": ["claim", "words", "calculation", "verdict", "reason"]}):
    """The critic's verdict on one claim: the words that decide, and how figures follow that no passage has."""

    claim: int
    words: Annotated[Annotated[list[Sentence], BeforeValidator(_one_or_more)], _at_most(maxItems=3)] = []
    calculation: Annotated[str, BeforeValidator(_joined), _at_most(maxLength=160)] = ""
    verdict: Annotated[Literal["supported", "contradicted", "not stated"], BeforeValidator(_verdict)]
    reason: Annotated[_Blank, _at_most(maxLength=160)] = ""


class ClaimsReply(ReplyModel, json_schema_extra={"required": ["sufficient", "claims", "answers_question"]}):
    """Stage `check_claims`."""

    sufficient: bool
    claims: Annotated[list[ClaimVerdict], _at_most(maxItems=20)]
    answers_question: bool = True


_SENT_AS = {"title": "ReferenceReply", "description": "Stage `reference`."}
"""The former name, since the schema is part of the request: cached and recorded replies are found under it."""


class SecondAnswerReply(ReplyModel, json_schema_extra=_SENT_AS):
    """Stage `second_answer`; also used by the route `step_by_step`."""

    steps: Annotated[Lines, _at_most(maxItems=3)]
    short_answer: Short

    @property
    def said(self) -> tuple[str, ...]:
        """What led to the answer."""
        return tuple(self.steps)


ReferenceReply = SecondAnswerReply
"""The former name, which routes in ROUTES_DIR may import."""


class PlainReply(ReplyModel):
    """The routes `plain_pass` and `cited_only`."""

    answer: Line
    short_answer: Short

    @property
    def said(self) -> tuple[str, ...]:
        """The answer as a sentence."""
        return (self.answer,)


class ThoughtReply(ReplyModel):
    """The route `chain_of_thought`."""

    rationale: Annotated[str, _at_most(maxLength=300)]
    short_answer: Short

    @property
    def said(self) -> tuple[str, ...]:
        """The thoughts."""
        return (self.rationale,)


class ShortAnswerReply(ReplyModel):
    """Stage `short_answer`."""

    short_answer: Short


class CritiqueReply(ReplyModel):
    """Stage `evaluate`; the registry's names replace `deficit`'s type in `critique_schema`."""

    rationale: Line
    deficit: str
    error_type: Literal["incomplete_reasoning", "answer_redundance", "ambiguous_understanding", "none"]
    suggestion: Annotated[str, _at_most(maxLength=240)]
    suggested_queries: Annotated[Lines, _at_most(maxItems=3)]


@cache
def critique_schema(deficits: DeficitRegistry) -> type[CritiqueReply]:
    """The critic's output schema: `deficit` is one of the registry's names, or none."""
    names = Literal[(*deficits.names, NO_DEFICIT)]  # type: ignore[valid-type]  # known at run time alone
    return create_model("CritiqueReply", __base__=CritiqueReply, deficit=(names, ...))
