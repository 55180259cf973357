"""`marag chat`: a conversation over a corpus."""

from functools import partial
from typing import Annotated

import typer

from ..extras import require
from .shared.command import Assignments, Debug, keep_private, reporting, run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("chat")(chat)


@reporting
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
    from ..settings import Settings

    require("chat", "`marag chat`")
    keep_private()
    from .shell.loop import converse

    load = partial(Settings.load, tuple(set_ or ()))
    run(converse(load, corpus=corpus, session=session, mode=mode, level=level, debug=debug))
