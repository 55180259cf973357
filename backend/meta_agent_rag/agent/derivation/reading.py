"""The evidence in which facts are looked up. It grows between one fact and the next by what is found about its subject.

A search between facts costs no model call: the subject of a later fact is known only once the earlier one is answered,
and a search for the question alone could not have found it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import CorpusError
from ...retrieval.passage import Found
from ...retrieval.screening import Dropped
from ..context import Context
from ..prompting import Packed, pack
from ..state import State, add_found, shown
from .look_up import names

_LOG = logging.getLogger(__name__)
_PASSAGES = 3
"""The most passages that are added for a fact (docs/decisions/048)."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Evidence and its prompt. `known` are the ids that no search returns again.

    `added` is what searches for facts have found, `dropped` what screening removed from that.
    """

    evidence: tuple[Found, ...]
    packed: Packed
    known: frozenset[str]
    added: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def was_searched(self, passage_id: str | None) -> bool:
        """Whether a search for a fact has found this passage."""
        return any(found.passage.id == passage_id for found in self.added)


def reading_of(state: State, context: Context) -> Reading:
    """The evidence so far, without passages that a repair has set aside."""
    evidence = shown(state)
    known = frozenset(found.passage.id for found in state.get("evidence", ()))
    return Reading(evidence=evidence, packed=_packed(evidence, context), known=known)


async def read_on(context: Context, reading: Reading, subject: str, asked: str) -> Reading:
    """The evidence with passages for the question `asked`, unless one is already about its subject, by title."""
    if any(names(found.passage.title, subject) for found in reading.evidence):
        return reading
    return await extended(context, reading, [subject, asked])


async def extended(context: Context, reading: Reading, queries: Sequence[str]) -> Reading:
    """The evidence with the best new passages for the queries; as it was, if it cannot be searched for."""
    if context.retriever is None or not context.may_search:
        return reading
    try:
        retrieval = await context.retriever.retrieve(queries, k=_PASSAGES, exclude=reading.known)
    except CorpusError as error:
        _LOG.warning("A search between two calls failed; the passages so far are kept: %s", error)
        return reading
    return _with(context, reading, retrieval.found, retrieval.dropped)


def joined(context: Context, reading: Reading, others: Sequence[Reading]) -> Reading:
    """The evidence with what the other readings, which began with it, have added, in their order."""
    found = [found for other in others for found in other.added]
    return _with(context, reading, found, [dropped for other in others for dropped in other.dropped])


def _with(context: Context, reading: Reading, new: Sequence[Found], dropped: Sequence[Dropped]) -> Reading:
    added = add_found(reading.added, new)
    evidence = add_found(reading.evidence, added)
    return Reading(
        evidence=evidence,
        packed=reading.packed if evidence == reading.evidence else _packed(evidence, context),
        known=reading.known | {found.passage.id for found in added},
        added=added,
        dropped=(*reading.dropped, *dropped),
    )


def _packed(evidence: Sequence[Found], context: Context) -> Packed:
    return pack(evidence, context.model.owner.evidence_tokens(), marked=context.grounded)
