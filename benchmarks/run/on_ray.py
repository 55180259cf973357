"""A run carried out by a Ray cluster: its shards are tasks, and a task whose node is lost runs again on another.

All nodes share the folder in which the run was started, and the results are merged into one run folder at the end.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.retrieval.encoders.cluster import join
from meta_agent_rag.settings import Settings, lent_environment

from ..merge import merge_folders
from .benchmarking import NoAnswerError, benchmark, with_corpus
from .config import RunConfig, RunOptions
from .folder import CONFIG, RunFolder
from .plan import RunPlan, planned, resumed
from .provenance import OF_A_MACHINE


class ShardFailedError(MetaRagError):
    """A shard ended before all its questions were answered."""

    exit_code = 1


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """What a node needs: the shard's configuration, the folder for relative paths, and the place of its run folder.

    `keys` are those of the run's endpoints that are no settings, by variable.
    """

    config: RunConfig
    fail_on_error: float
    home: str
    place: str
    keys: Mapping[str, SecretStr]


def spread(
    plan: RunPlan, options: RunOptions, *, shards: int | None, output_dir: Path, say: bool
) -> tuple[RunFolder, dict[str, Any]]:
    """Run the plan as shards and merge them; returns the folder and the summary of the whole.

    Each shard has an equal share of the cost limit. Repeating the command continues an interrupted run with the same
    number of shards and, unless a new one is given, its limit. Raises `InputError` if that number differs, and
    `ShardFailedError`.
    """
    config, size = plan.config, join("--engine ray")
    settings = config.settings.model_dump(mode="json", exclude={*OF_A_MACHINE, "cost_limit_usd"})
    identity = hashlib.sha256(json.dumps([config.experiment, settings], sort_keys=True).encode()).hexdigest()[:12]
    folder = output_dir.absolute() / f".spread-{identity}"
    places = sorted(folder.glob("*-of-*"))
    count = int(places[0].name.partition("-of-")[2]) if places else min(len(plan.questions), shards or size)
    if places and shards not in (None, count):
        raise InputError(
            f"An interrupted run of this command has {count} shards; give --shards {count} to continue it, or delete "
            f"{str(folder)!r} to start over."
        )
    if config.mode == "open_domain" and config.corpus is None:
        with_corpus(plan)  # once, not once a shard
    if config.settings.cost_limit_usd is None:
        begun = [one for place in places if (one := _begun(str(place))) is not None]
        share = begun[0].config()["settings"].get("cost_limit_usd") if begun else None
        if share is not None:
            limited = config.settings.model_copy(update={"cost_limit_usd": share * count})
            config = replace(config, settings=limited)
    tasks = tasks_of(config, options, folder, count)
    failed = 0
    for ended, (task, error) in enumerate(carried_out(tasks), start=1):
        failed += bool(error)
        if error or say:
            complain(f"Shard {task.config.shard}: {error or 'finished'} ({ended} of {count}).")
    if failed:
        raise ShardFailedError(
            f"{failed} of {count} shards did not finish. The same command continues them, with a higher --cost-limit "
            f"if that stopped them; to start over, delete {str(folder)!r} first."
        )
    finished = [str(one.path) for task in tasks if (one := _begun(task.place)) is not None]
    merged = merge_folders(finished, output_dir, plots=options.plots)
    merged[0].note_limit(config.settings.cost_limit_usd)
    shutil.rmtree(folder)
    return merged


def tasks_of(config: RunConfig, options: RunOptions, folder: Path, count: int) -> list[ShardTask]:
    """The tasks of all shards, each with its own place in `folder` and its share of the cost limit."""
    limit = config.settings.cost_limit_usd
    settings = config.settings.model_copy(update={"cost_limit_usd": None if limit is None else limit / count})
    named = {row.key for row in settings.model_roles.endpoints.values() if row.key}
    foreign = sorted(name for name in named if name.lower() not in Settings.model_fields)
    return [
        ShardTask(
            config=replace(config, settings=settings, shard=f"{number}/{count}"),
            fail_on_error=options.fail_on_error,
            home=str(Path.cwd()),
            place=str(folder / f"{number}-of-{count}"),
            keys={name: key for name in foreign if (key := settings.secret(name)) is not None},
        )
        for number in range(1, count + 1)
    ]


def carried_out(tasks: Sequence[ShardTask]) -> Iterator[tuple[ShardTask, str]]:
    """Run all tasks on the cluster, one per processor at a time; yields each once it ended, with why it failed."""
    import ray

    remote = ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(work)
    begun = {remote.remote(task): task for task in tasks}
    waiting: list[Any] = list(begun)
    while waiting:
        try:
            (done,), waiting = ray.wait(waiting)
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise ShardFailedError(
                f"The Ray cluster was lost ({_first_line(error)}); the same command continues."
            ) from None
        try:
            yield begun[done], ray.get(done)
        except ray.exceptions.RayError as error:  # its text is a traceback, perhaps from another machine
            yield begun[done], f"its task was lost ({_first_line(error)})"


def work(task: ShardTask) -> str:
    """Run or continue the shard to its end, in the calling process; returns why it did not finish, if it did not.

    The settings are those of the run, with the node's own data folder and device.
    """
    if not Path(task.home).is_dir():
        return f"a node lacks the folder {task.home!r}; start the run from storage that all nodes share"
    os.chdir(task.home)
    keys = {name: key.get_secret_value() for name, key in task.keys.items()}
    with redirect_stderr(StringIO()), redirect_stdout(StringIO()), lent_environment(keys):
        try:
            node = Settings.load()
            own = task.config.settings.model_copy(update={name: getattr(node, name) for name in OF_A_MACHINE})
            config, begun = replace(task.config, settings=own), _begun(task.place)
            if begun is not None:
                config = resumed(config, begun, frozenset({"cost_limit_usd"}))
            options = RunOptions(plots=False, fail_on_error=task.fail_on_error)
            benchmark(planned(config), options, begun, Path(task.place), "none")
        except NoAnswerError:
            pass  # complete, although nothing was answered
        except MetaRagError as error:
            return str(error)
    return ""


def _begun(place: str) -> RunFolder | None:
    """The run folder of an earlier attempt; one without a configuration was never started."""
    found = sorted(file.parent for file in Path(place).glob(f"*/{CONFIG}"))
    return RunFolder(found[0]) if found else None


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "cause", None) or error).strip().splitlines() or [repr(error)])[0]
