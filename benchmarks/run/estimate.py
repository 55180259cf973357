"""What a run would cost, estimated from earlier runs or from a probe of a few questions: `--dry-run`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from meta_agent_rag.cli.shared.command import say
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.ledger import LedgerRow, read_ledger, total
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import FREE, counted

from ..judge import NAME as JUDGE
from .arms import Arm
from .benchmarking import benchmark
from .config import RunConfig, RunOptions
from .display import DisplayName
from .folder import CONFIG, RunFolder
from .plan import RunPlan
from .provenance import changed_settings


@dataclass(frozen=True, kw_only=True)
class ExpectedCost:
    """The expected cost of a row of the table, its oracle or the judge; `None` for tokens or dollars not known.

    It is based on `measured` answers of the row `basis` of the run `source`, in which the answer-shaping settings
    `other_settings` had other values.
    """

    method: str
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    measured: int
    basis: str
    source: str
    other_settings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run to estimate from: the questions that each row answered, and the calls by their purpose."""

    source: str
    judged: bool
    other_settings: tuple[str, ...]
    ids: Mapping[str, frozenset[str]]
    calls: Mapping[str, tuple[LedgerRow, ...]]

    def scaled(self, method: str, basis: str, calls: Sequence[LedgerRow], *, measured: int, n: int) -> ExpectedCost:
        """The calls of `measured` answers, scaled to `n` answers."""
        sums, share = total(calls), n / measured
        metered = sums.unmetered_calls < sums.calls - sums.failed_calls
        return ExpectedCost(
            method=method,
            calls=round(sums.calls * share),
            prompt_tokens=round(sums.prompt_tokens * share) if metered else None,
            completion_tokens=round(sums.completion_tokens * share) if metered else None,
            cost_usd=None if sums.cost_usd is None else float(sums.cost_usd / measured * n),
            measured=measured,
            basis=basis,
            source=self.source,
            other_settings=self.other_settings,
        )


def estimated(plan: RunPlan, output_dir: Path, *, probe: int | None, display_name: DisplayName) -> None:
    """Print calls, tokens and dollars of the run, row by row; no call is made unless a probe is requested.

    Raises `InputError` if there is no earlier run with answers to estimate from.
    """
    runs = _earlier(plan.config, output_dir) if probe is None else [_probed(plan, probe)]
    found = expectations(plan.config, runs, n=len(plan.questions))
    known = [one for one in found.values() if one is not None]
    missing = [name for name, one in found.items() if one is None]
    if not known:
        raise InputError(
            f"No earlier run in {str(output_dir)!r} has answers on this data set, mode and model; "
            "add --probe 3 to run three questions first (at cost) and base the estimate on them."
        )
    source = ", ".join(dict.fromkeys(one.source for one in known))
    if display_name == "json":
        say(json.dumps({"source": source, "rows": [asdict(one) for one in known], "unknown": missing}))
    elif display_name != "none":
        _show(plan, source, known, missing)


def expectations(config: RunConfig, runs: Sequence[MeasuredRun], *, n: int) -> dict[str, ExpectedCost | None]:
    """What each row of the table costs for `n` questions, with its oracle and the judge listed separately.

    `runs` are in order of preference; an entry is `None` if no run has it.
    """
    found: dict[str, ExpectedCost | None] = {}
    for arm in config.arms:
        of_method = () if arm.equal else (arm.method.name,)  # which spends differently
        found[arm.name] = _of_row(arm.name, (arm.name, arm.base, *of_method), runs, n)
        if "diagnosis" in arm.oracles:
            found[_closed_book(arm.name)] = _of_oracle(arm, runs, n)
    if config.judge:
        found[JUDGE] = _of_judge(runs, n * len(config.arms))
    return found


def _of_row(name: str, bases: Sequence[str], runs: Sequence[MeasuredRun], n: int) -> ExpectedCost | None:
    """From the row itself, or from the unchanged method if this variant was not run."""
    for basis in dict.fromkeys(bases):
        for run in runs:
            ids = run.ids.get(basis, frozenset())
            if calls := _once(run.calls.get(basis, ()), ids):
                return run.scaled(name, basis, calls, measured=len(ids), n=n)
    return None


def _closed_book(name: str) -> str:
    """The ledger's name for the calls of a row's oracle, which are in no method's cost; see `oracles.py`."""
    return f"{name} (closed book)"


def _of_oracle(arm: Arm, runs: Sequence[MeasuredRun], n: int) -> ExpectedCost | None:
    for name in dict.fromkeys((arm.name, arm.base)):
        for run in runs:
            if ids := run.ids.get(name):
                calls = _once(run.calls.get(_closed_book(name), ()), ids)
                return run.scaled(_closed_book(arm.name), _closed_book(name), calls, measured=len(ids), n=n)
    return None


def _of_judge(runs: Sequence[MeasuredRun], n: int) -> ExpectedCost | None:
    """From the verdicts per answer: answers that rows share are judged once."""
    for run in (run for run in runs if run.judged):
        calls = _once(run.calls.get(JUDGE, ()), frozenset().union(*run.ids.values()))
        return run.scaled(JUDGE, JUDGE, calls, measured=sum(map(len, run.ids.values())), n=n)
    return None


def _once(calls: Iterable[LedgerRow], ids: frozenset[str]) -> list[LedgerRow]:
    """The calls for answered questions, without those that a resumed run had already paid for."""
    kept: list[LedgerRow] = []
    served: set[tuple[str, str]] = set()
    for call in calls:
        key = call.question_id, call.request
        if call.question_id in ids and not (call.cached and key in served):
            kept.append(call)
        if call.error is None:
            served.add(key)
    return kept


def _show(plan: RunPlan, runs: str, known: Sequence[ExpectedCost], missing: Sequence[str]) -> None:
    say(
        f"Expected for {counted(len(plan.questions), 'question')}, based on {runs}; "
        "calls in the response cache are free."
    )
    unpriced = FREE if runs_here(plan.config.settings) else "price unknown"
    for one in known:
        cost = unpriced if one.cost_usd is None else f"{one.cost_usd:.4f} USD"
        basis = "" if one.basis == one.method else f" of {one.basis!r}"
        source = f"from {counted(one.measured, 'answer')}{basis}"
        say(f"  {one.method}: {one.calls:,} calls, {_tokens(one)}, {cost} ({source})")
        if one.other_settings:
            say(f"    measured under different settings: {', '.join(one.other_settings).upper()}")
    costs = [one.cost_usd for one in known]
    priced = [cost for cost in costs if cost is not None]
    sum_usd = f"{sum(priced):.4f} USD" if len(priced) == len(costs) else unpriced
    say(f"  total: {sum(one.calls for one in known):,} calls, {sum_usd}")
    if missing:
        say(f"  unknown, because no earlier run has them: {', '.join(missing)}; add --probe 3 to find out (at cost).")


def _tokens(one: ExpectedCost) -> str:
    if one.prompt_tokens is None or one.completion_tokens is None:
        return "tokens unknown"
    return f"{one.prompt_tokens:,} prompt and {one.completion_tokens:,} completion tokens"


def _earlier(config: RunConfig, output_dir: Path) -> list[MeasuredRun]:
    """The runs with answers on this data set, mode and models: those with equal settings first, newest first."""
    models = dict(choose_provider(config.settings).models)
    runs: list[MeasuredRun] = []
    for path in sorted((file.parent for file in output_dir.glob(f"*/{CONFIG}")), reverse=True):
        try:
            before = RunFolder(path).config()
        except InputError:
            continue
        was = before["experiment"]
        if (was["dataset"], was["mode"], before["provider"].get("models")) == (config.dataset, config.mode, models):
            changed = changed_settings(before["settings"], config.settings.model_dump(mode="json"))
            runs.append(_measured(RunFolder(path), path.name, judged=bool(was.get("judge")), changed=changed))
    return sorted((run for run in runs if run.ids), key=lambda run: bool(run.other_settings))


def _measured(folder: RunFolder, source: str, *, judged: bool, changed: Sequence[str] = ()) -> MeasuredRun:
    ids: dict[str, set[str]] = {}
    for (id_, method), row in folder.rows().items():
        if row["error"] is None:
            ids.setdefault(method, set()).add(id_)
    calls: dict[str, list[LedgerRow]] = {}
    for call in read_ledger(folder.calls):
        calls.setdefault(call.method, []).append(call)
    return MeasuredRun(
        source=source,
        judged=judged,
        other_settings=tuple(changed),
        ids={name: frozenset(found) for name, found in ids.items()},
        calls={name: tuple(found) for name, found in calls.items()},
    )


def _probed(plan: RunPlan, probe: int) -> MeasuredRun:
    """A run on the first questions, whose folder is not kept; its replies stay in the cache."""
    if probe < 1:
        raise InputError(f"--probe must be at least 1, not {probe}.")
    with TemporaryDirectory() as folder:
        first = replace(plan, questions=plan.questions[:probe])
        path = benchmark(first, RunOptions(), None, Path(folder), "none")
        return _measured(
            RunFolder(path), f"a probe of {counted(len(first.questions), 'question')}", judged=first.config.judge
        )
