"""The tools `ask` and `search` for a client that speaks the Model Context Protocol over standard input and output."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from ..agent.grounded import GroundedAnswer
from ..asking import grounded_answer
from ..errors import InputError, MetaRagError, UnknownNameError
from ..llm.opening import Given
from ..retrieval.open_retriever import open_retriever
from ..settings import Settings
from .schemas import QUESTION_CHARACTERS, CheckedReply, as_checked

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

Corpus = Annotated[str | None, Field(description="The corpus to look in; default: the first one served.")]


class FoundPassages(BaseModel):
    """The passages that were found, best first."""

    corpus: str
    passages: list[dict[str, Any]]


def create_server(settings: Settings, corpora: Sequence[str], *, model: Given = None) -> "MCPServer":
    """The server with its tools, over these corpora alone."""
    from importlib.metadata import version

    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("meta-agent-rag", version=version("meta-agent-rag"), log_level="WARNING")

    def checked(words: str, corpus: str | None) -> tuple[str, str]:
        trimmed, name = words.strip(), corpus or corpora[0]
        if not trimmed or "\x00" in trimmed or len(trimmed) > QUESTION_CHARACTERS:
            raise InputError(f"The text has {len(trimmed)} characters; send 1 to {QUESTION_CHARACTERS}, no null bytes.")
        if name not in corpora:
            raise UnknownNameError("corpus", name, list(corpora))
        return trimmed, name

    @server.tool()
    async def ask(question: str, corpus: Corpus = None) -> CheckedReply:
        """Answer a question from a corpus of documents: checked and cited, or refused with what to try instead."""
        try:
            asked, name = checked(question, corpus)
            result: GroundedAnswer = await grounded_answer(asked, corpus=name, settings=settings, model=model)
        except MetaRagError as error:
            raise ToolError(str(error)) from None
        cost = result.totals.cost_usd
        return CheckedReply(**as_checked(result), cost_usd=None if cost is None else float(cost), corpus=name)

    @server.tool()
    async def search(query: str, corpus: Corpus = None, k: Annotated[int, Field(ge=1, le=50)] = 5) -> FoundPassages:
        """Find the k passages of a corpus most relevant to a query, with the location of each in its document."""
        try:
            wanted, name = checked(query, corpus)
            async with open_retriever(settings, name) as retriever:
                found = (await retriever.retrieve([wanted], k=k)).found
        except MetaRagError as error:
            raise ToolError(str(error)) from None
        passages = [
            {
                "title": one.passage.title,
                "section": one.passage.section,
                "page": one.passage.start_page,
                "text": one.passage.text,
                "score": one.score,
            }
            for one in found
        ]
        return FoundPassages(corpus=name, passages=passages)

    return server
