"""A table in its three formats: no cell content may break any of them."""

import csv
import io

from benchmarks.tables import Table, as_csv, as_latex

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


def test_latex_is_escaped_and_aligned() -> None:
    text = as_latex(HOSTILE_TABLE)
    assert r"\caption{50 \% of \{a\_b\}}" in text
    assert r"\label{tab:nasty-one}" in text
    assert r"\begin{tabular}{lrl}" in text
    assert r"{}[a] \textbar{} b & 1.0 [0.5, 2.0] &" in text  # a bracket after \\ would be read as its argument
    assert r"c\textbackslash{}d \textasciitilde{} \textasciicircum{} \textless{}\&\textgreater{} \#\$" in text
    assert text.count(r"\\") == 3
    assert [rule for rule in ("toprule", "midrule", "bottomrule") if f"\\{rule}" in text] == [
        "toprule",
        "midrule",
        "bottomrule",
    ]
