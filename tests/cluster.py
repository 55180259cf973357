"""A Ray cluster on this machine, for tests of distributed work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def two_nodes() -> Iterator[tuple[Any, list[Any]]]:
    """Start a cluster on this machine: a head without workers and two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    small: dict[str, Any] = {"object_store_memory": 100 * 1024 * 1024}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    try:
        nodes = [cluster.add_node(num_cpus=1, **small) for _ in range(2)]
        cluster.wait_for_nodes()
        yield cluster, nodes
    finally:
        cluster.shutdown()
