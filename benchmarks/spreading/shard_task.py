"""One shard of a distributed run, in the calling process: started, or resumed where an earlier attempt stopped."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from io import StringIO
from pathlib import Path

from pydantic import SecretStr

from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings, lent_environment

from ..run.folder import CONFIG, RunFolder
from .node import ShardContext, endpoint_keys

_BUSY_SECONDS = 3600.0
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """What a node needs: the runner's `words` (its arguments), the shard, and the place of its run folder.

    `home` is the folder for relative paths and `.env`; `place` contains this shard's run folder. `settings` are those
    of the whole run, and `keys` those of its endpoints that are no settings, by variable. `node` is where it ran
    before, if known.
    """

    words: tuple[str, ...]
    shard: str
    home: str
    place: str
    settings: Settings
    keys: Mapping[str, SecretStr] = field(default_factory=dict)
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class ShardOutcome:
    """How a shard ended: the runner's exit code, its last output on stderr, and its run folder, if any.

    `at_limit` says that it stopped at its cost limit; `node` is where it ran, if known.
    """

    shard: str
    code: int
    said: str
    folder: str | None
    at_limit: bool = False
    node: str = ""


def work(task: ShardTask) -> ShardOutcome:
    """Run or continue the shard to its end.

    Raises `InputError` if the node does not share the folder. A process that was cut off from its cluster may still
    be working on the same shard; this call waits for it.
    """
    if not Path(task.home).is_dir():
        raise InputError(f"A node lacks the folder {task.home!r}; start the run from storage that all nodes share.")
    os.chdir(task.home)
    begun, words = _begun(task.place), list(task.words)
    if begun is not None:
        _wait_for(begun)
        words = [*without(words, "--protocol"), "--resume", str(begun.path)]
    words += ["--shard", task.shard, "--output-dir", task.place, "--display", "none", "--no-plots"]
    said = StringIO()
    runner = import_module("..runner", __package__)
    shard = ShardContext(settings=task.settings)
    keys = {name: key.get_secret_value() for name, key in task.keys.items()}
    with redirect_stderr(said), redirect_stdout(StringIO()), lent_environment(keys):
        code = runner.app(args=words, prog_name="runner", standalone_mode=False, obj=shard)
    folder = _begun(task.place)
    lines = said.getvalue().strip().splitlines()
    return ShardOutcome(
        shard=task.shard,
        code=code if isinstance(code, int) else 0,
        said=lines[-1] if lines else "",
        folder=None if folder is None else str(folder.path),
        at_limit=shard.at_limit,
    )


def paid_usd(task: ShardTask) -> Decimal:
    """What the shard has paid so far, as its next attempt will count it."""
    folder = _begun(task.place)
    return Decimal(0) if folder is None else folder.paid_usd()


def _begun(place: str) -> RunFolder | None:
    """The run folder of an earlier attempt; one without a configuration was never started."""
    found = sorted(file.parent for file in Path(place).glob(f"*/{CONFIG}"))
    return RunFolder(found[0]) if found else None


def without(words: Sequence[str], flag: str) -> list[str]:
    """The arguments without an option and its value: a resumed run has its own."""
    return [word for place, word in enumerate(words) if flag not in (word, words[place - 1] if place else "")]


def _wait_for(folder: RunFolder) -> None:
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            with folder.locked():
                return
        except InputError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)


def places(folder: Path, home: Path, words: Sequence[str], shards: int, *, settings: Settings) -> list[ShardTask]:
    """The tasks of all shards, each with its own place in `folder`."""
    keys = endpoint_keys(settings)
    return [
        ShardTask(
            words=tuple(words),
            shard=f"{number}/{shards}",
            home=str(home),
            place=str(folder / f"{number}-of-{shards}"),
            settings=settings,
            keys=keys,
        )
        for number in range(1, shards + 1)
    ]
