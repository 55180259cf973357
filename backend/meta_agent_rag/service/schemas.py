"""The data sent and received: requests, answers, records and errors, with an example each."""

from dataclasses import asdict
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    model_validator,
)

from ..agent.state import StopReason
from ..chat.coach.coach import Outcome
from ..chat.intent import Intent
from ..grounding.citations import STYLES
from ..retrieval.corpus.catalogue import DocumentRecord
from ..wording import SESSION_PATTERN
from .uploads import State

if TYPE_CHECKING:
    from ..agent.grounded import GroundedAnswer

FULL_CORPUS = "full-corpus"
CONTEXT_RESTRICTED = "context-restricted"
SourceMode: TypeAlias = Literal["full-corpus", "context-restricted"]
AskMode: TypeAlias = Literal["grounded", "teacher", "coach"]
AskStopReason: TypeAlias = Literal[StopReason, Outcome, Intent]
QUESTION_CHARACTERS = 1000
_BLANK = r"\s\u001c-\u001f\u0085"  # what `str.strip` removes: JSON Schema's white space, and five more
_QUESTION_PATTERN = rf"^[{_BLANK}]*[^{_BLANK}\u0000]([^\u0000]{{0,998}}[^{_BLANK}\u0000])?[{_BLANK}]*$"


def _without_null(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it contains a null byte; send plain text")
    return text


def _question(text: str) -> str:
    trimmed = _without_null(text).strip()
    if not trimmed:
        raise ValueError("it is empty; write a question")
    if len(trimmed) > QUESTION_CHARACTERS:
        raise ValueError(f"it has {len(trimmed)} characters; use at most {QUESTION_CHARACTERS}")
    return trimmed


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank; pass the text to answer from")
    return text


def _a_number(value: Any) -> Any:
    if isinstance(value, str | bool):
        raise ValueError("it is not a number; send it without quotes")
    return value


NUMBER = BeforeValidator(_a_number)
"""A whole number; 2.0 is accepted, as in JSON, but "2" and true are not."""
Text = Annotated[str, AfterValidator(_without_null), Field(json_schema_extra={"pattern": r"^[^\u0000]*$"})]
ContextText = Annotated[
    str,
    AfterValidator(_without_null),
    AfterValidator(_not_blank),
    Field(json_schema_extra={"pattern": rf"^[^\u0000]*[^{_BLANK}\u0000][^\u0000]*$", "minLength": 1}),
]
_DocumentName = Annotated[Text, Field(min_length=1, max_length=200)]
DocumentNames = Annotated[tuple[_DocumentName, ...], Field(min_length=1, max_length=20)]
CorpusName = Annotated[Text, Field(min_length=1, max_length=64)]
_ONE_SOURCE: list[JsonValue] = [
    {
        "anyOf": [
            {"properties": {"source_mode": {"const": FULL_CORPUS}, "context": {"type": "null"}}},
            {
                "required": ["source_mode", "context"],
                "properties": {
                    "source_mode": {"const": CONTEXT_RESTRICTED},
                    "context": {"type": ["string", "array"]},
                    "corpus": {"type": "null"},
                    "mode": {"enum": ["grounded", "teacher"]},
                    "options": {"properties": {"documents": {"type": "null"}}},
                },
            },
        ]
    },
    {
        "anyOf": [
            {
                "required": ["mode"],
                "properties": {
                    "mode": {"const": "coach"},
                    "options": {"properties": {"documents": {"type": "null"}}},
                },
            },
            {
                "properties": {
                    "mode": {"enum": ["grounded", "teacher"]},
                    "options": {"properties": {"level": {"type": "null"}, "topic": {"type": "null"}}},
                }
            },
        ]
    },
]
"""The cross-field checks of `AskRequest` as JSON schema."""


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ContextPassage(_Wire):
    """A piece of the text from which a question is answered."""

    title: Annotated[Text, Field(max_length=300)] = ""
    text: ContextText


class AskOptions(_Wire):
    """A client's options for one question, within the service's limits."""

    max_rounds: Annotated[int, Field(ge=0, le=50), NUMBER] | None = Field(
        None, description="Maximum repairs; no more than MAX_METACOGNITIVE_ROUNDS."
    )
    citation_style: Annotated[str, Field(max_length=40, json_schema_extra={"enum": [*STYLES]})] | None = Field(
        None, description="How citations are written."
    )
    unsupported_claims: Literal["mark", "drop"] | None = Field(
        None, description="Whether claims not supported by any cited passage are marked or dropped."
    )
    documents: DocumentNames | None = Field(
        None, description="Answer only from these documents of the corpus, given by title or file."
    )
    level: Annotated[int, Field(ge=1, le=3), NUMBER] | None = Field(
        None, description="How little the coach reveals: 1 (a hint and a question) to 3; only with mode coach."
    )
    topic: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The topic to which the coach limits its search and its questions; only with mode coach."
    )


class AskRequest(_Wire):
    """A question for a corpus, or for a supplied text."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": _ONE_SOURCE,
            "examples": [
                {"question": "Where was the director of The Salt Road born?", "corpus": "sample"},
                {
                    "question": "Who directed The Salt Road?",
                    "source_mode": CONTEXT_RESTRICTED,
                    "context": "The Salt Road is a film that Mira Holt directed.",
                },
            ],
        }
    )

    question: Annotated[str, AfterValidator(_question)] = Field(
        description="1 to 1,000 characters after trimming; `@name` limits it to a document of the corpus.",
        json_schema_extra={"pattern": _QUESTION_PATTERN},
    )
    corpus: CorpusName | None = Field(None, description="Only with full-corpus; default: the first one served.")
    source_mode: SourceMode = Field(
        "full-corpus", description="Answer from the corpus, or only from the text passed in `context`."
    )
    context: ContextText | Annotated[tuple[ContextPassage, ...], Field(min_length=1, max_length=200)] | None = Field(
        None, description="The text to answer from; only with context-restricted."
    )
    mode: AskMode = Field(
        "grounded",
        description="The checked answer, explained to a learner (teacher), or a coach's question instead.",
    )
    session: Annotated[str, Field(pattern=SESSION_PATTERN)] | None = Field(
        None, description="A session name; follow-up questions are understood from what this key asked before in it."
    )
    options: AskOptions = AskOptions()

    @model_validator(mode="after")
    def _one_source(self) -> "AskRequest":
        if self.source_mode == CONTEXT_RESTRICTED:
            if self.context is None:
                raise ValueError("source_mode context-restricted needs a context; pass the text to answer from")
            if self.corpus is not None:
                raise ValueError("source_mode context-restricted searches no corpus; leave corpus out")
            if self.mode == "coach":
                raise ValueError("the coach searches a corpus; leave source_mode context-restricted out")
        elif self.context is not None:
            raise ValueError("a context requires source_mode context-restricted; set it, or leave the context out")
        if self.options.documents is not None and (self.source_mode == CONTEXT_RESTRICTED or self.mode == "coach"):
            raise ValueError("documents are those of a corpus, in mode grounded or teacher; leave documents out")
        for name in ("level", "topic"):
            if getattr(self.options, name) is not None and self.mode != "coach":
                raise ValueError(f"a {name} requires mode coach; set it, or leave the {name} out")
        return self

    def context_texts(self) -> list[str]:
        """The texts of the context, none if there is no context."""
        if self.context is None:
            return []
        return [self.context] if isinstance(self.context, str) else [passage.text for passage in self.context]


class CitationOut(BaseModel):
    """Where a citation leads: a document, a place in it, and a snippet that stands there to the letter."""

    doc_id: str
    passage_id: str
    title: str
    section: str | None
    page: int | None
    last_page: int | None
    span: tuple[int, int] | None
    snippet: str


class ScreenedOut(BaseModel):
    """A passage, or only its section heading, that was left out, and why; its text is not repeated."""

    doc_id: str
    passage_id: str
    kinds: list[str] = Field(description="What was found: names of signs of an injection, or `short`.")
    reason: str


def as_checked(result: "GroundedAnswer") -> dict[str, Any]:
    """The fields of a checked answer that all interfaces share."""
    sure = result.confidence
    return {
        "answer": result.text,
        "short_answer": result.short_answer,
        "refused": result.refused,
        "citations": [CitationOut.model_validate(asdict(citation)) for citation in result.citations],
        "confidence": None if sure is None else sure.score,
        "level": None if sure is None else sure.level,
        "confidence_score": None if sure is None else sure.score,
        "confidence_level": None if sure is None else sure.level,
        "confidence_parts": None if sure is None else {"retrieval": sure.retrieval, "generation": sure.generation},
        "rounds": len(result.answer.rounds),
        "stop_reason": result.answer.stop_reason,
    }


class ConfidenceParts(BaseModel):
    """The two parts of a confidence, both in 0..1; CONFIDENCE_FLOOR applies to 0.6 x retrieval + 0.4 x generation."""

    retrieval: float = Field(description="How well the cited passages fit the question.")
    generation: float = Field(
        description="The calibrated probability that the answer is correct, if known; else the model's own estimate."
    )


class AskResponse(BaseModel):
    """A checked answer, or a text that suggests what to try, with the reason in `refused`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query_id": "0198c0de5c7e7d0f9a3c4b1e2f6a7b8c",
                    "answer_id": "0198c0de5d017a55b2f0c3d4e5f60718",
                    "answer": "She was born in Oslo [Mira Holt].",
                    "short_answer": "Oslo",
                    "refused": None,
                    "citations": [],
                    "confidence": 0.82,
                    "level": "high",
                    "confidence_score": 0.82,
                    "confidence_level": "high",
                    "confidence_parts": {"retrieval": 0.9, "generation": 0.82},
                    "rounds": 2,
                    "stop_reason": "satisfied",
                    "cost_usd": 0.00041,
                    "source_mode": FULL_CORPUS,
                    "corpus": "sample",
                    "mode": "grounded",
                    "success": None,
                    "hint": None,
                    "topic": None,
                    "degraded": [],
                    "screened": [],
                }
            ]
        }
    )

    query_id: str = Field(description="Id of the record of this answer: GET /v1/queries/{query_id}.")
    answer_id: str
    answer: str
    short_answer: str
    refused: str | None
    citations: list[CitationOut]
    confidence: float | None = Field(
        description="0..1: the calibrated probability that the answer is correct; if unknown, the mean of the parts."
    )
    level: Literal["high", "medium", "low"] | None
    confidence_score: float | None = Field(None, description="The same as `confidence`.")
    confidence_level: Literal["high", "medium", "low"] | None = Field(None, description="The same as `level`.")
    confidence_parts: ConfidenceParts | None = Field(
        None, description="What was found, and how the answer was generated."
    )
    rounds: int = Field(description="Number of drafts; 1 means that nothing was repaired.")
    stop_reason: AskStopReason = Field(
        description="Why the loop stopped; for the coach, what happened to the draft; for small talk, its intent."
    )
    cost_usd: float | None = Field(description="`null` if the model has no known price.")
    source_mode: SourceMode
    corpus: str | None
    mode: AskMode = "grounded"
    success: bool | None = Field(None, description="Whether the coach says that the learner's answer was right.")
    hint: bool | None = Field(None, description="Whether the coach gave a hint because the learner was stuck.")
    topic: str | None = Field(None, description="The topic of the coach's question: the chosen or the nearest one.")
    degraded: list[str] = Field(description="What failed along the way: `dense` or `lexical`, if an index is down.")
    screened: list[ScreenedOut] = Field(
        default=[], description="Passages that were left out because they address the model, or are too short."
    )


class ErrorOut(BaseModel):
    """Why a request was refused."""

    code: str
    message: str = Field(description="One sentence.")
    request_id: str


class ErrorEnvelope(BaseModel):
    """The body of every refusal."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "code": "timeout",
                        "message": "Query processing timed out. Try a simpler question.",
                        "request_id": "5f0c2d7e9b1a4c38",
                    }
                }
            ]
        }
    )

    error: ErrorOut


class QueryRecord(BaseModel):
    """The record of one response."""

    query_id: str
    answer_id: str
    request_id: str
    at: datetime
    endpoint: str
    status: int
    success: bool
    error: str | None
    record: dict[str, Any] = Field(description="All other stored fields.")


class SummaryRequest(BaseModel):
    """Documents of a corpus to summarise."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"corpus": "reports", "documents": ["report.pdf"], "dry_run": True}]},
    )

    corpus: CorpusName | None = Field(None, description="Default: the first one served.")
    documents: DocumentNames | None = Field(
        None, description="The documents, given by title or file; default: all of the corpus."
    )
    dry_run: StrictBool = Field(False, description="Only estimate the number of calls and the cost; calls no model.")


class EstimateOut(BaseModel):
    """The effort, estimated before the first call."""

    calls: int = Field(description="One per section; a malformed reply is requested once more.")
    prompt_tokens: int
    max_cost_usd: float | None = Field(description="The cost with every reply at its limit; `null` without a price.")


class SummarySource(BaseModel):
    """A summarised document."""

    doc_id: str
    title: str
    sections: int
    failed: int = Field(description="Number of sections whose call failed or was too late.")
    left_out: int = Field(description="Number of passages left out because they address a language model.")


class SummaryResponse(BaseModel):
    """A summary whose points are all cited; of a dry run, only the estimate."""

    query_id: str = Field(description="Id of the record of this summary: GET /v1/queries/{query_id}.")
    answer_id: str
    corpus: str
    dry_run: bool
    estimate: EstimateOut
    summary: str | None = Field(description="Markdown: documents, sections and points; `null` for a dry run.")
    complete: bool = Field(description="Whether every section was summarised.")
    citations: list[CitationOut]
    sources: list[SummarySource]
    calls: int = Field(description="Number of model calls made.")
    cost_usd: float | None = Field(description="`null` if the model has no known price.")


class CorpusOut(BaseModel):
    """A served corpus; the counts are `null` if unknown."""

    name: str
    documents: int | None
    passages: int | None
    takes_documents: bool


class Corpora(BaseModel):
    """The corpora that can be asked, the default first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"corpora": [{"name": "reports", "documents": 12, "passages": 840, "takes_documents": True}]},
            ]
        }
    )

    corpora: list[CorpusOut]


class CorpusDocumentOut(BaseModel):
    """A document of a corpus: citations name it by `doc_id`, the option `documents` by title or file."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "doc_id": "report-1f0c2d7e9b1a",
                    "title": "Annual report",
                    "file": "report.pdf",
                    "kind": "pdf",
                    "pages": 12,
                    "passages": 31,
                }
            ]
        }
    )

    doc_id: str
    title: str
    file: str = Field(description="The name of its file, without the folder.")
    kind: str = Field(description="The format it was read as.")
    pages: int | None = Field(description="`null` if the format has no pages.")
    passages: int

    @classmethod
    def of(cls, document: DocumentRecord) -> "CorpusDocumentOut":
        """The entry of a document; its folder is not disclosed."""
        return cls(
            doc_id=document.id,
            title=document.title,
            file=PurePath(document.source).name,
            kind=document.kind,
            pages=document.pages,
            passages=document.passages,
        )


class CorpusDocumentsOut(BaseModel):
    """Documents of a corpus, ordered by file."""

    documents: list[CorpusDocumentOut]


class RemovedOut(BaseModel):
    """The result of a removal; `removed` is false if the corpus had no such document."""

    doc_id: str
    removed: bool


class DocumentOut(BaseModel):
    """An uploaded document and its state."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "0198c0de5c7e7d0f9a3c4b1e2f6a7b8c",
                    "name": "report.pdf",
                    "corpus": "reports",
                    "state": "indexed",
                    "message": None,
                    "passages": 31,
                    "doc_id": "report-1f0c2d7e9b1a",
                    "title": "Annual report",
                }
            ]
        }
    )

    id: str
    name: str = Field(description="The stored file name; a later upload of the same name by the same key replaces it.")
    corpus: str
    state: State
    message: str | None = Field(description="Why it failed, or a note, in one sentence.")
    passages: int = Field(description="Number of passages added.")
    doc_id: str | None = Field(None, description="Its id in the corpus, as in citations, while it is there.")
    title: str | None = Field(None, description="Its title in the corpus, while it is there.")


class DocumentsOut(BaseModel):
    """The accepted documents, in the order of the files."""

    documents: list[DocumentOut]


class Health(BaseModel):
    """The process is running."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Whether questions can be answered, and what is degraded."""

    status: Literal["ready", "degraded", "unready"]
    corpora: list[str]
    degraded: list[str] = Field(
        description="`audit`: records are waiting on this machine; `dense`, `lexical`: an index is down; `disk`, "
        "`database`: it cannot be written."
    )
    audit_waiting: int = Field(description="Records not yet written to the database.")
