"""The progress of a distributed run: a line as each shard ends."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.wording import counted

from ..run.display import Silent
from ..run.folder import RunFolder
from .limit import CarryOut
from .shard_task import ShardOutcome, ShardTask


def shown(carry_out: CarryOut, shards: int, figures: Silent) -> CarryOut:
    """The same, with a line on stderr for each shard that ends; `figures` counts the rows of finished ones."""
    finished: list[str] = []

    def reporting(tasks: Sequence[ShardTask]) -> Iterator[ShardOutcome]:
        for outcome in carry_out(tasks):
            if outcome.code:
                why = "stopped at its share of the cost limit" if outcome.at_limit else "ended with an error"
                complain(f"Shard {outcome.shard} {why}.")
            else:
                finished.append(outcome.shard)
                questions = _count(outcome, figures)
                complain(
                    f"Shard {outcome.shard} is finished ({len(finished)} of {shards}): "
                    f"{counted(questions, 'question')}  | {figures.figures()}"
                )
            yield outcome

    return reporting


def _count(outcome: ShardOutcome, figures: Silent) -> int:
    """Count the rows of a shard; returns its number of questions."""
    rows = {} if outcome.folder is None else RunFolder(Path(outcome.folder)).rows()
    for row in rows.values():
        figures.row(row)
    return len({question for question, _ in rows})
