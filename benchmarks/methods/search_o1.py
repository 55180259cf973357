"""A chain of thought that requests its own searches, and reads their results outside the chain.

The model reasons until a fact is missing, writes a query, and stops. A second call reads the passages for
that query (the paper's reason-in-documents), and only what it says enters the chain: whole passages would
break the line of thought. This repeats until the chain requests no more searches.

Departures: an instruction instead of a reasoning model's own thinking, and at most `SEARCHES` searches; the
passages of earlier searches stay in the reader's prompt, which a prefix cache makes cheap; a final call takes the
short answer from the chain, whereas the paper marks it in a box.
"""

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.errors import WithheldError
from meta_agent_rag.prompts import phrase
from meta_agent_rag.text.normalise import normalised

from .inquiry import Inquiry, so_far
from .method import Method, MethodTask

SEARCHES = 5
_OPEN, _CLOSE = "<search>", "</search>"


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Reason, search and read in turn; then conclude from the chain alone."""
    inquiry = Inquiry.of(engine, task)
    chain: list[str] = []
    asked: set[str] = set()
    while len(asked) < SEARCHES:
        thought, query = await _thought(inquiry, chain, SEARCHES - len(asked))
        if thought:
            chain.append(thought)
        if not normalised(query):
            return await inquiry.concluded(chain, "concluded" if thought else "no_progress", alone=True)
        if normalised(query) in asked:
            return await inquiry.concluded(chain, "no_progress", alone=True)
        asked.add(normalised(query))
        await inquiry.search(query)
        chain += [f"Search: {query}", f"Result: {await _read(inquiry, chain, query)}"]
    return await inquiry.concluded(chain, "max_steps", alone=True)


async def _thought(inquiry: Inquiry, chain: list[str], searches: int) -> tuple[str, str]:
    """The next piece of the chain, and the query at its end, if any."""
    written = so_far("\n".join(chain))
    said = await inquiry.write("search_o1", None, stop=_CLOSE, reasoning=written, searches=searches)
    thought, _, query = said.partition(_OPEN)
    return " ".join(thought.split()), " ".join(query.partition(_CLOSE)[0].split())


async def _read(inquiry: Inquiry, chain: list[str], query: str) -> str:
    """What the passages say about a query, in the reader's words."""
    written = so_far("\n".join(chain))
    try:
        said = await inquiry.write("read_passages", inquiry.packed(written), reasoning=written, query=query)
    except WithheldError:  # the reader found nothing to say
        return phrase("not_found")
    return " ".join(said.split())


METHOD = Method(
    name="search_o1",
    citation="Li et al.: Search-o1: Agentic Search-Enhanced Large Reasoning Models, EMNLP 2025, arXiv:2501.05366",
    about="a chain of thought that writes its own queries; a second call reads the passages, and only what it says "
    "enters the chain; at most 5 searches",
    departures="an instruction instead of a reasoning model; passages of earlier searches stay before the reader; a "
    "final call takes the short answer from the chain",
    answer=answer,
)
