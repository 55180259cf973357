"""Reads lines and runs turns until the user leaves."""

import sys
import time
import traceback
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Any, TypeVar

from ...chat.coach.coach import CoachReply
from ...chat.phrases import files_of, reply_phrase
from ...chat.session import ChatSession, DocumentsReply, notice, open_chat
from ...chat.transcript import in_short
from ...errors import MetaRagError
from ...grounding.confidence import Confidence
from ...retrieval.corpus.sample import SAMPLE
from ...settings import Settings
from ...wording import counted
from ..shared.display import Screen, small_model_hint, spending
from .commands import Leave, Load, NextAction, Reopen, Shell, mode_called, run_command
from .lines import Interrupts, LineCleared, Lines, PlainLines, PromptedLines, Stopped

T = TypeVar("T")

STOPPED = "Stopped; this question is not remembered."


async def converse(
    load: Load,
    *,
    corpus: str | None,
    session: str | None,
    mode: str | None = None,
    level: int | None = None,
    debug: bool = False,
) -> None:
    """Hold a conversation on standard input and output, until the user leaves or the input ends.

    Raises a `MetaRagError` if the session cannot be opened; later errors only end a turn.
    """
    settings, chosen = load(), None if mode is None else mode_called(mode)
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # undecodable bytes are rejected by their turn
    screen = Screen()
    async with AsyncExitStack() as stack:
        chat = await stack.enter_async_context(_opened(settings, screen, corpus, session))
        stack.enter_context(files_of(settings.coach_dir))
        shell = Shell(chat=chat, settings=settings, load=load, screen=screen)
        talk = _Talk(shell=shell, lines=_lines(settings, screen), interrupts=Interrupts(), debug=debug)
        shell.confirmed = talk.confirmed if sys.stdin.isatty() else None
        screen.line(_greeting(shell))
        if hint := small_model_hint(chat.model.choice):
            screen.note(hint)
        if mode is not None or level is not None:
            screen.line(await chat.hold(mode="coach" if chosen is None else chosen, level=level))
        elif chat.socratic.mode:
            screen.line(notice(chat.socratic))
        with talk.interrupts.listening():
            while (wish := await talk.until_wish()) != Leave():
                if isinstance(wish, Reopen):
                    await talk.reopen(stack, wish)
        screen.note(_farewell(shell))


def _opened(
    settings: Settings, screen: Screen, corpus: str | None, session: str | None
) -> AbstractAsyncContextManager[ChatSession]:
    return open_chat(settings, corpus=corpus, session=session, on_step=screen.stage, on_text=screen.writing)


@dataclass(kw_only=True)
class _Talk:
    """The loop over lines: turns, commands, and the handling of Ctrl+C and errors."""

    shell: Shell
    lines: Lines
    interrupts: Interrupts
    debug: bool

    async def until_wish(self) -> NextAction:
        """Process lines until one of them ends or reopens the chat."""
        while True:
            try:
                line = await self.lines.next()
            except LineCleared:
                if isinstance(self.lines, PlainLines):
                    self.shell.screen.line()
                continue
            except EOFError:
                return Leave()
            if line.strip() and (wish := await self._served(line)) is not None:
                return wish

    async def confirmed(self, question: str) -> bool:
        """Does the user answer a question with yes? Ctrl+C and the end of the input mean no."""
        self.shell.screen.line(f"{question} [y/N]")
        try:
            return (await self.lines.next()).strip().casefold() in {"y", "yes"}
        except (LineCleared, EOFError):
            return False

    async def reopen(self, stack: AsyncExitStack, wish: Reopen) -> None:
        """Continue with changed settings or, if these do not work, with the old ones."""
        shell = self.shell
        changes = {**shell.changes, **wish.changes}
        try:
            settings = shell.load(**changes)
            await stack.aclose()
            shell.take(await stack.enter_async_context(self._again(settings)))
        except MetaRagError as error:
            self._complain(error)
            shell.screen.line("The settings are unchanged.")
            await stack.aclose()
            shell.take(await stack.enter_async_context(self._again(shell.settings)))
            return
        shell.settings, shell.changes = settings, changes
        shell.screen.line(shell.models())

    def _again(self, settings: Settings) -> AbstractAsyncContextManager[ChatSession]:
        chat = self.shell.chat
        return _opened(settings, self.shell.screen, chat.corpus, chat.name)

    async def _served(self, line: str) -> NextAction:
        try:
            if line.lstrip().startswith("/"):
                return await self._harmless(run_command(self.shell, line))
            await self._turn(line)
        except Stopped:
            self.shell.screen.line(STOPPED)
        except MetaRagError as error:
            self._complain(error)
        return None

    async def _turn(self, message: str) -> None:
        shell, started = self.shell, time.perf_counter()
        with shell.screen.working():
            turn = await self.interrupts.finished(shell.chat.reply(message))
        seconds = time.perf_counter() - started
        shell.coached = turn.reply if isinstance(turn.reply, CoachReply) else None
        if isinstance(turn.reply, DocumentsReply):
            shell.last = turn.reply.grounded
        await self._harmless(shell.screen.answer(turn.reply.text.strip() or turn.reply.short_answer))
        if isinstance(turn.reply, DocumentsReply):
            if shell.chat.sources:
                shell.screen.note(f"Sources: {in_short(shell.chat.sources)}")
            rounds = len(turn.reply.grounded.answer.rounds)
            shell.screen.note(_summary(turn.reply.grounded.confidence, rounds, seconds))
        if shell.coached is not None and shell.coached.acknowledged:
            with files_of(shell.settings.coach_dir):
                shell.screen.line(reply_phrase("right_answer"))
        notes = await self._harmless(shell.chat.settle()) or ()
        for note in (*turn.notes, *notes):
            shell.screen.note(note)

    async def _harmless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of work that may be stopped silently; `None` if it was."""
        try:
            return await self.interrupts.finished(work)
        except Stopped:
            return None

    def _complain(self, error: MetaRagError) -> None:
        if self.debug:
            sys.stderr.write("".join(traceback.format_exception(error)))
        self.shell.screen.fault(error)


def _lines(settings: Settings, screen: Screen) -> Lines:
    if sys.stdin.isatty() and screen.animated:
        return PromptedLines(settings.marag_data_dir, coloured=screen.coloured)
    return PlainLines()


def _greeting(shell: Shell) -> str:
    chat = shell.chat
    about = f"Corpus {chat.corpus}, session {chat.name}, {_remembered(chat)}."
    return f"{about} {shell.models()} /help lists the commands."


def _remembered(chat: ChatSession) -> str:
    """The number of questions so far, and how many of them the memory still holds."""
    history = chat.history
    if not history.turns:
        return "no questions yet"
    asked, kept = counted(history.turns, "question"), len(history.exchanges)
    if kept == history.turns:
        return f"{asked} so far"
    verbatim = f"the latest {kept} remembered in full" if kept else "none remembered in full"
    return f"{asked} so far, {verbatim}" + (", earlier ones in a summary" if history.summary else "")


def _summary(sure: Confidence | None, rounds: int, seconds: float) -> str:
    confidence = "not answered" if sure is None else f"confidence {sure.level} ({sure.score:.2f})"
    return f"{confidence}, {counted(rounds, 'round')}, {seconds:.1f} s"


def _farewell(shell: Shell) -> str:
    chat = shell.chat
    # a conversation that was never stored does not know its corpus
    about = "" if chat.history.turns or chat.corpus == SAMPLE else f" --corpus {chat.corpus}"
    return f"This session: {spending(shell.totals)}. Continue with: marag chat{about} --session {chat.name}"
