"""Shards as tasks of a Ray cluster: each runs on any free node, and restarts on another if its node is lost."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from meta_agent_rag.retrieval.encoders.cluster import join

from .shard_task import ShardOutcome, ShardTask, work


def cluster_size() -> int:
    """Join the cluster, or start one here; returns its number of processors."""
    return join("--engine ray")


def carried_out(tasks: Sequence[ShardTask]) -> Iterator[ShardOutcome]:
    """Run all tasks, one per processor at a time, and yield each outcome once it is known; call `cluster_size` first.

    A task whose node or process is lost restarts elsewhere, as often as that happens. A task that fails with its own
    error does not restart, and does not affect the others.
    """
    import ray

    remote = ray.remote(num_cpus=1, max_retries=-1)(_on_node)
    shards = {remote.options(scheduling_strategy=_place(task)).remote(task): task for task in tasks}
    waiting = list(shards)
    while waiting:
        (done,), waiting = ray.wait(waiting)
        yield _outcome(shards[done], done)


def _place(task: ShardTask) -> Any:
    """Any node, or the one that has run the task, unless it is lost."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(task.node, soft=True) if task.node else "SPREAD"


def _on_node(task: ShardTask) -> ShardOutcome:
    import ray

    return replace(work(task), node=ray.get_runtime_context().get_node_id())


def _outcome(task: ShardTask, waiting: Any) -> ShardOutcome:
    import ray

    try:
        found: ShardOutcome = ray.get(waiting)
    except ray.exceptions.RayTaskError as error:  # its text is a traceback from another machine
        return ShardOutcome(shard=task.shard, code=1, said=str(error.cause).splitlines()[0], folder=None)
    return found
