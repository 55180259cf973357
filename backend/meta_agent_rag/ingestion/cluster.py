"""Files are read by the machines of a Ray cluster, several at a time; they must lie on a disk that all nodes share."""

import asyncio
from functools import cache
from pathlib import Path

from ..retrieval.encoders.cluster import join, result
from .child import Job
from .document import ReadFile, RefusalKind, Refused
from .isolation import IsolatedReader


class ClusterReader:
    """Reads files as `IsolatedReader` does, each in a task on a node; one whose node is lost is repeated on another."""

    def __init__(self, job: Job) -> None:
        import ray

        self.at_once = join("--engine ray")
        self._job = job.to_json()
        self._remote = ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(read_on_node)

    async def read(self, path: Path, doc_id: str) -> ReadFile:
        """The document in `path`. Raises `Refused`, and `SettingsError` like `IsolatedReader`."""
        shared = str(await asyncio.to_thread(path.resolve))
        found: ReadFile | tuple[RefusalKind, str] = await result(self._remote.remote(self._job, shared, doc_id))
        if isinstance(found, ReadFile):
            return found
        raise Refused(*found)

    def close(self) -> None:
        """Nothing to end: the processes that read end with those of Ray."""


def read_on_node(job: str, path: str, doc_id: str) -> ReadFile | tuple[RefusalKind, str]:
    """On a node: the document, or kind and reason of the refusal."""
    try:
        return asyncio.run(_reader(job).read(Path(path), doc_id))
    except Refused as refused:
        return refused.kind, refused.reason


@cache
def _reader(job: str) -> IsolatedReader:
    return IsolatedReader(Job.from_json(job))
