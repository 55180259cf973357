"""`marag chat`: a conversation over a corpus."""

from typing import Annotated

import typer

from ..extras import require
from .shared.command import Assignments, Debug, command, keep_private, run, settings_of


@command()
def chat(
    corpus: Annotated[
        str | None, typer.Option(help="The corpus to chat about; default: the session's corpus, or `sample`.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="The conversation to continue or start; default: one per corpus.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="Who answers: plain, teacher or coach; default: as last used in the session.")
    ] = None,
    level: Annotated[int | None, typer.Option(help="How little the coach reveals: 1, 2 or 3.")] = None,
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Chat about the documents of a corpus; every answer is checked against them before it is shown."""
    require("chat", "`marag chat`")
    keep_private()
    from .shared.shell import converse

    run(converse(settings_of(set_), corpus=corpus, session=session, mode=mode, level=level, debug=debug))
