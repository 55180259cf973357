"""Shards as tasks of a Ray cluster: each runs on any free node, and restarts on another if its node is lost."""

from collections.abc import Sequence
from typing import Any

from meta_agent_rag.retrieval.encoders.cluster import join

from .shard_task import ShardOutcome, ShardTask, work


def cluster_size() -> int:
    """Join the cluster, or start one here; returns its number of processors."""
    return join("--engine ray")


def carried_out(tasks: Sequence[ShardTask]) -> list[ShardOutcome]:
    """Run all tasks, one per processor at a time; call `cluster_size` first.

    A task whose node or process is lost restarts elsewhere, as often as that happens. A task that fails with its own
    error does not restart, and does not affect the others.
    """
    import ray

    remote = ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(work)
    waiting = [remote.remote(task) for task in tasks]
    return [_outcome(task, one) for task, one in zip(tasks, waiting, strict=True)]


def _outcome(task: ShardTask, waiting: Any) -> ShardOutcome:
    import ray

    try:
        found: ShardOutcome = ray.get(waiting)
    except ray.exceptions.RayTaskError as error:  # its text is a traceback from another machine
        return ShardOutcome(shard=task.shard, code=1, said=str(error.cause).splitlines()[0], folder=None)
    return found
