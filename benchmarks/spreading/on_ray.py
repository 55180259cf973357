"""Shards as tasks of a Ray cluster: on whatever node is free, and anew on another where a node is lost."""

import logging
from collections.abc import Sequence

from meta_agent_rag.extras import require

from .shard_task import ShardOutcome, ShardTask, work


def cluster_size() -> int:
    """Join the cluster that is there, or start one on this machine; returns how many processors it has."""
    require("ray", "--engine ray")
    import ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(resources.get("CPU", 1)))


def carried_out(tasks: Sequence[ShardTask]) -> list[ShardOutcome]:
    """Carry out all tasks, one a processor at a time; call `cluster_size` first.

    A task whose node or process is lost begins again elsewhere, as often as that happens; one that ends with an error
    of its own does not.
    """
    import ray

    remote = ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(work)
    waiting = [remote.remote(task) for task in tasks]
    found: list[ShardOutcome] = ray.get(waiting)
    return found
