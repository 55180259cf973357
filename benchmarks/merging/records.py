"""Records of all shards, merged into the record of one run."""

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from meta_agent_rag.errors import DataFileError

from ..recording.records import as_line, read_lines, write_lines
from ..recording.table import arms_from
from .shards import Shard, ordered

_FOUND_BY_ALL = ("passage", "vectors")
"""Kinds of lines that are the same in every record that has them."""


def join_records(paths: Sequence[Path], joined: Path) -> None:
    """Write the records of all shards as one; a replay must then sign it with its summary.

    Raises `InputError` if they are not all the shards of one run, and `DataFileError` if a file is not a record.
    """
    shards = ordered([_shard(path) for path in paths])
    files = [Path(shard.name) for shard in shards]
    run = dict(shards[0].run)
    run["experiment"] = {**run["experiment"], "shard": None}
    lines = chain([("run", run)], _questions(files), _rest(files), [("summary", {"sha256": ""})])
    write_lines(joined, (as_line({kind: content}) for kind, content in lines))


def _shard(path: Path) -> Shard:
    lines = read_lines(path)
    none: tuple[str, dict[str, Any]] = ("", {})
    kind, run = next(lines, none)
    if kind != "run" or "arms" not in run:
        raise DataFileError(f"{path.name} is not a record with answers; record the shard again with --record.")
    answered: dict[str, list[str]] = {}
    for kind, content in lines:
        if kind == "row":
            answered.setdefault(content["method"], []).append(content["id"])
    return Shard(name=str(path), run=run, rows=[arm.name for arm in arms_from(run)], answered=answered)


def _questions(files: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    """In the order of the sample: the first of each shard, then the second of each, and so on."""
    each = [[line for line in read_lines(file) if line[0] == "question"] for file in files]
    return (line for turn in zip_longest(*each) for line in turn if line is not None)


def _rest(files: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for file in files:
        for kind, content in read_lines(file):
            if kind in _FOUND_BY_ALL:
                line = as_line({kind: content}).decode()
                if line in seen:
                    continue
                seen.add(line)
            if kind not in ("run", "question", "summary"):
                yield kind, content
