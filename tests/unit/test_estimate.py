"""How `--dry-run` uses earlier runs: which rows it counts, and which run it relies on."""

from benchmarks.run.estimate import expectation

ROW = {"llm_calls": 3, "tokens": {"prompt": 100, "completion": 10}, "cost_usd": "0.5"}


def test_each_row_is_estimated_from_the_first_run_that_has_it() -> None:
    runs = {"same": {"metarag": [ROW, ROW]}, "other": {"metarag": [ROW], "metarag oracle monitor": [ROW]}}
    found = expectation("metarag", (), runs, n=10)
    assert found is not None
    assert (found.source, found.calls, found.prompt_tokens, found.cost_usd, found.measured) == ("same", 30, 1000, 5, 2)
    own = expectation("metarag oracle monitor", ("metarag",), runs, n=10)
    assert own is not None
    assert (own.source, own.basis) == ("other", "metarag oracle monitor")
    plain = expectation("metarag without internal_only", ("metarag",), runs, n=10)
    assert plain is not None
    assert (plain.source, plain.basis) == ("same", "metarag")
    assert expectation("react", (), runs, n=10) is None
