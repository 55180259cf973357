"""`marag chat`: a conversation over a corpus."""

from typing import Annotated

import typer

from .command import Assignments, Debug, reporting, run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("chat")(chat)


@reporting
def chat(
    corpus: Annotated[
        str | None, typer.Option(help="The corpus to talk about; default: the session's, or `sample`.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="The conversation to go on with, or to begin; default: one for each corpus.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="Who answers: plain, teacher or coach; default: as the session was left.")
    ] = None,
    level: Annotated[int | None, typer.Option(help="How little the coach gives away: 1, 2 or 3.")] = None,
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Talk about the documents of a corpus; every answer is checked against them before it is shown."""
    from functools import partial

    from ..settings import Settings
    from .shell.loop import converse

    load = partial(Settings.load, tuple(set_ or ()))
    run(converse(load, corpus=corpus, session=session, mode=mode, level=level, debug=debug))
