"""The slash commands for whole documents: list them, summarise them, compare two."""

import re
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING

from ...conversation.study import Study
from ...errors import InputError
from ...wording import counted
from ..shared.command import plain
from .state import NextAction, Shell

if TYPE_CHECKING:
    from ...overviews.overview import Work

SHOWN = 40
"""The number of documents that `/documents` lists."""

_MENTION = re.compile(r"(?<!\S)@(\"[^\"\n]+\"|[\w][\w.-]*)")
_FILLERS = {"please", "the", "document", "documents", "file", "files", "and", "with", "to", "me", "for"}
_VERBS = {"summarise": "summarise", "summarize": "summarise", "compare": "compare"}


def as_command(message: str) -> str | None:
    """The command equivalent to a message such as `Summarise @tides` or `Compare @tides and @winds`.

    `None` if a message says anything else or names no document; it is then a question.

    >>> as_command("Please compare @tides with @winds.")
    '/compare tides winds'
    """
    names = [name.rstrip(".") for name in _MENTION.findall(message)]
    words = [word for word in re.findall(r"\w+", _MENTION.sub(" ", message).casefold()) if word not in _FILLERS]
    if not names or len(words) != 1 or words[0] not in _VERBS:
        return None
    return " ".join([f"/{_VERBS[words[0]]}", *names])


async def show_documents(shell: Shell, argument: str) -> NextAction:
    """`/documents`."""
    documents = await shell.study.documents()
    for document in documents[:SHOWN]:
        pages = f", {counted(document.pages, 'page')}" if document.pages else ""
        file = PurePath(document.source).name
        facts = f"{file}; {document.kind}{pages}, {counted(document.passages, 'passage')}"
        shell.screen.markup(f"- {plain(document.title)} [dim]({plain(facts)})[/]")
    if len(documents) > SHOWN:
        shell.screen.line(f"and {len(documents) - SHOWN} more")
    shell.screen.note('To ask about one of them, put @NAME or @"LONGER NAME" before the question.')
    return None


async def summarise(shell: Shell, argument: str) -> NextAction:
    """`/summarise`."""
    from ...overviews.overview import prepared
    from ...overviews.writing import summary_text

    study = _open_to_all(shell)
    work = await prepared(study.conversation.model, study.library, _names(argument))
    shell.screen.note(f"{work.estimate}. Ctrl+C stops it.")
    with shell.screen.working():
        summary = await work.done(shell.screen.progress("Reading section"))
    await _shown(shell, f"Summarise {_titles(work)}", summary_text(summary))
    return None


async def compare(shell: Shell, argument: str) -> NextAction:
    """`/compare`."""
    from ...overviews.comparison import compared, estimated
    from ...overviews.overview import prepared
    from ...overviews.writing import comparison_text

    study = _open_to_all(shell)
    names = _names(argument)
    if len(names) != 2:
        raise InputError('/compare needs two documents; write /compare NAME NAME, longer names as "LONGER NAME".')
    work = await prepared(study.conversation.model, study.library, names, further=1)
    shell.screen.note(f"{estimated(work)}. Ctrl+C stops it.")
    with shell.screen.working():
        comparison = await compared(work, shell.screen.progress("Reading section"))
    await _shown(shell, f"Compare {_titles(work)}", comparison_text(comparison))
    return None


def _open_to_all(shell: Shell) -> Study:
    if shell.study.socratic.mode == "coach":
        raise InputError("The coach does not summarise or compare; write /mode plain first.")
    return shell.study


def _names(argument: str) -> list[str]:
    try:
        return [name.removeprefix("@") for name in shlex.split(argument)]
    except ValueError:
        raise InputError(f'Unclosed quotation mark in {argument!r}; write names as "LONGER NAME".') from None


def _titles(work: "Work") -> str:
    return " and ".join(one.document.title for one in work.documents)


async def _shown(shell: Shell, question: str, text: str) -> None:
    for line in text.splitlines():
        shell.screen.line(line)
    await shell.study.remember(question, text)
