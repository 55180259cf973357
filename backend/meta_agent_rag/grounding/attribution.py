"""Gives claims that the writer left without a mark the passage of the quote that they rest on."""

from collections.abc import Sequence
from dataclasses import replace

from ..retrieval.passage import Found
from .claims import claims
from .quotes import is_verbatim
from .support import supported


def with_quoted_passages_cited(answer: str, passages: Sequence[Found], quotes: Sequence[str]) -> str:
    """The answer with a mark behind each claim that has none, where a passage that was quoted supports it.

    `passages` are those of the writer's prompt, the first of which is number 1; `quotes` are verbatim. Marks
    that the writer set are left as they are, wrong ones too: they are judged, not mended.
    """
    texts = [found.passage.searchable() for found in passages]
    quoted = [number for number, text in enumerate(texts, 1) if any(is_verbatim(quote, [text]) for quote in quotes)]
    written, position = "", 0
    for claim in claims(answer, texts):
        if claim.marks:
            continue
        judged = {number: supported(replace(claim, marks=(number,)), passages) for number in quoted}
        best = max(judged, key=lambda number: judged[number].score, default=0)
        if best and judged[best].supported:
            end = claim.span[1]
            written += f"{answer[position:end]} [{best}]"
            position = end
    return written + answer[position:]
