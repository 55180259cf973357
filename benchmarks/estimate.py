"""What a run would take, judged by earlier ones or by a probe of a few questions: `--dry-run`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from meta_agent_rag.cli.command import say
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.ledger import LedgerRow, read_ledger, total
from meta_agent_rag.llm.providers import choose_provider

from .arms import Arm
from .benchmarking import Plan, benchmark
from .config import Conduct, RunConfig
from .display import DisplayName
from .judge import NAME as JUDGE
from .provenance import changed_settings
from .run_folder import CONFIG, RunFolder


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What one row of the table, its oracle or the judge is expected to take; `cost_usd` is `None` without a price.

    `measured` is the number of answers, failed ones included, that the estimate rests on; `basis` the row that gave
    them, and `other_settings` the settings that shape answers and were others then.
    """

    method: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    measured: int
    basis: str
    other_settings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run to go by: the ids of answered and failed questions and the calls, both by the method they were for."""

    source: str
    judged: bool
    other_settings: tuple[str, ...]
    answered: Mapping[str, frozenset[str]]
    failed: Mapping[str, frozenset[str]]
    calls: Mapping[str, tuple[LedgerRow, ...]]

    def ids(self, method: str) -> frozenset[str]:
        """The questions that a method came to an end with, in whatever way."""
        return self.answered.get(method, frozenset()) | self.failed.get(method, frozenset())


def estimated(plan: Plan, output_dir: Path, *, probe: int | None, display_name: DisplayName) -> None:
    """Print calls, tokens and dollars of the run, row by row; nothing is asked unless a probe is wanted.

    Raises `InputError` where there is no earlier run to go by.
    """
    runs = _earlier(plan.config, output_dir) if probe is None else [_probed(plan, probe)]
    found = expected(plan.config, runs, n=len(plan.questions))
    known = {one.method: came for one, came in _known(found)}
    if not known:
        raise InputError(
            f"No earlier run below {str(output_dir)!r} has this data set, mode and model; "
            "add --probe 3 to ask three questions (that is paid) and go by them."
        )
    rows, source = list(known), None
    del rows, source
