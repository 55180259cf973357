"""The evidence of a round. It grows between calls: a search costs none, and later calls read what it finds.

The subject of a later fact is known only once the earlier one is answered, and a search for the question alone could
not have found it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from ...retrieval.passage import Found
from ...retrieval.screening import Dropped
from ...text.names import content_words, unqualified
from ..context import Context
from ..prompting import Packed, pack
from ..state import State, add_found, shown

_LOG = logging.getLogger(__name__)
_PASSAGES = 3
"""The most passages that a search adds (docs/decisions/048)."""
_SHARE = 0.25
"""The share of the time left before the deadline that a search may take."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Evidence and its prompt. `known` are the ids that no search adds, `asked` the queries that none repeats.

    `added`, `searches` and `dropped` are what was found, with which queries, and what screening removed from it.
    """

    evidence: tuple[Found, ...]
    packed: Packed
    known: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    added: tuple[Found, ...] = ()
    searches: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def was_searched(self, passage_id: str | None) -> bool:
        """Whether a search between calls has found this passage."""
        return any(found.passage.id == passage_id for found in self.added)


def reading_of(state: State, context: Context) -> Reading:
    """The evidence so far, without passages that a repair has set aside."""
    evidence = shown(state)
    return Reading(
        evidence=evidence,
        packed=_packed(evidence, context),
        known=frozenset(found.passage.id for found in state.get("evidence", ())),
        asked=frozenset(query for round_ in state.get("rounds", ()) for query in round_.searches),
    )


async def read_on(context: Context, reading: Reading, subject: str, queries: Sequence[str]) -> Reading:
    """The evidence with the best new passages for the queries, unless one in the prompt has the subject as title.

    It is as it was if it cannot be searched for in time.
    """
    wanted = set(content_words(unqualified(subject)))
    if wanted and any(set(content_words(unqualified(title))) == wanted for title in reading.packed.titles):
        return reading
    fresh = [query for query in queries if query not in reading.asked and query not in reading.searches]
    if context.retriever is None or not context.may_search or not fresh:
        return reading
    seconds = None if context.deadline is None else _SHARE * (context.deadline - time.monotonic())
    try:
        searching = context.retriever.retrieve(fresh, k=_PASSAGES, exclude=reading.known)
        retrieval = await asyncio.wait_for(searching, seconds)
    except Exception as error:  # noqa: BLE001  # a caller's retriever may raise anything, and the loop can do without
        _LOG.warning("A search between two calls failed; the passages so far are kept: %s", error)
        return reading
    new = [found for found in retrieval.found if found.passage.id not in reading.known][:_PASSAGES]
    reading = replace(reading, searches=(*reading.searches, *fresh), dropped=(*reading.dropped, *retrieval.dropped))
    return _with(context, reading, new)


def joined(context: Context, reading: Reading, others: Sequence[Reading]) -> Reading:
    """The evidence with what the other readings, which began with it, have added, in turns."""
    turns = chain.from_iterable(zip_longest(*(other.added for other in others)))
    searches = dict.fromkeys(query for other in others for query in other.searches)
    dropped = dict.fromkeys(one for other in others for one in other.dropped)
    reading = replace(reading, searches=tuple(searches), dropped=tuple(dropped))
    return _with(context, reading, [found for found in turns if found is not None])


def _with(context: Context, reading: Reading, new: Sequence[Found]) -> Reading:
    added = add_found(reading.added, new)
    evidence = add_found(reading.evidence, added)
    packed = reading.packed if evidence == reading.evidence else _packed(evidence, context)
    known = reading.known | {found.passage.id for found in added}
    return replace(reading, evidence=evidence, packed=packed, known=known, added=added)


def _packed(evidence: Sequence[Found], context: Context) -> Packed:
    return pack(evidence, context.model.owner.evidence_tokens(), marked=context.grounded)
