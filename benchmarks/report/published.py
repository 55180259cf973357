"""Published figures of `published.yaml`, each with its source and its protocol.

>>> published_rows("hotpotqa")[0].protocol.model
'gpt-35-turbo-16k'
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from meta_agent_rag.datasets import discover
from meta_agent_rag.llm.stages import endpoints_in_use

from ..run.config import RunConfig
from ..run.protocols import SCORER, Protocol, differences, published_protocol, read_table
from ..tables import Cells, Table, number, with_interval

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


_HEAD: Cells = ("published", "EM", "F1", "prec.", "rec.", "judged")


def same_protocol(ours: Protocol, methods: Mapping[str, Mapping[str, Any]]) -> Table | None:
    """Our rows and the published ones under the same protocol, in one table; `None` if none were published."""
    rows = [row for row in published_rows(ours.dataset) if not differences(row.protocol, ours)]
    if not rows:
        return None
    own: list[Cells] = [
        (
            name,
            with_interval(figures["em"], figures["em_ci95"]),
            with_interval(figures["f1"], figures["f1_ci95"]),
            number(figures["precision"]),
            number(figures["recall"]),
            "this run",
        )
        for name, figures in methods.items()
    ]
    theirs = [(*_cells(row)[:-1], row.source) for row in rows]
    title = "Our figures and published ones under the same protocol, percent"
    return Table(name="same-protocol", title=title, head=("method", *_HEAD[1:-1], "source"), rows=[*own, *theirs])


def other_protocols(ours: Protocol) -> list[Table]:
    """Published figures under other protocols, one table per set of differences; `note` lists them."""
    groups: dict[tuple[str, ...], list[PublishedRow]] = {}
    for row in published_rows(ours.dataset):
        if differing := differences(row.protocol, ours):
            groups.setdefault(tuple(differing), []).append(row)
    return [
        Table(
            name=f"published-{place}",
            title=f"Published, not comparable: {'; '.join(differing)}",
            head=_HEAD[: None if _judged(rows) else -1],
            rows=[_cells(row)[: None if _judged(rows) else -1] for row in rows],
            note=_sources(rows),
        )
        for place, (differing, rows) in enumerate(groups.items(), start=1)
    ]


def _sources(rows: Sequence[PublishedRow]) -> str:
    reported = (f"{row.source} ({row.note})" if row.note else row.source for row in rows)
    return f"Source: {'; '.join(dict.fromkeys(reported))}."


def _cells(row: PublishedRow) -> Cells:
    figures = (row.em, row.f1, row.precision, row.recall, row.judged)
    return (row.name, *(number(figure) for figure in figures))


def _judged(rows: Sequence[PublishedRow]) -> bool:
    return any(row.judged is not None for row in rows)


def aspects(differing: Sequence[str]) -> str:
    """The names of what differs, without the values."""
    return ", ".join(
        one.partition(":")[2].strip() if one.startswith("not stated") else one.partition(":")[0] for one in differing
    )


_EVIDENCE = {"gold": "supplied_context", "supporting": "supporting_paragraphs", "open_domain": "pooled_contexts"}
_PACKAGED = "the sample of this repository"


def protocol(config: RunConfig, *, n: int, pooled: int) -> Protocol:
    """How this run was measured, in the terms used to compare published rows.

    The split is known if the data set was read from the hub; for a file, only its name is known.
    """
    drawn = not config.limit and not config.sample_ids
    return Protocol(
        dataset=config.dataset,
        split=_split(config),
        evidence=f"the corpus {config.corpus}" if config.corpus else _evidence(config),
        sample=_sample(config, n, drawn=drawn),
        seed=config.seed if drawn else None,
        n=n,
        scorer=SCORER,
        aliases=_aliases(config),
        model=" and ".join(dict.fromkeys(endpoint.model for endpoint in endpoints_in_use(config.settings).values())),
        rounds=config.settings.max_metacognitive_rounds,
        pooled_questions=pooled if config.mode == "open_domain" and not config.corpus else None,
    )


def _sample(config: RunConfig, n: int, *, drawn: bool) -> str:
    words = f"rows {config.limit}" if config.limit else f"{n} drawn" if drawn else f"{n} named by id"
    return words if config.shard is None else f"{words}, shard {config.shard}"


def _evidence(config: RunConfig) -> str:
    searched = config.mode == "gold" and config.settings.supplied_evidence == "ranked"
    return "searched_context" if searched else _EVIDENCE[config.mode]


def _split(config: RunConfig) -> str:
    if config.data_file is not None:
        return f"the file {config.data_file.name}"
    known = discover(config.settings.datasets_dir).get(config.dataset)
    return _PACKAGED if known is None or known.hub is None else known.hub[2]


def _aliases(config: RunConfig) -> bool | None:
    """Were answers scored with aliases? `None` for a data set without aliases."""
    known = discover(config.settings.datasets_dir).get(config.dataset)
    if known is None:
        return None
    if known.takes_aliases:
        return config.aliases_file is not None
    example = known.parse(known.example, {})
    return True if example is not None and example.aliases else None
