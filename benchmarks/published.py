"""Published figures of `published.yaml`, and how each was measured otherwise than a run of ours.

>>> ours = Protocol(dataset="hotpotqa", evidence="supplied_context", model="m", n=500, sample="seed 42")
>>> differences(published_rows("hotpotqa")[0], ours)[1]
'model: gpt-35-turbo-16k, ours m'
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from pydantic import ValidationError as FileError

from meta_agent_rag.errors import DataFileError

_FILE = Path(__file__).with_name("published.yaml")

Percent = Annotated[float, Field(ge=0.0, le=100.0)]
Figures = Annotated[tuple[Percent, ...], Field(min_length=2, max_length=4)]


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """A method's figures on one data set, in percent; `None` where the source does not tell."""

    name: str
    source: str
    dataset: str
    evidence: str | None
    pooled_questions: int | None
    model: str | None
    n: int | None
    sample: str | None
    note: str | None
    em: float
    f1: float
    precision: float | None
    recall: float | None
    recall_at_5: float | None


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a run of ours was measured.

    `evidence` is a key of `evidence` in `published.yaml`, or words of its own; `pooled_questions` says
    how many questions' paragraphs were put together, where they were.
    """

    dataset: str
    evidence: str
    model: str
    n: int
    sample: str
    pooled_questions: int | None = None


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=1)
    evidence: str | None = None
    pooled_questions: PositiveInt | None = None
    model: str | None = None
    n: PositiveInt | None = None
    sample: str | None = None
    note: str | None = None
    figures: Mapping[str, Mapping[str, Figures]]
    recall_at_5: Mapping[str, Mapping[str, Percent]] = Field(default_factory=dict)


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    evidence: Mapping[str, str]
    groups: tuple[_Group, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _known_evidence(self) -> Self:
        for group in self.groups:
            if group.evidence is not None and group.evidence not in self.evidence:
                raise ValueError(f"{group.evidence!r} is not among the kinds of evidence")
        return self


def published_rows(dataset: str) -> list[PublishedRow]:
    """Give the published figures on a data set in the file's order; none for one that nobody published on."""
    return [row for group in _published().groups for row in _rows(group) if row.dataset == dataset]


def differences(row: PublishedRow, protocol: Protocol) -> list[str]:
    """Say in what the published row was measured otherwise than ours; empty where the two compare.

    What a source does not tell counts as a difference.
    """
    theirs, ours = (
        _evidence(row.evidence, row.pooled_questions),
        _evidence(protocol.evidence, protocol.pooled_questions),
    )
    aspects: tuple[tuple[str, str | None, str], ...] = (
        ("data set", row.dataset, protocol.dataset),
        ("evidence", theirs, ours or protocol.evidence),
        ("model", row.model, protocol.model),
        ("questions", None if row.n is None else f"{row.n:,}", f"{protocol.n:,}"),
        ("sample", row.sample, protocol.sample),
    )
    return [
        f"{aspect}: {'not told' if published is None else published}, ours {measured}"
        for aspect, published, measured in aspects
        if published is None or published.casefold() != measured.casefold()
    ]


def _evidence(kind: str | None, pooled: int | None) -> str | None:
    if kind is None:
        return None
    words = _published().evidence.get(kind, kind)
    return words.replace("{pooled_questions}", "many" if pooled is None else f"{pooled:,}")


def _rows(group: _Group) -> Iterator[PublishedRow]:
    for name, by_dataset in group.figures.items():
        for dataset, figures in by_dataset.items():
            precision, recall = (*figures[2:], None, None)[:2]
            yield PublishedRow(
                name=name,
                source=group.source,
                dataset=dataset,
                evidence=group.evidence,
                pooled_questions=group.pooled_questions,
                model=group.model,
                n=group.n,
                sample=group.sample,
                note=group.note,
                em=figures[0],
                f1=figures[1],
                precision=precision,
                recall=recall,
                recall_at_5=group.recall_at_5.get(name, {}).get(dataset),
            )


@cache
def _published() -> _Published:
    try:
        return _Published.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))
    except (yaml.YAMLError, FileError) as error:
        raise DataFileError(f"{_FILE.name} is malformed: {error}") from None
