"""Requests and responses for summaries."""

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from ..schemas import CitationOut, CorpusName, DocumentNames


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
