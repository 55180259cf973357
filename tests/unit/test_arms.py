"""The rows of a run: what a sweep, an ablation and an oracle add, and what each is compared with."""

import pytest

from benchmarks.analyses import comparison
from benchmarks.analyses.comparison import baseline_of
from benchmarks.methods import named
from benchmarks.run.arms import arm_settings, arms, check_arms
from meta_agent_rag.errors import InputError, MetaRagError, UnknownNameError
from meta_agent_rag.settings import Settings
from tests.benchmark_rows import arm, material, once


def names(*methods: str, **varied: object) -> list[str]:
    return [arm.name for arm in arms(named(",".join(methods)), **varied)]  # type: ignore[arg-type]


def test_sweeps_yield_every_combination() -> None:
    assert names("metarag", sweeps=["max_metacognitive_rounds=0, 1", "SELECTION=best,last"]) == [
        "metarag MAX_METACOGNITIVE_ROUNDS=0 SELECTION=best",
        "metarag MAX_METACOGNITIVE_ROUNDS=0 SELECTION=last",
        "metarag MAX_METACOGNITIVE_ROUNDS=1 SELECTION=best",
        "metarag MAX_METACOGNITIVE_ROUNDS=1 SELECTION=last",
    ]


def test_ablations_and_oracles_apply_to_the_loop_only() -> None:
    assert names(
        "standard_rag", "metarag", ablations=["reasoning_error", "internal_only,external_only"], oracles=["retrieval"]
    ) == [
        "standard_rag",
        "metarag",
        "metarag without reasoning_error",
        "metarag without internal_only+external_only",
        "metarag oracle retrieval",
    ]


@pytest.mark.parametrize(
    ("varied", "said"),
    [
        ({"sweeps": ["SELECTION"]}, "has no values"),
        ({"sweeps": ["NO_SUCH=1"]}, "unknown setting 'NO_SUCH'"),
        ({"sweeps": ["DEEPSEEK_API_KEY=a,b"]}, "cannot be swept"),
        ({"sweeps": ["SELECTION=best,best"]}, "repeats a value"),
        ({"sweeps": ["SELECTION=best", "SELECTION=last"]}, "names a setting twice"),
        ({"oracles": ["luck"]}, "The oracle 'luck' is unknown"),
    ],
)
def test_settings_that_cannot_be_varied_are_rejected(varied: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        names("metarag", **varied)


def test_an_ablation_without_a_loop_is_rejected() -> None:
    with pytest.raises(InputError, match="name a method that runs the loop"):
        names("standard_rag", ablations=["reasoning_error"])


def test_values_are_checked_before_any_call() -> None:
    settings = Settings.load()
    with pytest.raises(MetaRagError, match="SELECTION"):
        check_arms(arms(named("metarag"), sweeps=["SELECTION=best,worst"]), settings)
    with pytest.raises(UnknownNameError, match="deficit 'nope'"):
        check_arms(arms(named("metarag"), ablations=["nope"]), settings)


def test_duplicate_rows_and_settings_fixed_by_the_method_are_rejected() -> None:
    settings = Settings.load()
    with pytest.raises(InputError, match="would be identical"):
        check_arms(arms(named("metarag"), sweeps=["MONITOR_SIMILARITY_THRESHOLD=0.4,0.40"]), settings)
    with pytest.raises(InputError, match="is fixed by 'metarag_paper'"):
        names("metarag_paper", sweeps=["SELECTION=best,last"])
    with pytest.raises(MetaRagError, match="unknown stage"):
        check_arms(arms(named("metarag"), sweeps=["STAGE_TOKENS=nosuch=90"]), settings)
    with pytest.raises(MetaRagError, match="PROMPTS_DIR"):
        check_arms(arms(named("metarag"), sweeps=["PROMPTS_DIR=/nowhere"]), settings)
    (paper,) = arms(named("metarag_paper"))
    assert arm_settings(paper, Settings.load(["SELECTION=best"])).selection == "last"


def test_each_row_is_compared_with_the_row_that_it_varies() -> None:
    plain, swept = arm("metarag"), arm("metarag", assignments=("MAX_METACOGNITIVE_ROUNDS=1",))
    ablated = arm("metarag", assignments=swept.assignments, without_deficits=("internal_only",))
    assert baseline_of(swept, [plain, swept]) == plain
    assert baseline_of(ablated, [plain, swept, ablated]) == swept
    assert baseline_of(swept, [swept]) is None
    assert baseline_of(plain, [plain, swept]) is None


def test_methods_of_a_sweep_are_compared_under_the_same_settings() -> None:
    run = arms(named("closed_book,metarag,standard_rag"), sweeps=["SELECTION=best,last"])
    rows = [once(str(place), float(place), method=one.name) for one in run for place in range(2)]
    found = comparison.ANALYSIS.measure(material(run, rows, n=2))
    groups = [found, *found["further"]]
    assert [(group["method"], list(group["against"])) for group in groups] == [
        (f"metarag SELECTION={value}", [f"closed_book SELECTION={value}", f"standard_rag SELECTION={value}"])
        for value in ("best", "last")
    ]
    (table,) = comparison.ANALYSIS.tables(found)
    assert len(table.rows) == 4
