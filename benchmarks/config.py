"""What a run is: everything that must be the same for two runs to be one experiment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from meta_agent_rag.settings import Settings

Mode = Literal["gold", "supporting", "open_domain"]
MODES: tuple[Mode, ...] = ("gold", "supporting", "open_domain")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A benchmark run, as the command line asks for it.

    `limit` takes rows by position ("A-B", from 1) in place of a draw of `n`; `concurrency` is the
    number of questions at once, by default what suits the provider.
    """

    dataset: str
    mode: Mode
    methods: tuple[str, ...]
    n: int | None
    limit: str | None
    seed: int
    data_file: Path | None
    aliases_file: Path | None
    corpus: str | None
    without_deficits: tuple[str, ...]
    concurrency: int | None
    settings: Settings
