"""What a run would take, judged by an earlier one or by a probe of a few questions: `--dry-run`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from meta_agent_rag.cli.command import say
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.providers import choose_provider

from .arms import Arm
from .benchmarking import Plan, benchmark
from .config import Conduct, RunConfig
from .display import DisplayName
from .run_folder import CONFIG, RunFolder


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What one row of the table is expected to take; `cost_usd` is `None` where a price is not known.

    `measured` is the number of answers that the estimate rests on.
    """

    method: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    measured: int


def estimated(plan: Plan, output_dir: Path, *, probe: int | None, display_name: DisplayName) -> None:
    """Print calls, tokens and dollars of the run, row by row; nothing is asked unless a probe is wanted.

    Raises `InputError` where there is no earlier run to go by.
    """
    if probe is None:
        source, rows = _earlier(plan.config, output_dir)
    else:
        source, rows = _probed(plan, probe)
    found = [_expected(arm, rows, len(plan.questions)) for arm in plan.config.arms]
    missing = [arm.name for arm, one in zip(plan.config.arms, found, strict=True) if one is None]
    known = [one for one in found if one is not None]
    if not known:
        raise InputError(
            f"No earlier run below {str(output_dir)!r} has this data set, mode and model; "
            "add --probe 3 to ask three questions (that is paid) and go by them."
        )
    if display_name == "json":
        say(json.dumps({"source": source, "rows": [asdict(one) for one in known], "unknown": missing}))
    elif display_name != "none":
        _show(plan, source, known, missing)


def _show(plan: Plan, source: str, known: list[Expected], missing: list[str]) -> None:
    say(f"Expected for {len(plan.questions)} questions, judged by {source}; what the response cache holds is not paid.")
    for one in known:
        cost = "price unknown" if one.cost_usd is None else f"{one.cost_usd:.4f} USD"
        say(
            f"  {one.method}: {one.calls:,} calls, {one.prompt_tokens:,} prompt and {one.completion_tokens:,} "
            f"completion tokens, {cost} (from {one.measured} answers)"
        )
    costs = [one.cost_usd for one in known]
    priced = [cost for cost in costs if cost is not None]
    total = f"{sum(priced):.4f} USD" if len(priced) == len(costs) else "price unknown"
    say(f"  together: {sum(one.calls for one in known):,} calls, {total}")
    if missing:
        say(f"  not known, since no run had them: {', '.join(missing)}; add --probe 3 to find out (that is paid).")


def _expected(arm: Arm, rows: list[Mapping[str, Any]], n: int) -> Expected | None:
    """Means of the row itself; of the method as it is, where this variant of it was not run."""
    for name in (arm.name, arm.base, arm.method.name):
        mine = [row for row in rows if row["method"] == name and row["error"] is None]
        if mine:
            break
    else:
        return None
    costs = [row["cost_usd"] for row in mine]
    cost = None if None in costs else float(sum(Decimal(str(cost)) for cost in costs) / len(mine) * n)

    def mean(values: list[int]) -> int:
        return round(sum(values) / len(mine) * n)

    return Expected(
        method=arm.name,
        calls=mean([row["llm_calls"] for row in mine]),
        prompt_tokens=mean([row["tokens"]["prompt"] for row in mine]),
        completion_tokens=mean([row["tokens"]["completion"] for row in mine]),
        cost_usd=cost,
        measured=len(mine),
    )


def _earlier(config: RunConfig, output_dir: Path) -> tuple[str, list[Mapping[str, Any]]]:
    """The rows of the newest run with this data set, mode and models, and of older ones for further methods."""
    models = dict(choose_provider(config.settings).models)
    names: list[str] = []
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for path in sorted((file.parent for file in output_dir.glob(f"*/{CONFIG}")), reverse=True):
        folder = RunFolder(path)
        try:
            before = folder.config()
        except InputError:
            continue
        was = before["experiment"]
        same = (was.get("dataset"), was.get("mode"), before["provider"].get("models"))
        if same != (config.dataset, config.mode, models):
            continue
        own: dict[str, list[Mapping[str, Any]]] = {}
        for row in folder.rows().values():
            if row["method"] not in rows:
                own.setdefault(row["method"], []).append(row)
        if own:
            names.append(path.name)
            rows |= own
    return ", ".join(names), [row for found in rows.values() for row in found]


def _probed(plan: Plan, probe: int) -> tuple[str, list[Mapping[str, Any]]]:
    """The rows of a run over the first questions, whose folder is not kept; its replies stay in the cache."""
    if probe < 1:
        raise InputError(f"--probe {probe} asks nothing; give 1 or more.")
    with TemporaryDirectory() as folder:
        first = replace(plan, questions=plan.questions[:probe])
        path = benchmark(first, Conduct(), None, Path(folder), "none")
        rows: list[Mapping[str, Any]] = list(RunFolder(path).rows().values())
    return f"a probe of {len(first.questions)} questions", rows
