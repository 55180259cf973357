"""Published figures of `published.yaml`, each with its source and its protocol.

>>> published_rows("hotpotqa")[0].protocol.model
'gpt-35-turbo-16k'
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from ..run.protocols import Protocol, published_protocol, read_table

_FILE = Path(__file__).with_name("published.yaml")

Percent = Annotated[float, Field(ge=0.0, le=100.0)]
Printed = Annotated[tuple[Percent, ...], Field(min_length=2, max_length=4)]


class _Some(BaseModel, frozen=True, extra="forbid"):
    """Figures by name, if a source prints no EM."""

    f1: Percent | None = None
    judged: Percent | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """A method's figures on one data set, in percent; `None` if the source does not state them.

    `judged` is the share of answers that a language model judged correct.
    """

    name: str
    source: str
    protocol: Protocol
    note: str | None
    em: float | None
    f1: float | None
    precision: float | None
    recall: float | None
    judged: float | None
    recall_at_5: float | None


class _Group(BaseModel, frozen=True, extra="forbid"):
    source: str = Field(min_length=1)
    protocol: str
    note: str | None = None
    figures: Mapping[str, Mapping[str, Printed | _Some]]
    recall_at_5: Mapping[str, Mapping[str, Percent]] = Field(default_factory=dict)


class _Published(BaseModel, frozen=True, extra="forbid"):
    groups: tuple[_Group, ...] = Field(min_length=1)


def published_rows(dataset: str) -> list[PublishedRow]:
    """Give the published figures on a data set in the file's order; empty if there are none."""
    return [row for group in _published().groups for row in _rows(group, dataset)]


def _rows(group: _Group, dataset: str) -> Iterator[PublishedRow]:
    for name, by_dataset in group.figures.items():
        if dataset not in by_dataset:
            continue
        printed = by_dataset[dataset]
        some = printed if isinstance(printed, _Some) else None
        em, f1, precision, recall = (None, some.f1, None, None) if some else (*printed, None, None)[:4]
        yield PublishedRow(
            name=name,
            source=group.source,
            protocol=published_protocol(group.protocol, dataset),
            note=group.note,
            em=em,
            f1=f1,
            precision=precision,
            recall=recall,
            judged=some.judged if some else None,
            recall_at_5=group.recall_at_5.get(name, {}).get(dataset),
        )


@cache
def _published() -> _Published:
    return read_table(_FILE, _Published)
