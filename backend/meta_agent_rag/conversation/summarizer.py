"""Folds exchanges into a running summary, by one call of the stage `summarize`."""

from collections.abc import Sequence

from ..llm.client import ModelSession
from ..llm.exchange import Message
from ..prompts import phrase, prompt
from .history import Exchange, fenced, transcript


async def summarize(model: ModelSession, summary: str, exchanges: Sequence[Exchange]) -> str:
    """The summary with the exchanges taken in; an empty text where the model gave none.

    The prompt shows the exchanges in about MEMORY_TOKENS, however many there are.
    Raises a `ModelError` or a `BudgetError`.
    """
    settings = model.owner.settings
    task = prompt("summarizer", settings.prompts_dir).text(
        summary=fenced(summary) or phrase("nothing_yet"),
        conversation=transcript(exchanges, settings.memory_tokens),
    )
    return " ".join((await model.ainvoke("summarize", [Message(role="user", content=task)])).split())
