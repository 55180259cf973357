"""Published figures beside ours: in one table only if the protocols match, otherwise separately, by what differs."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..run.protocols import Protocol, differences
from ..tables import Cells, Table, number, with_interval
from .published import PublishedRow, published_rows

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
