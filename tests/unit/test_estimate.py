"""How `--dry-run` uses earlier runs: which calls it counts, and which run it relies on."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from benchmarks.run.config import RunConfig
from benchmarks.run.estimate import MeasuredRun, expectations
from benchmarks.run.folder import RunFolder
from meta_agent_rag.llm.ledger import LedgerRow
from tests.loop import settings_in

N = 10


def call(id_: str, method: str, request: str = "r") -> LedgerRow:
    return LedgerRow(
        at=datetime(2026, 1, 1, tzinfo=UTC),
        stage="write",
        tier="pro",
        provider="deepseek",
        model="p",
        request=request,
        question_id=id_,
        method=method,
        cached=False,
        prompt_tokens=100,
        completion_tokens=10,
        cost_usd=Decimal("0.5"),
        paid_usd=Decimal("0.5"),
        error=None,
    )


def measured(*calls: LedgerRow, source: str = "run", others: tuple[str, ...] = ()) -> MeasuredRun:
    """A run with two finished questions for each method named in `calls`, not counting the judge."""
    methods = {one.method for one in calls}
    return MeasuredRun(
        source=source,
        changed=others,
        answered={method: 2 for method in methods - {"judge"} if "(closed book)" not in method},
        calls={method: tuple(one for one in calls if one.method == method) for method in methods},
    )


def config(tmp_path: Path) -> RunConfig:
    return RunConfig(
        dataset="sample",
        mode="gold",
        methods=("metarag",),
        n=N,
        limit=None,
        seed=42,
        data_file=None,
        aliases_file=None,
        corpus=None,
        concurrency=None,
        settings=settings_in(tmp_path),
    )


def test_the_judge_and_the_oracle_have_separate_rows(tmp_path: Path) -> None:
    wanted = replace(config(tmp_path), judge=True, oracles=("diagnosis",))
    own, aside = "metarag oracle diagnosis", "metarag oracle diagnosis (closed book)"
    bare = measured(call("a", "metarag"), source="bare")
    assert [name for name, one in expectations(wanted, [bare], n=N).items() if one is None] == [aside, "judge"]
    full = measured(call("a", "metarag"), call("a", own), call("b", aside), call("a", "judge"), call("b", "judge"))
    found = {name: one.calls for name, one in expectations(wanted, [full], n=N).items() if one is not None}
    # one verdict per two answers, for two rows over ten questions
    assert found == {"metarag": 5, own: 5, aside: 5, "judge": 10}


def test_each_row_is_estimated_from_the_first_run_that_has_it(tmp_path: Path) -> None:
    same = measured(call("a", "metarag"), source="same")
    calls = call("a", "metarag"), call("b", "metarag", "2"), call("a", "judge")
    other = measured(*calls, source="other", others=("evidence_tokens",))
    wanted = replace(config(tmp_path), judge=True)
    found = expectations(wanted, [same, other], n=N)
    metarag, judge = found["metarag"], found["judge"]
    assert metarag is not None
    assert judge is not None
    assert (metarag.source, metarag.calls) == ("same", 5)
    assert judge.source == "other, which had other values of evidence_tokens"


def test_a_run_is_measured_by_its_answers_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for id_, error in (("a", None), ("b", "RefusedError: no")):
        folder.add({"id": id_, "method": "metarag", "error": error})
    folder.close()
    folder.write_calls(vars(call(id_, method)) for id_, method in (("a", "metarag"), ("b", "metarag"), ("a", "judge")))
    found = MeasuredRun.of(folder)
    assert found.answered == {"metarag": 1}
    assert {name: len(calls) for name, calls in found.calls.items()} == {"metarag": 1, "judge": 1}
