"""The slash commands for whole documents: list them, summarise them, compare two."""

import re
import shlex
from typing import TYPE_CHECKING

from ...chat.answers import reply_phrase
from ...chat.documents import document_lines
from ...chat.intent import read_intent
from ...chat.session import ChatSession
from ...errors import InputError
from ...retrieval.corpus.naming import mentions, without_mentions
from ...text.names import words
from .state import NextAction, Shell

if TYPE_CHECKING:
    from ...chat.summaries.overview import Work

_COMPARE = re.compile(r"(please )?compare( the)?( documents?| files?)?( (and|with|to))?( the)?( documents?| files?)?")


def as_command(message: str) -> str | None:
    """The command for a message that wants whole documents, such as `Summarise @tides` or `Compare @tides and @winds`.

    `None` if a message says anything else; it is then a question, or a request for the list of documents.

    >>> as_command("Please compare @tides with @winds."), as_command("Give me an overview of all documents")
    ('/compare tides winds', '/summarise all')
    """
    names = [f'"{name}"' if " " in name else name for name in mentions(message)]
    if names and _COMPARE.fullmatch(" ".join(words(without_mentions(message)))):
        return " ".join(["/compare", *names])
    reading = read_intent(message)
    if reading.intent != "documents" or reading.kind != "overview":
        return None
    return " ".join(["/summarise", *(names or (["all"] if reading.every else []))])


async def run_understood(shell: Shell, command: str) -> NextAction:
    """Run a command of `as_command`; at a terminal, a paid summary of several documents asks first."""
    name, _, argument = command.partition(" ")
    return await (compare(shell, argument) if name == "/compare" else _summarised(shell, argument, asks=True))


async def show_documents(shell: Shell, argument: str) -> NextAction:
    """`/documents`."""
    documents = await shell.study.documents()
    for line in document_lines(documents):
        shell.screen.line(line)
    shell.screen.note(reply_phrase("documents_mention"))
    return None


async def summarise(shell: Shell, argument: str) -> NextAction:
    """`/summarise`."""
    return await _summarised(shell, argument, asks=False)


async def _summarised(shell: Shell, argument: str, *, asks: bool) -> NextAction:
    from ...chat.summaries.overview import prepared
    from ...chat.summaries.writing import summary_text

    study = _open_to_all(shell)
    work = await prepared(study.conversation.model, study.library, _names(argument))
    shell.screen.note(f"{work.estimate}. Ctrl+C stops it.")
    asks = asks and len(work.documents) > 1 and not work.estimate.free
    if asks and shell.confirmed is not None and not await shell.confirmed("Continue?"):
        shell.screen.line("No call was made.")
        return None
    with shell.screen.working():
        summary = await work.done(shell.screen.progress("Reading section"))
    await _shown(shell, f"Summarise {_titles(work)}", summary_text(summary))
    return None


async def compare(shell: Shell, argument: str) -> NextAction:
    """`/compare`."""
    from ...chat.summaries.comparison import compared, estimated
    from ...chat.summaries.overview import prepared
    from ...chat.summaries.writing import comparison_text

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


def _open_to_all(shell: Shell) -> ChatSession:
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
