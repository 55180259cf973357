"""The contract of every analysis of a benchmark run, whichever file it comes from."""

import json
from typing import Any

import pytest

from benchmarks.analyses import Analysis, Figures, Material, discover_analyses
from benchmarks.plots import Plot
from benchmarks.run.arms import Arm
from benchmarks.tables import Table, as_markdown
from tests.benchmark_rows import SURE, arm, failed, material, round_of, row

ANALYSES = discover_analyses()
LOOP, RAG, MEMORY = arm("metarag"), arm("standard_rag"), arm("closed_book")
ORACLE, SWEPT = arm("metarag", oracles=("monitor",)), arm("metarag", assignments=("MAX_METACOGNITIVE_ROUNDS=1",))
ARMS = (LOOP, RAG, MEMORY, ORACLE, SWEPT)
QUESTION = "Who wrote the song of the film Blue Hill?"
FACTS = (("Blue Hill", "song", "Grey Water"), ("Grey Water", "author", "Ann Bode"))
IDS = tuple("abcdef")


def derived(author: str) -> dict[str, Any]:
    chain = {"of": "Blue Hill", "facts": ["Which song is in Blue Hill?", "Who wrote #?"]}
    values = enumerate(("Grey Water", author))
    facts = [{"chain": 0, "index": place, "value": value, "open": None} for place, value in values]
    return {"plan": {"operator": "last", "chains": [chain]}, "facts": facts, "answer": author, "dropped": None}


def calls(tier: str, at: int) -> list[dict[str, Any]]:
    stages = ("write", "second_answer") if at == 0 else ("rewrite",)
    return [
        {"stage": stage, "tier": tier, "round": at, "prompt": 900, "cache_hit": 400, "completion": 50}
        for stage in stages
    ]


def round_with(index: int, author: str, em: float, **fields: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "f1": em,
        "p_correct": 0.3 + 0.5 * em,
        "vote": {"elected": author},
        "derivation": derived(author),
        "evidence_recall": {"retrieved": 0.5 * (index + 1), "packed": 0.5 * (index + 1)},
        "packing": {"packed_ids": ["p", "q"], "shortened_ids": [], "left_out_ids": []},
        "signals": {**SURE, "similarity": 0.2 + 0.5 * em},
        "satisfied": em == 1.0,
    }
    return round_of(index, author, em, **{**shown, **fields})


def repaired(identity: str, after: float, of: Arm) -> dict[str, Any]:
    deficit = "insufficient_knowledge"
    first = round_with(0, "Karl Lutz", 0.0, diagnosis={"deficit": deficit})
    plan = {"deficit": deficit, "queries": ["Grey Water"]}
    last = round_with(1, "Ann Bode" if after else "Otto Hale", after, plan=plan)
    return asked(identity, [first, last], of)


def kept(identity: str, of: Arm) -> dict[str, Any]:
    return asked(identity, [round_with(0, "Ann Bode", 1.0)], of)


def asked(identity: str, rounds: list[dict[str, Any]], of: Arm) -> dict[str, Any]:
    usage = [call for place in range(len(rounds)) for call in calls("flash", place)]
    fields: dict[str, Any] = {"question": QUESTION, "gold": "Ann Bode", "gold_facts": FACTS, "usage": usage}
    return row(identity, rounds, method=of.name, **fields)


def loops(of: Arm, *, fixed: int) -> list[dict[str, Any]]:
    """Three repaired questions, of which the first `fixed` become right, two kept and a failed one."""
    tried = [repaired(identity, float(place < fixed), of) for place, identity in enumerate(IDS[:3])]
    return [*tried, kept("d", of), kept("e", of), failed("f", method=of.name)]


def one_pass(of: Arm, right: str) -> list[dict[str, Any]]:
    """A first draft for every question, right for those in `right`."""
    packing = {"packed_ids": ["p"], "shortened_ids": [], "left_out_ids": []}
    drafts = [(identity, round_of(0, "a", float(identity in right), packing=packing)) for identity in IDS]
    return [row(identity, [draft], method=of.name, usage=calls("flash", 0)) for identity, draft in drafts]


def rows() -> list[dict[str, Any]]:
    looped = [(LOOP, 2), (ORACLE, 3), (SWEPT, 1)]
    return [
        *(found for of, fixed in looped for found in loops(of, fixed=fixed)),
        *one_pass(RAG, "ade"),
        *one_pass(MEMORY, "d"),
    ]


def run() -> Material:
    return material(ARMS, rows(), n=7)


def bare() -> Material:
    """Rows of a loop that fired and recorded only answers and scores."""
    short = [row(identity, [round_of(0, "a", 0.0), round_of(1, "b", 1.0, deficit="external_only")]) for identity in IDS]
    return material([LOOP], short, n=6)


def required_tables(analysis: Analysis, figures: Figures) -> list[Table]:
    """The tables of figures, if there are any: every line has a cell for each column of the head."""
    found = list(analysis.tables(figures)) if figures else []
    for table in found:
        assert table.name and table.title, "give every table a name and a title"  # noqa: PT018  # one remedy
        assert table.rows, "yield no table without rows"
        assert all(len(line) == len(table.head) for line in table.rows), "every line has a cell for each column"
        cells = [cell for line in (table.head, *table.rows) for cell in line]
        assert all(isinstance(cell, str) for cell in cells), "format the figures of a table as text"
        assert as_markdown(table), "a table can be written as Markdown"
    return found


every_analysis = pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)


@every_analysis
def test_it_has_a_title_and_explains_its_figures(analysis: Analysis) -> None:
    assert analysis.name.isidentifier(), "name the analysis as its file"
    assert analysis.title.strip(), "give the section a title"
    assert " ".join(analysis.about).endswith("."), "explain the figures in `about`, in whole sentences"


@every_analysis
def test_figures_are_plain_json(analysis: Analysis) -> None:
    figures = analysis.measure(run())
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures, "a report is rebuilt from `summary.json`"
    if not analysis.across:
        assert set(figures) <= {one.name for one in ARMS}, "key the figures by arm, or set `across`"


@every_analysis
def test_tables_and_plots_need_only_the_stored_figures(analysis: Analysis) -> None:
    figures = json.loads(json.dumps(analysis.measure(run())))
    assert bool(required_tables(analysis, figures)) is bool(figures), "yield a table whenever there are figures"
    plots = list(analysis.plots(figures)) if figures else []
    named = all(isinstance(plot, Plot) and plot.name and plot.title for plot in plots)
    assert named, "yield a Plot with a name and a title"


@every_analysis
@pytest.mark.parametrize("arms", [(), (LOOP,), (LOOP, RAG)], ids=["no arms", "loop", "two"])
def test_a_run_without_rows_has_no_error(analysis: Analysis, arms: tuple[Arm, ...]) -> None:
    figures = json.loads(json.dumps(analysis.measure(material(arms, [], n=6))))
    required_tables(analysis, figures)


@every_analysis
def test_rows_that_lack_what_it_needs_are_left_out(analysis: Analysis) -> None:
    figures = json.loads(json.dumps(analysis.measure(bare()), allow_nan=False))
    required_tables(analysis, figures)
    if analysis.missing:
        assert not figures, "the report replaces the section by `missing`"
        said = analysis.missing.startswith("Omitted: ") and analysis.missing.endswith(".")
        assert said, "begin `missing` with 'Omitted: ' and end it with a full stop"
