"""Retrieval where the model is unsure of what it is about to write (FLARE-direct).

Retrieve with the question; generate the next sentence as a lookahead; if a token's probability is below
`THETA`, search with the sentence minus its tokens below `BETA`, and regenerate it over the passages found;
otherwise keep it. Thresholds are the paper's for 2WikiMultiHopQA.

Departures: instructions instead of worked examples; passages found are added to the evidence, whereas the
paper replaces the evidence for one sentence; at most `SENTENCES` sentences; the short answer comes from a final call
over the reasoning. With an endpoint without log-probabilities every sentence counts as uncertain, and the notes say so.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.errors import RefusedError
from meta_agent_rag.llm.messages import Reply, Sampling
from meta_agent_rag.llm.structured import without_thinking

from .inquiry import Inquiry, concludes, next_sentence, so_far
from .method import Method, MethodTask

THETA = 0.8
BETA = 0.4
SENTENCES = 6
UNMEASURED = "no log-probabilities from this endpoint: every sentence was looked up"
UNSPELT = "a sentence was looked up whose tokens, as the endpoint reports them, do not spell it"

Tokens = Sequence[tuple[str, float]]


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Write the reasoning sentence by sentence, searching where it is uncertain; then conclude."""
    inquiry = Inquiry.of(engine, task)
    await inquiry.search(task.question)
    written: list[str] = []
    for _ in range(SENTENCES):
        sentence = await _next(inquiry, written)
        if not sentence:
            return await inquiry.concluded(written, "no_progress")
        written.append(sentence)
        if concludes(sentence):
            return await inquiry.concluded(written, "concluded")
    return await inquiry.concluded(written, "max_steps")


async def _next(inquiry: Inquiry, written: list[str]) -> str:
    """The next sentence; regenerated if the first attempt is uncertain and a search finds something."""
    sentence, tokens = await _look_ahead(inquiry, written)
    if not sentence or not unsure(tokens):
        return sentence
    query = sentence if tokens is None else masked(tokens)
    if not await inquiry.search(query or inquiry.task.question):
        return sentence
    again, _ = await _look_ahead(inquiry, written)
    return again or sentence


async def _look_ahead(inquiry: Inquiry, written: list[str]) -> tuple[str, Tokens | None]:
    """A next sentence, and its tokens with their log-probabilities if known."""
    reply = await _continued(inquiry, " ".join(written))
    sentence = next_sentence(without_thinking(reply.text), written)
    tokens = None if reply.tokens is None else of_sentence(sentence, reply.tokens)
    if tokens is None:
        inquiry.notes.append(UNMEASURED if reply.tokens is None else UNSPELT)
    return sentence, tokens


async def _continued(inquiry: Inquiry, reasoning: str) -> Reply:
    prompt = inquiry.prompt("next_sentence", inquiry.packed(reasoning), reasoning=so_far(reasoning))
    if UNMEASURED not in inquiry.notes:
        with suppress(RefusedError):  # if the plain request is refused too, the error is raised below
            return await inquiry.session.areply("step", prompt, sampling=Sampling(stop=("\n",), logprobs=True))
    return await inquiry.session.areply("step", prompt, sampling=Sampling(stop=("\n",)))


def of_sentence(sentence: str, tokens: Tokens) -> Tokens | None:
    """The tokens that spell a sentence of the reply; `None` if they do not spell it."""
    start = "".join(token for token, _ in tokens).find(sentence)
    if start < 0:
        return None
    kept: list[tuple[str, float]] = []
    place = 0
    for token, logprob in tokens:
        if place < start + len(sentence) and place + len(token) > start:
            kept.append((token, logprob))
        place += len(token)
    return kept


def unsure(tokens: Tokens | None) -> bool:
    """Whether a token is less probable than `THETA`, or the probabilities are unknown."""
    return tokens is None or any(logprob < math.log(THETA) for _, logprob in tokens)


def masked(tokens: Tokens) -> str:
    """The sentence without its tokens below `BETA`; empty if no word is left."""
    left = "".join(token for token, logprob in tokens if logprob >= math.log(BETA))
    return " ".join(left.split()) if any(character.isalnum() for character in left) else ""


METHOD = Method(
    name="flare",
    citation="Jiang et al.: Active Retrieval Augmented Generation, EMNLP 2023, arXiv:2305.06983",
    about="FLARE-direct: generates the next sentence as a lookahead; if a token's probability is below 0.8, "
    "searches with the sentence minus its tokens below 0.4 and regenerates it",
    departures="evidence is added, not replaced; a separate call gives the short answer; at most 6 sentences",
    answer=answer,
)
