"""The rows of a run: what a sweep, an ablation and an oracle add."""

import pytest

from benchmarks.methods import named
from benchmarks.run.arms import arm_settings, arms, check_arms
from meta_agent_rag.errors import InputError, MetaRagError, UnknownNameError
from meta_agent_rag.settings import Settings


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
        ({"sweeps": ["SELECTION="]}, "has no values"),
        ({"sweeps": ["NO_SUCH=1"]}, "unknown setting 'NO_SUCH'"),
        ({"sweeps": ["DEEPSEEK_API_KEY=a,b"]}, "cannot be swept"),
        ({"sweeps": ["LLM_BASE_URL=a,b"]}, "cannot be swept"),
        ({"sweeps": ["ENCODER=a,b"]}, "cannot be swept"),
        ({"sweeps": ["SELECTION=best,best"]}, "repeats a value"),
        ({"sweeps": ["SELECTION=best", "SELECTION=last"]}, "names a setting twice"),
        ({"sweeps": ["RESPONSE_CACHE=true,false"]}, "cannot be swept"),
        ({"oracles": [""]}, "The oracle '' is unknown"),
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
