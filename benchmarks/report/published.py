"""Published figures of `published.yaml`, each with its source and its protocol.

>>> published_rows("hotpotqa")[0].protocol.model
'gpt-35-turbo-16k'
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from meta_agent_rag.datasets import Dataset, discover
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


class _Group(BaseModel, frozen=True, extra="forbid"):
    source: str = Field(min_length=1)
    protocol: str
    note: str | None = None
    figures: Mapping[str, Mapping[str, Printed | _Some]]


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
    """Published figures under other protocols, one table per set of differences; `note` lists their sources."""
    groups: dict[tuple[str, ...], list[PublishedRow]] = {}
    for row in published_rows(ours.dataset):
        if differing := differences(row.protocol, ours):
            groups.setdefault(tuple(differing), []).append(row)
    tables = []
    for place, (reasons, rows) in enumerate(groups.items(), start=1):
        columns = len(_HEAD) if any(row.judged is not None for row in rows) else len(_HEAD) - 1
        reported = (f"{row.source} ({row.note})" if row.note else row.source for row in rows)
        tables.append(
            Table(
                name=f"published-{place}",
                title=f"Published, not comparable: {'; '.join(reasons)}",
                head=_HEAD[:columns],
                rows=[_cells(row)[:columns] for row in rows],
                note=f"Source: {'; '.join(dict.fromkeys(reported))}.",
            )
        )
    return tables


def _cells(row: PublishedRow) -> Cells:
    figures = (row.em, row.f1, row.precision, row.recall, row.judged)
    return (row.name, *(number(figure) for figure in figures))


_EVIDENCE = {"gold": "supplied_context", "supporting": "supporting_paragraphs", "open_domain": "pooled_contexts"}
_PACKAGED = "the sample of this repository"


def protocol(config: RunConfig, *, n: int, pooled: int) -> Protocol:
    """How this run was measured, in the terms used to compare published rows.

    The split is known if the data set was read from the hub; for a file, only its name is known.
    """
    drawn = not config.limit and not config.sample_ids
    sample = f"rows {config.limit}" if config.limit else f"{n} drawn" if drawn else f"{n} named by id"
    known = discover(config.settings.datasets_dir).get(config.dataset)
    split = _PACKAGED if known is None or known.hub is None else known.hub[2]
    searched = config.mode == "gold" and config.settings.supplied_evidence == "ranked"
    evidence = "searched_context" if searched else _EVIDENCE[config.mode]
    return Protocol(
        dataset=config.dataset,
        split=split if config.data_file is None else f"the file {config.data_file.name}",
        evidence=f"the corpus {config.corpus}" if config.corpus else evidence,
        sample=sample if config.shard is None else f"{sample}, shard {config.shard}",
        seed=config.seed if drawn else None,
        n=n,
        scorer=SCORER,
        aliases=None if known is None else _aliases(known, config),
        model=" and ".join(dict.fromkeys(endpoint.model for endpoint in endpoints_in_use(config.settings).values())),
        rounds=config.settings.max_metacognitive_rounds,
        pooled_questions=pooled if config.mode == "open_domain" and not config.corpus else None,
    )


def _aliases(known: Dataset, config: RunConfig) -> bool | None:
    """Whether answers were scored with aliases; `None` for a data set without aliases."""
    if known.takes_aliases:
        return config.aliases_file is not None
    example = known.parse(known.example, {})
    return True if example is not None and example.aliases else None
