"""Checks before shards are merged: the same experiment, every shard once, nothing repeated or missing."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meta_agent_rag.errors import InputError
from meta_agent_rag.wording import counted

from ..run.folder import CODE, differing
from ..run.provenance import changed_settings
from ..run.sampling import sample_digest, shard_numbers

_OF_THIS_MACHINE = ("shard", "data_file", "aliases_file")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One of several runs: `run` is its `config.json`, or the first line of its record.

    `answered` are the ids of its questions by row of the table, `rows` the names of all rows.
    """

    name: str
    run: Mapping[str, Any]
    rows: Sequence[str]
    answered: Mapping[str, Collection[str]]

    @property
    def place(self) -> tuple[int, int]:
        """The shard's number and the number of shards; raises `InputError` if the run is not a shard."""
        shard = self.run["experiment"].get("shard")
        if shard is None or "sample" not in self.run:
            raise InputError(f"{self.name!r} was run without --shard I/N, so it cannot be merged; name only shards.")
        return shard_numbers(shard)


def ordered(shards: Sequence[Shard]) -> list[Shard]:
    """The checked shards of one run, in order; raises `InputError` that says what to do."""
    found = sorted(shards, key=lambda shard: shard.place)
    _require_one_experiment(found)
    _require_each_once(found)
    _require_whole(found)
    return found


def _require_one_experiment(shards: Sequence[Shard]) -> None:
    first = shards[0]
    for shard in shards[1:]:
        changed = [
            *(name for name in CODE if first.run.get(name) != shard.run.get(name)),
            *(["questions"] if first.run["sample"] != shard.run["sample"] else []),
            *(name for name, value in _experiment(first).items() if _experiment(shard).get(name) != value),
            *differing(first.run, shard.run),
            *(name.upper() for name in changed_settings(first.run["settings"], shard.run["settings"])),
        ]
        if changed:
            raise InputError(
                f"{first.name!r} and {shard.name!r} are different experiments: they differ in {', '.join(changed)}; "
                "rerun one of them with the settings of the other."
            )


def _experiment(shard: Shard) -> dict[str, Any]:
    return {name: value for name, value in shard.run["experiment"].items() if name not in _OF_THIS_MACHINE}


def _require_each_once(shards: Sequence[Shard]) -> None:
    counts = {shard.place[1] for shard in shards}
    if len(counts) > 1:
        cuts = " and ".join(map(str, sorted(counts)))
        raise InputError(f"The runs were divided into {cuts} shards; merge shards of one division.")
    (count,) = counts
    there = Counter(shard.place[0] for shard in shards)
    for shard in shards:
        if there[shard.place[0]] > 1:
            raise InputError(f"Two of the runs are shard {shard.place[0]}/{count}; leave one of them out.")
    if missing := [f"{number}/{count}" for number in range(1, count + 1) if number not in there]:
        raise InputError(f"Missing: shard {', '.join(missing)}; run it with --shard {missing[0]}, or name its run too.")


def _require_whole(shards: Sequence[Shard]) -> None:
    """Check that every question of the sample occurs once in every row of the table."""
    seen: dict[str, str] = {}
    for shard in shards:
        number, count = shard.place
        wanted = len(range(number - 1, shard.run["sample"]["questions"], count))
        for row in shard.rows:
            if lacking := wanted - len(shard.answered.get(row, ())):
                raise InputError(
                    f"{shard.name!r} lacks {lacking} of {counted(wanted, 'answer')} of {row!r}; continue it with "
                    f"--resume {shard.name}, then merge."
                )
        for id_ in {id_ for ids in shard.answered.values() for id_ in ids}:
            if id_ in seen:
                raise InputError(f"{seen[id_]!r} and {shard.name!r} both answer {id_!r}; leave one of them out.")
            seen[id_] = shard.name
    if sample_digest(list(seen)) != shards[0].run["sample"]["sha256"]:
        raise InputError("The runs answer questions outside their sample; run the shards again.")
