"""Sentences that may support an answer which quotes none: a route that only votes gives a bare answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...retrieval.passage import Passage
from ..relevance import asked_about
from .sources import read_sources
from .statement import Item, Statement, read

_MOST = 3
_LEAST_HELD = 2


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    text: str
    statement: Statement
    title: Statement

    def held(self, items: Sequence[Item]) -> list[Item]:
        return [item for item in items if self.statement.holds(item) or self.title.holds(item)]


def proposed(question: str, answer: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """Up to three sentences, word for word, that together contain most of what question and answer mention.

    Each is chosen for what those before it lack, and must contain two such things or a name.
    """
    wanted = list({item.written.lower(): item for item in (*asked_about(question), *read(answer).items)}.values())
    candidates = list(_candidates(passages))
    found: list[str] = []
    while wanted and candidates and len(found) < _MOST:
        best = max(candidates, key=lambda one: len(one.held(wanted)))
        held = best.held(wanted)
        if len(held) < _LEAST_HELD and not any(item.is_name for item in held):
            break
        found.append(best.text)
        wanted = [item for item in wanted if item not in held]
        candidates.remove(best)
    return tuple(found)


def _candidates(passages: Sequence[Passage]) -> Iterator[_Candidate]:
    for source in read_sources(passages, range(1, len(passages) + 1)):
        for one in source.sentences:
            text = source.passage.text[one.start : one.end].strip()
            yield _Candidate(text=text, statement=one.statement, title=source.title)
