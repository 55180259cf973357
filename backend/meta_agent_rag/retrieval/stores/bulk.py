"""Elasticsearch's bulk requests: in chunks, retrying only the items that failed."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import CorpusError

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

_MOST_ACTIONS = 500
_MOST_CHARACTERS = 4_000_000
_TRIES = 6
_FIRST_PAUSE = 0.1
"""Seconds before the first retry; each further pause is twice as long, 3.1 s in total."""
_NOT_FOUND = 404


class Action(NamedTuple):
    """Index `document` under `id`, or delete that id if it is `None`."""

    id: str
    document: dict[str, str] | None


async def send(client: "AsyncElasticsearch", index: str, actions: Sequence[Action]) -> None:
    """Apply the actions, whose ids must differ.

    An item is retried if the server is busy or failing (429, 5xx). Raises `CorpusError`, naming the
    first item, for items that fail otherwise or repeatedly.
    """
    for chunk in _chunks(actions):
        failed = chunk
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_FIRST_PAUSE * 2 ** (attempt - 1))
            failed = await _try(client, index, failed, last=attempt == _TRIES - 1)
            if not failed:
                break


async def _try(client: "AsyncElasticsearch", index: str, actions: list[Action], *, last: bool) -> list[Action]:
    """Send the actions once; returns those worth retrying."""
    from elasticsearch import ApiError

    operations: list[dict[str, Any]] = []
    for action in actions:
        verb = "delete" if action.document is None else "index"
        operations += [{verb: {"_id": action.id}}, *([] if action.document is None else [action.document])]
    try:
        response = await client.bulk(index=index, operations=operations)
    except ApiError as error:
        if last or not _passing(error.meta.status):
            raise
        return actions
    outcomes = [next(iter(item.values())) for item in response["items"]]
    failed = [(action, one) for action, one in zip(actions, outcomes, strict=True) if _failed(action, one)]
    final = failed if last else [(action, one) for action, one in failed if not _passing(one["status"])]
    if final:
        raise CorpusError(_complaint(index, *final[0], count=len(final)))
    return [action for action, _ in failed]


def _failed(action: Action, outcome: dict[str, Any]) -> bool:
    """Did the action fail? Deleting a missing document is not a failure."""
    return outcome["status"] >= 300 and not (action.document is None and outcome["status"] == _NOT_FOUND)


def _passing(status: int) -> bool:
    return status == 429 or status >= 500


def _complaint(index: str, action: Action, outcome: dict[str, Any], *, count: int) -> str:
    named = repr(action.document["id"]) if action.document else f"with the key {action.id!r}"
    error = outcome.get("error") or {}
    reason = f"{error.get('type', 'error')}: {error.get('reason', outcome['status'])}"
    return (
        f"Elasticsearch rejected {count} passage(s) of the index {index!r}; the first is {named} "
        f"({reason[:300]}). Fix that and try again."
    )


def _chunks(actions: Sequence[Action]) -> Iterator[list[Action]]:
    chunk: list[Action] = []
    characters = 0
    for action in actions:
        size = sum(map(len, action.document.values())) if action.document else 0
        if chunk and (len(chunk) == _MOST_ACTIONS or characters + size > _MOST_CHARACTERS):
            yield chunk
            chunk, characters = [], 0
        chunk.append(action)
        characters += size
    if chunk:
        yield chunk
