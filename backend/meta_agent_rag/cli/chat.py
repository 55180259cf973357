"""`marag chat`: a conversation over a corpus; `marag sessions list|rename|delete`: those so far."""

from dataclasses import asdict
from shlex import quote
from typing import Annotated

import typer

from ..extras import require
from ..wording import counted
from .shared.command import (
    Assignments,
    Debug,
    Json,
    Yes,
    command,
    complain,
    confirm,
    group,
    keep_private,
    plain,
    run,
    say,
    settings_of,
    show,
)


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


Name = Annotated[str, typer.Argument(metavar="NAME", help="The session.")]
_SESSIONS = group("sessions", "Manage the conversations of `marag chat`.")


@command(_SESSIONS)
def list_(set_: Assignments = None, json_: Json = False) -> None:
    """List all conversations, the latest first: corpus, questions, when it was last saved."""
    from ..chat.store import open_sessions

    async def listed() -> tuple[list[dict[str, object]], set[str]]:
        async with open_sessions(settings_of(set_).marag_data_dir) as sessions:
            readable = await sessions.listed()
            return [asdict(one) for one in readable], set(await sessions.names()) - {one.name for one in readable}

    found, damaged = run(listed())
    for name in sorted(damaged):
        complain(f"The session {name!r} is damaged; delete it with `marag sessions delete -- {quote(name)}`.")
    lines = []
    for one in found:
        facts = f"{one['corpus']}, {counted(int(str(one['turns'])), 'question')}, {one['saved']:%Y-%m-%d %H:%M} UTC"
        lines.append(f"[bold]{plain(str(one['name']))}[/]: {plain(facts)}")
    if not (lines or damaged):
        lines = ["No conversations yet; start one with `marag chat`."]
    show(found, *lines, json_=json_)


@command(_SESSIONS)
def rename(
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    set_: Assignments = None,
) -> None:
    """Rename a conversation."""
    from ..chat.store import open_sessions

    async def renamed() -> None:
        async with open_sessions(settings_of(set_).marag_data_dir) as sessions:
            await sessions.rename(name, new)

    run(renamed())
    say(f"{name!r} is now {new!r}; continue with `marag chat --session {new}`.")


@command(_SESSIONS)
def delete(
    name: Name,
    yes: Yes = False,
    set_: Assignments = None,
) -> None:
    """Delete a conversation and its transcript."""
    from ..chat.store import open_sessions, unknown_session

    data_dir = settings_of(set_).marag_data_dir

    async def deleted(really: bool) -> None:
        async with open_sessions(data_dir) as sessions:
            if name not in await sessions.names():
                raise unknown_session(name)
            if really:
                await sessions.drop(name)

    run(deleted(really=yes))
    if not yes:
        confirm(f"Deleting {name!r}", f"Delete the conversation {name!r}?", declined="Nothing was deleted.")
        run(deleted(really=True))
    say(f"Deleted {name!r}.")
