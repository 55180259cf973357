"""What a run would cost, estimated from earlier runs: `--dry-run`."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from meta_agent_rag.cli.shared.command import say
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.ledger import LedgerRow, read_ledger, total
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import FREE, counted

from ..judge import NAME as JUDGE
from .config import RunConfig
from .display import DisplayName
from .folder import CONFIG, RunFolder
from .plan import RunPlan
from .provenance import differing

_CLOSED_BOOK = " (closed book)"
"""Marks the calls of the oracle diagnosis, see `evidence.oracles_for`."""


@dataclass(frozen=True, kw_only=True)
class ExpectedCost:
    """The expected cost of a row of the table, its oracle or the judge; `None` for tokens or dollars not known.

    It is based on `measured` answers of the row `basis` of the run `source`.
    """

    method: str
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    measured: int
    basis: str
    source: str


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run to estimate from: the number of questions that each row answered, and these answers' calls by purpose.

    `changed` are the settings that shape answers and had other values.
    """

    source: str
    changed: tuple[str, ...]
    answered: Mapping[str, int]
    calls: Mapping[str, Sequence[LedgerRow]]

    @classmethod
    def of(cls, folder: RunFolder, changed: Sequence[str] = ()) -> "MeasuredRun":
        """What a run's answers took: each of their calls once, not again from the cache after a resume."""
        answers = {key for key, row in folder.rows().items() if row["error"] is None}
        judged = {id_ for id_, _ in answers}
        calls: dict[str, list[LedgerRow]] = {}
        served: set[tuple[str, str, str]] = set()
        for call in read_ledger(folder.calls):
            row, key = call.method.removesuffix(_CLOSED_BOOK), (call.method, call.question_id, call.request)
            of_an_answer = (call.question_id, row) in answers or (row == JUDGE and call.question_id in judged)
            if of_an_answer and not (call.cached and key in served):
                calls.setdefault(call.method, []).append(call)
            if call.error is None:
                served.add(key)
        answered = Counter(method for _, method in answers)
        return cls(source=folder.path.name, changed=tuple(changed), answered=answered, calls=calls)

    def scaled(self, method: str, basis: str, *, measured: int, n: int) -> ExpectedCost:
        """The calls of `measured` answers, scaled to `n` answers."""
        sums, share = total(self.calls[basis]), n / measured
        metered = sums.unmetered_calls < sums.calls - sums.failed_calls
        return ExpectedCost(
            method=method,
            calls=round(sums.calls * share),
            prompt_tokens=round(sums.prompt_tokens * share) if metered else None,
            completion_tokens=round(sums.completion_tokens * share) if metered else None,
            cost_usd=None if sums.cost_usd is None else float(sums.cost_usd / measured * n),
            measured=measured,
            basis=basis,
            source=f"{self.source}, which had other values of {', '.join(self.changed)}"
            if self.changed
            else self.source,
        )


def estimated(plan: RunPlan, output_dir: Path, *, display_name: DisplayName) -> None:
    """Print calls, tokens and dollars of the run, row by row, without a call.

    Raises `InputError` if there is no earlier run with answers to estimate from.
    """
    found = expectations(plan.config, _earlier(plan.config, output_dir), n=len(plan.questions))
    known = [one for one in found.values() if one is not None]
    missing = [name for name, one in found.items() if one is None]
    if not known:
        raise InputError(
            f"No earlier run in {str(output_dir)!r} has answers on this data set, mode and model; run a few questions "
            "first, with --n 3."
        )
    if display_name == "json":
        say(json.dumps({"rows": [asdict(one) for one in known], "unknown": missing}))
    elif display_name != "none":
        _show(plan, known, missing)


def expectations(config: RunConfig, runs: Sequence[MeasuredRun], *, n: int) -> dict[str, ExpectedCost | None]:
    """What each row of the table costs for `n` questions, with its oracle's calls and the judge listed separately.

    A row is estimated from itself, or from the unchanged method if this variant was not run. `runs` are in order of
    preference; an entry is `None` if no run has it.
    """
    found: dict[str, ExpectedCost | None] = {}
    for arm in config.arms:
        bases = dict.fromkeys((arm.name, *(() if arm.equal else (arm.method.name,))))  # which spends differently
        for kind in ("", _CLOSED_BOOK) if "diagnosis" in arm.oracles else ("",):
            of_runs = (
                run.scaled(arm.name + kind, basis + kind, measured=run.answered[basis], n=n)
                for basis in bases
                for run in runs
                if basis in run.answered and run.calls.get(basis + kind)
            )
            found[arm.name + kind] = next(of_runs, None)
    if config.judge:
        judged = (run for run in runs if run.calls.get(JUDGE))
        of_judge = (
            run.scaled(JUDGE, JUDGE, measured=sum(run.answered.values()), n=n * len(config.arms)) for run in judged
        )
        found[JUDGE] = next(of_judge, None)
    return found


def _show(plan: RunPlan, known: Sequence[ExpectedCost], missing: Sequence[str]) -> None:
    source = "; ".join(dict.fromkeys(one.source for one in known))
    say(
        f"Expected for {counted(len(plan.questions), 'question')}, based on {source}; "
        "calls in the response cache are free."
    )
    unpriced = FREE if runs_here(plan.config.settings) else "price unknown"
    for one in known:
        cost = unpriced if one.cost_usd is None else f"{one.cost_usd:.4f} USD"
        basis = "" if one.basis == one.method else f" of {one.basis!r}"
        tokens = "tokens unknown"
        if one.prompt_tokens is not None and one.completion_tokens is not None:
            tokens = f"{one.prompt_tokens:,} prompt and {one.completion_tokens:,} completion tokens"
        say(f"  {one.method}: {one.calls:,} calls, {tokens}, {cost} (from {counted(one.measured, 'answer')}{basis})")
    priced = [one.cost_usd for one in known if one.cost_usd is not None]
    sum_usd = f"{sum(priced):.4f} USD" if len(priced) == len(known) else unpriced
    say(f"  total: {sum(one.calls for one in known):,} calls, {sum_usd}")
    if missing:
        say(f"  unknown, because no earlier run has them: {', '.join(missing)}")


def _earlier(config: RunConfig, output_dir: Path) -> list[MeasuredRun]:
    """The runs with answers on this data set, mode and models: those with equal settings first, newest first."""
    models = dict(choose_provider(config.settings).models)
    runs: list[MeasuredRun] = []
    for folder in (RunFolder(file.parent) for file in sorted(output_dir.glob(f"*/{CONFIG}"), reverse=True)):
        try:
            before = folder.config()
        except InputError:
            continue
        was = before["experiment"]
        if (was["dataset"], was["mode"], before["provider"].get("models")) == (config.dataset, config.mode, models):
            changed = differing(before, {**before, "settings": config.settings.model_dump(mode="json")})
            runs.append(MeasuredRun.of(folder, changed))
    return sorted((run for run in runs if run.answered), key=lambda run: bool(run.changed))
