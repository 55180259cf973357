"""One cost limit for all shards: what some leave over is given to those that stopped at their share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from typing import TypeAlias

from .shard_task import ShardOutcome, ShardTask

CarryOut: TypeAlias = Callable[[Sequence[ShardTask]], Iterable[ShardOutcome]]
Spent: TypeAlias = Callable[[ShardTask], Decimal]
_UNIT = Decimal("1e-9")


def carried_out(
    tasks: Sequence[ShardTask], carry_out: CarryOut, limit_usd: float | None, spent: Spent
) -> list[ShardOutcome]:
    """Run all tasks, and resume those that stopped at their share while others left something over.

    All shards together never have more than `limit_usd`: what a shard has spent stays its own, and the rest is divided
    among the unfinished. If their shares are too small for a call, half as many get larger ones, down to a single one.
    The outcomes are in the order of the tasks.
    """
    if limit_usd is None:
        found = {outcome.shard: outcome for outcome in carry_out(tasks)}
        return [found[task.shard] for task in tasks]
    limit, open_, at_once = Decimal(str(limit_usd)), list(tasks), len(tasks)
    outcomes: dict[str, ShardOutcome] = {}
    while open_ and at_once:
        before = {task.shard: spent(task) for task in tasks}
        if outcomes and sum(before.values()) >= limit:
            break
        given = shares(limit, before, [task.shard for task in open_[:at_once]])
        outcomes |= {one.shard: one for one in carry_out([_limited(task, given) for task in open_[:at_once]])}
        rest = [_again(task, outcomes[task.shard]) for task in open_ if outcomes[task.shard].at_limit]
        if len(rest) == len(open_) and all(spent(task) == before[task.shard] for task in open_):
            at_once //= 2
        open_ = rest
    return [outcomes[task.shard] for task in tasks]


def shares(limit: Decimal, spent: Mapping[str, Decimal], chosen: Sequence[str]) -> dict[str, Decimal]:
    """The cost limits of the `chosen` shards: what each has spent, and an equal part of what nobody has."""
    part = max(limit - sum(spent.values()), Decimal(0)) / len(chosen)
    return {shard: (spent[shard] + part).quantize(_UNIT, ROUND_DOWN) for shard in chosen}


def _limited(task: ShardTask, given: Mapping[str, Decimal]) -> ShardTask:
    settings = task.settings.model_copy(update={"cost_limit_usd": float(given[task.shard])})
    return replace(task, settings=settings)


def _again(task: ShardTask, outcome: ShardOutcome) -> ShardTask:
    """The task for the node that it ran on, whose response cache has the replies of an interrupted question."""
    return replace(task, node=outcome.node)
