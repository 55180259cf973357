"""The data sent and received: requests, answers, records and errors."""

from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import UploadFile
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from ..agent.grounded import GroundedAnswer
from ..agent.state import StopReason
from ..chat.coach.coach import CoachReply, Outcome
from ..chat.intent import Intent
from ..chat.session import DocumentsReply, Turn
from ..grounding.citations import Citation
from ..retrieval.screening import Dropped
from ..wording import SESSION_PATTERN
from .uploads import State

FULL_CORPUS = "full-corpus"
CONTEXT_RESTRICTED = "context-restricted"
SourceMode: TypeAlias = Literal["full-corpus", "context-restricted"]
AskMode: TypeAlias = Literal["grounded", "teacher", "coach"]
QUESTION_CHARACTERS = 1000


def written(text: str) -> str:
    """The text, unless it is blank or contains a null byte, for which `ValueError` is raised."""
    if "\x00" in text:
        raise ValueError("it contains a null byte; send plain text")
    if not text.strip():
        raise ValueError("it is blank; write something")
    return text


_Text = Annotated[str, Field(min_length=1), AfterValidator(written)]
Question = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=QUESTION_CHARACTERS), AfterValidator(written)
]
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ContextPassage(_Wire):
    """A piece of the text from which a question is answered."""

    title: Annotated[str, Field(max_length=300)] = ""
    text: _Text


class AskOptions(_Wire):
    """Options of mode coach."""

    level: Annotated[int, Field(strict=True, ge=1, le=3)] | None = Field(
        None, description="How little the coach reveals: 1 (a hint and a question) to 3."
    )
    topic: _Name | None = Field(None, description="The topic to which the coach limits its search and its questions.")


class AskRequest(_Wire):
    """A question for a corpus, or for a supplied text."""

    question: Question = Field(
        description="1 to 1,000 characters after trimming; `@name` limits it to a document of the corpus."
    )
    corpus: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None, description="Only with full-corpus; default: the first one served."
    )
    source_mode: SourceMode = Field(
        "full-corpus", description="Answer from the corpus, or only from the text passed in `context`."
    )
    context: Annotated[
        Annotated[list[ContextPassage], Field(min_length=1, max_length=200)] | None,
        BeforeValidator(
            lambda value: [{"text": value}] if isinstance(value, str) else value,
            json_schema_input_type=str | list[ContextPassage] | None,
        ),
    ] = Field(None, description="The text to answer from, or its passages; only with context-restricted.")
    mode: AskMode = Field(
        "grounded", description="The checked answer, explained to a learner (teacher), or a coach's question instead."
    )
    session: Annotated[str, Field(pattern=SESSION_PATTERN)] | None = Field(
        None, description="A session name; follow-up questions are understood from what this key asked before in it."
    )
    options: AskOptions = AskOptions()

    @model_validator(mode="after")
    def _one_source(self) -> "AskRequest":
        restricted = self.source_mode == CONTEXT_RESTRICTED
        if restricted and self.context is None:
            raise ValueError("context-restricted needs a context; pass the text to answer from")
        if restricted and (self.corpus is not None or self.mode == "coach"):
            raise ValueError("context-restricted searches no corpus; leave out corpus and mode coach")
        if not restricted and self.context is not None:
            raise ValueError("a context requires source_mode context-restricted; set it")
        return self


class UploadForm(BaseModel):
    """Files to add to a corpus, as multipart/form-data."""

    model_config = ConfigDict(extra="forbid")
    files: Annotated[list[UploadFile], Field(min_length=1, max_length=20)]


class CheckedReply(BaseModel):
    """The fields of an answer that all interfaces share; if `refused` names a reason, `answer` says what to try."""

    answer: str
    short_answer: str = ""
    refused: str | None = None
    citations: list[Citation] = []
    confidence_score: float | None = Field(
        None, description="0..1: the calibrated probability that the answer is correct; if unknown, its parts' mean."
    )
    confidence_level: Literal["high", "medium", "low"] | None = None
    rounds: int = Field(0, description="Number of drafts; 1 means that nothing was repaired.")
    stop_reason: Literal[StopReason, Outcome, Intent] = Field(
        description="Why the loop stopped; for the coach, what happened to the draft; for small talk, its intent."
    )
    corpus: str | None
    cost_usd: float | None = Field(description="`null` if the model has no known price.")
    screened: list[Dropped] = Field(
        [], description="Passages that were left out because they address the model, or are too short."
    )


def as_checked(result: GroundedAnswer) -> dict[str, Any]:
    """A checked answer as the fields of `CheckedReply`."""
    sure = result.confidence
    return {
        "answer": result.text,
        "short_answer": result.short_answer,
        "refused": result.refused,
        "citations": result.citations,
        "confidence_score": None if sure is None else sure.score,
        "confidence_level": None if sure is None else sure.level,
        "rounds": len(result.answer.rounds),
        "stop_reason": result.answer.stop_reason,
        "screened": [gone for gone in dict.fromkeys(result.answer.dropped) if gone.kinds],
    }


def reply_fields(turn: Turn) -> dict[str, Any]:
    """A reply of the conversation as fields of `AskResponse`: a checked answer, the coach's reply, or small talk."""
    reply = turn.reply
    if isinstance(reply, DocumentsReply):
        return as_checked(reply.grounded)
    if not isinstance(reply, CoachReply):
        return {"answer": reply.text, "stop_reason": turn.reading.intent}
    return {
        "answer": reply.text,
        "refused": reply.refused,
        "rounds": len(reply.trace.attempts),
        "stop_reason": reply.trace.outcome,
        "success": reply.acknowledged,
    }


class AskResponse(CheckedReply):
    """A checked answer, or a text that suggests what to try, with the reason in `refused`."""

    query_id: str = Field(description="Id of the record of this answer: GET /v1/queries/{query_id}.")
    success: bool | None = Field(None, description="Whether the coach says that the learner's answer was right.")
    degraded: list[str] = Field([], description="What failed along the way: `dense` or `lexical`, if an index is down.")


class ErrorOut(BaseModel):
    """Why a request was refused."""

    code: str
    message: str = Field(description="One sentence.")
    type: str = Field(description="As OpenAI's: `invalid_request_error` or `server_error`.")
    request_id: str


class ErrorEnvelope(BaseModel):
    """The body of every refusal."""

    error: ErrorOut


class CorpusOut(BaseModel):
    """A served corpus; `takes_documents` if files can be added to it."""

    name: str
    takes_documents: bool


class Corpora(BaseModel):
    """The corpora that can be asked, the default first."""

    corpora: list[CorpusOut]


class CorpusDocumentOut(BaseModel):
    """A document of a corpus: citations name it by `doc_id`, a question with `@` by title or file."""

    doc_id: str = Field(validation_alias="id")
    title: str
    file: Annotated[str, BeforeValidator(lambda source: PurePath(source).name)] = Field(
        validation_alias="source", description="The name of its file, without the folder."
    )
    kind: str = Field(description="The format it was read as.")
    pages: int | None = Field(description="`null` if the format has no pages.")
    passages: int


class CorpusDocumentsOut(BaseModel):
    """Documents of a corpus, ordered by file."""

    documents: list[CorpusDocumentOut]


class DocumentOut(BaseModel):
    """An uploaded document and its state."""

    id: str
    name: str = Field(description="The stored file name; a later upload of the same name by the same key replaces it.")
    corpus: str
    state: State
    message: str | None = Field(description="Why it failed, or a note, in one sentence.")
    passages: int = Field(description="Number of passages added.")


class DocumentsOut(BaseModel):
    """The accepted documents, in the order of the files."""

    documents: list[DocumentOut]


class Readiness(BaseModel):
    """Whether questions can be answered, and what is degraded."""

    status: Literal["ready", "degraded", "unready"]
    corpora: list[str]
    degraded: list[str] = Field(
        description="`audit`: records are waiting on this machine; `disk`, `database`: it cannot be written; "
        "`NAME: dense`, `NAME: lexical`, `NAME: search`: that index of the corpus does not respond, or none."
    )
