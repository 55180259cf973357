"""Summaries."""

from fastapi import APIRouter

from ..summaries.summarise import summarise
from ..summaries.wire import SummaryRequest, SummaryResponse
from .visiting import ASKED, KEYED, Asking, refusals

router = APIRouter(tags=["summaries"], dependencies=KEYED)


@router.post("/v1/summaries", response_model=SummaryResponse, responses=refusals(*ASKED))
async def post_summaries(asked: SummaryRequest, visit: Asking) -> SummaryResponse:
    """Summarise documents with one call per section: every point cited, within the deadline."""
    return await summarise(visit.service, asked, visit.record)
