"""What a run would cost, estimated from earlier runs: `--dry-run`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from meta_agent_rag.cli.shared.command import say
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import FREE, counted

from ..rows.samples import fault
from .config import RunConfig
from .display import DisplayName
from .folder import CONFIG, RunFolder
from .plan import RunPlan
from .provenance import differing


@dataclass(frozen=True, kw_only=True)
class ExpectedCost:
    """The expected cost of a row of the table; `None` for tokens or dollars not known.

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


def estimated(plan: RunPlan, output_dir: Path, *, display_name: DisplayName) -> None:
    """Print calls, tokens and dollars of the run, row by row, without a call.

    Raises `InputError` if there is no earlier run with answers to estimate from.
    """
    runs, n = _earlier(plan.config, output_dir), len(plan.questions)
    found = {
        arm.name: expectation(arm.name, () if arm.equal else (arm.method.name,), runs, n=n) for arm in plan.config.arms
    }
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


Answers = Mapping[str, Sequence[Mapping[str, Any]]]
"""Answered rows of a run, by the name of their row of the table."""


def expectation(name: str, others: Sequence[str], runs: Mapping[str, Answers], *, n: int) -> ExpectedCost | None:
    """What a row of the table costs for `n` questions; `None` if no run has it.

    It is estimated from the first run, by its description, that has answers of this row, or else of `others`.
    """
    bases = ((basis, source) for basis in dict.fromkeys((name, *others)) for source in runs if runs[source].get(basis))
    basis, source = next(bases, ("", ""))
    if not source:
        return None
    rows = runs[source][basis]
    share = n / len(rows)
    metered = not all(row.get("unmetered_calls") for row in rows)
    prompt, completion = (round(share * sum(row["tokens"][kind] for row in rows)) for kind in ("prompt", "completion"))
    costs = [row["cost_usd"] for row in rows]
    return ExpectedCost(
        method=name,
        calls=round(share * sum(row["llm_calls"] for row in rows)),
        prompt_tokens=prompt if metered else None,
        completion_tokens=completion if metered else None,
        cost_usd=None if None in costs else share * float(sum(Decimal(str(cost)) for cost in costs)),
        measured=len(rows),
        basis=basis,
        source=source,
    )


def _show(plan: RunPlan, known: Sequence[ExpectedCost], missing: Sequence[str]) -> None:
    source = "; ".join(dict.fromkeys(one.source for one in known))
    say(
        f"Expected for {counted(len(plan.questions), 'question')}, based on {source}; "
        "calls in the response cache are free, those of a judge or an oracle come on top."
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


def _earlier(config: RunConfig, output_dir: Path) -> dict[str, Answers]:
    """The answers on this data set, mode and models by run: those with equal settings first, newest first."""
    models = dict(choose_provider(config.settings).models)
    alike: dict[str, Answers] = {}
    others: dict[str, Answers] = {}
    for folder in (RunFolder(file.parent) for file in sorted(output_dir.glob(f"*/{CONFIG}"), reverse=True)):
        try:
            before = folder.config()
        except InputError:
            continue
        was = before["experiment"]
        if (was["dataset"], was["mode"], before["provider"].get("models")) != (config.dataset, config.mode, models):
            continue
        answers: dict[str, list[Mapping[str, Any]]] = {}
        for row in folder.rows().values():
            if row["error"] is None and fault(row) is None:
                answers.setdefault(row["method"], []).append(row)
        if changed := differing(before, {**before, "settings": config.settings.model_dump(mode="json")}):
            others[f"{folder.path.name}, which had other values of {', '.join(changed)}"] = answers
        else:
            alike[folder.path.name] = answers
    return alike | others
