"""A table as CSV: no cell content may break it."""

import csv
import io

from benchmarks.tables import Table, as_csv

HOSTILE_TABLE = Table(
    name="Nasty one",
    title="50 % of {a_b}",
    head=("row", "F1 [95 %]", "words"),
    rows=[
        ("[a] | b", "1.0 [0.5, 2.0]", 'said "no", then\nleft'),
        ("c\\d ~ ^ <&> #$", "-", "plain"),
    ],
)


def test_csv_round_trips() -> None:
    read = [tuple(row) for row in csv.reader(io.StringIO(as_csv(HOSTILE_TABLE)))]
    first, *others = HOSTILE_TABLE.head
    assert read[0] == (first, "F1", "F1 low", "F1 high", *others[1:])
    assert [(row[0], *row[4:]) for row in read[1:]] == [(row[0], *row[2:]) for row in HOSTILE_TABLE.rows]


def test_intervals_are_columns_of_numbers() -> None:
    rows = (("a", "83.3 [50.0, 100.0]"), ("b", "-"))
    read = csv.DictReader(io.StringIO(as_csv(Table(name="t", title="t", head=("method", "EM [95 %]"), rows=rows))))
    assert list(read) == [
        {"method": "a", "EM": "83.3", "EM low": "50.0", "EM high": "100.0"},
        {"method": "b", "EM": "-", "EM low": "", "EM high": ""},
    ]
