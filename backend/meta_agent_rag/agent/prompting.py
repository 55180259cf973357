"""What a call of the loop is shown, and the JSON that it is asked for.

All stages of one question share one prefix: system message, evidence and question come first and stay the same; the
stage's task comes last. New evidence is appended to the old, so a provider's prefix cache still covers what was there
before. Evidence is packed by token budget: whole passages first, else whole sentences, never part of a sentence.

In users' documents each sentence is marked, so that an instruction among them reads as a quotation: tags around a
passage alone hardly change what a model obeys (Hines et al. 2024, "Defending Against Indirect Prompt Injection Attacks
With Spotlighting", who call it datamarking).

`maxLength` and `maxItems` of a reply are hints for endpoints that decode under a schema: they keep a small model from
running on. They are not validated, since a longer reply is acceptable.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, field_validator

from ..grounding.abstention import is_abstention
from ..grounding.answer_kind import kind_asked
from ..llm.messages import Message
from ..prompts import attribute, estimate_tokens, fenced, phrase, prompt
from ..retrieval.passage import Found, Passage
from ..settings import Settings
from ..text.sentences import sentences
from .context import Context
from .state import Packing

MARK = "\u00a6"
"""Starts each sentence of a marked passage; `grounded.yaml` and `coach_evidence.yaml` explain it to the model."""
_PAGE = re.compile(r"<(?=\s*/?\s*page\b)", re.IGNORECASE)
_NEW_PAGE = re.compile(r"</?page\b[^<>]*>", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The evidence as shown in a prompt, the texts it contains, and the record of what was packed."""

    text: str
    texts: tuple[str, ...]
    packing: Packing
    marked: bool = False

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of its passages."""
        return tuple(text.partition("\n")[0] for text in self.texts)


def pack(evidence: Sequence[Found], budget: int, *, marked: bool = False) -> Packed:
    """Pack passages in order into at most `budget` tokens (estimated), their sentences marked if `marked`.

    A passage that does not fit is shortened to the whole sentences that do; if not even the
    first sentence fits, it is left out, and the next one is tried.
    """
    used = 0
    blocks: list[str] = []
    texts: list[str] = []
    packed: list[str] = []
    shortened: list[str] = []
    left_out: list[str] = []
    for found in evidence:
        passage = found.passage
        text, block = _that_fits(passage, len(blocks) + 1, budget - used, marked)
        if not text:
            left_out.append(passage.id)
            continue
        used += estimate_tokens(block)
        blocks.append(block)
        texts.append(f"{passage.title}\n{text}")
        packed.append(passage.id)
        if text != passage.text:
            shortened.append(passage.id)
    packing = Packing(
        packed_ids=tuple(packed), shortened_ids=tuple(shortened), left_out_ids=tuple(left_out), tokens=used
    )
    return Packed(text="\n".join(blocks), texts=tuple(texts), packing=packing, marked=marked)


def without_marks(text: str) -> str:
    """A text that a model copied from marked sentences, across a page break or not."""
    if MARK not in text and not _NEW_PAGE.search(text):
        return text
    return " ".join(_NEW_PAGE.sub(" ", text.replace(MARK, " ")).split())


def _that_fits(passage: Passage, number: int, budget: int, marked: bool) -> tuple[str, str]:
    """The part of a passage that fits, and its block; both empty if nothing fits."""
    whole = _block(passage, number, passage.text, marked)
    if estimate_tokens(whole) <= budget:
        return passage.text, whole
    kept = ""
    for sentence in sentences(passage.text):
        longer = kept + sentence
        if estimate_tokens(_block(passage, number, longer, marked)) > budget:
            break
        kept = longer
    text = kept.rstrip()
    return text, _block(passage, number, text, marked) if text else ""


def _block(passage: Passage, number: int, text: str, marked: bool) -> str:
    """A passage as shown, with a tag where another page begins."""
    first, last = passage.start_page, passage.end_page
    about = f' title="{attribute(passage.title)}"' if passage.title else ""
    if passage.section and passage.section != passage.title:
        about += f' section="{attribute(passage.section)}"'
    if first is not None:
        about += f' page="{first}"' if last in {None, first} else f' pages="{first}-{last}"'
    breaks = [(place, page) for place, page in passage.page_breaks if place < len(text)]
    shown = ""
    for piece, (start, end) in enumerate(pairwise((0, *(place for place, _ in breaks), len(text)))):
        part = fenced(_marked(text[start:end]) if marked else text[start:end])
        shown += f'<page n="{breaks[piece - 1][1]}"/>' if piece else ""
        shown += _PAGE.sub("&lt;", part) if breaks else part
    return f'<passage n="{number}"{about}>{shown}</passage>'


@lru_cache(maxsize=1024)  # every stage of a question packs the same passages
def _marked(text: str) -> str:
    return "".join(f"{MARK} {sentence}" if sentence.strip() else sentence for sentence in sentences(text))


def task(context: Context, name: str, question: str, packed: Packed | None, **values: object) -> tuple[Message, ...]:
    """The messages of a call of the loop; the user's own words precede their interpretation."""
    shown = f"{context.asked}\n{phrase('understood_as')} {question}" if context.asked else question
    system = "grounded" if context.grounded else "system"
    return messages(context.settings, name, shown, packed, system=system, **values)


def messages(
    settings: Settings, name: str, question: str, packed: Packed | None, *, system: str = "system", **values: object
) -> tuple[Message, ...]:
    """The messages of a call with the prompt `name`; without `packed` the model sees no evidence.

    Every prompt receives the rule for short answers, so that all methods state it in the same words.
    """
    folder = settings.prompts_dir
    if packed is None:
        shown = prompt("question", folder).text(question=question)
    else:
        shown = prompt("evidence", folder).text(passages=packed.text or "(no passage was found)", question=question)
    own = prompt(name, folder, methods=settings.methods_dir)
    asked = own.text(question=question, short_answer_rule=phrase("short_answer_rule"), **values)
    return (
        Message(role="system", content=prompt(system, folder).text()),
        Message(role="user", content=f"{shown}\n\n{asked}"),
    )


def few_shot(
    settings: Settings, name: str, examples: Sequence[tuple[str, object]], question: str
) -> tuple[Message, ...]:
    """The prompt `name`, example questions with the JSON that answers each, and the question, as turns of a chat."""
    asking = prompt("question", settings.prompts_dir)
    turns = [Message(role="system", content=prompt(name, settings.prompts_dir).text())]
    for example, reply in examples:
        turns.append(Message(role="user", content=asking.text(question=example)))
        turns.append(Message(role="assistant", content=json.dumps(reply, ensure_ascii=False)))
    return (*turns, Message(role="user", content=asking.text(question=question)))


def as_asked(context: Context, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with the conversation that the question refers to and the style wanted, if any, after the task."""
    *before, last = messages
    parts = [last.content]
    if context.conversation:
        folder = context.settings.prompts_dir
        parts.append(prompt("conversation", folder).text(conversation=context.conversation))
    content = "\n\n".join([*parts, *filter(None, [context.manner])])
    return (*before, Message(role=last.role, content=content))


def asked_for(context: Context, question: str) -> str:
    """The kind of answer that the question's wording asks for; in grounded runs a verdict may be phrased freely."""
    kind = kind_asked(question)
    if context.grounded and kind == "verdict":
        return ""
    return f"{phrase('asks_for')} {phrase(f'kind_{kind}')}." if kind else ""


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


class SufficientReply(ReplyModel):
    """Stage `sufficiency`: whether the passages answer the question."""

    sufficient: bool


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


class PlainReply(ReplyModel):
    """The route `plain_pass`."""

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
