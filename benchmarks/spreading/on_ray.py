"""Shards as tasks of a Ray cluster: on whatever node is free, and anew on another where a node is lost."""

from collections.abc import Sequence

from meta_agent_rag.retrieval.encoders.cluster import join, results

from .shard_task import ShardOutcome, ShardTask, work


def cluster_size() -> int:
    """Join the cluster, or start one here; returns how many processors it has."""
    return join("--engine ray")


def carried_out(tasks: Sequence[ShardTask]) -> list[ShardOutcome]:
    """Carry out all tasks, one a processor at a time; call `cluster_size` first.

    A task whose node or process is lost begins again elsewhere, as often as that happens; one that ends with an error
    of its own does not.
    """
    import ray

    remote = ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(work)
    return results([remote.remote(task) for task in tasks])
