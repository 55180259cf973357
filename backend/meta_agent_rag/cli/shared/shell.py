"""The session of `marag chat` at a terminal or in a pipe: it reads lines, and runs turns and slash commands."""

import asyncio
import re
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from select import select
from typing import Any, TypeAlias, TypeVar

from ...agent.grounded import GroundedAnswer
from ...chat.coach.coach import CoachReply
from ...chat.coach.levels import levels
from ...chat.phrases import files_of, reply_phrase
from ...chat.session import ChatSession, DocumentsReply, notice, open_chat, topic_notice
from ...chat.transcript import as_markdown, coaching_lines, in_short, source_lines
from ...errors import InputError, MetaRagError
from ...llm.ledger import LedgerRow, total
from ...retrieval.corpus.corpus import open_catalogue
from ...retrieval.corpus.sample import SAMPLE
from ...settings import Settings
from ...wording import counted
from .command import plain
from .display import Screen, dropped_line, round_line, round_steps, small_model_hint, spending

T = TypeVar("T")
PROMPT = "> "
_SECONDS_BETWEEN_LOOKS = 0.1
TOPICS = 40
"""The number of topics that `/topic` and `/topics` show."""
MODES = {"plain": "", "teacher": "teacher", "coach": "coach"}
"""The names that `/mode` uses for the modes of a conversation."""


async def converse(
    settings: Settings,
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
    chosen = None if mode is None else mode_called(mode)
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # undecodable bytes are rejected by their turn
    screen = Screen()
    async with AsyncExitStack() as stack:
        opened = open_chat(settings, corpus=corpus, session=session, on_step=screen.stage)
        chat = await stack.enter_async_context(opened)
        stack.enter_context(files_of(settings.coach_dir))
        lines = _edited_line(settings, screen) if sys.stdin.isatty() and screen.animated else _plain_line
        shell = Shell(chat=chat, settings=settings, screen=screen, next_line=lines, debug=debug)
        chat.model.ledger.listeners.append(shell.rows.append)
        asked = f"{counted(chat.history.turns, 'question')} so far" if chat.history.turns else "no questions yet"
        screen.line(f"Corpus {chat.corpus}, session {chat.name}, {asked}. {shell.models()}")
        screen.line("/help lists the commands.")
        if hint := small_model_hint(chat.model.choice):
            screen.note(hint)
        if mode is not None or level is not None:
            screen.line(await chat.hold(mode="coach" if chosen is None else chosen, level=level))
        elif chat.socratic.mode:
            screen.line(notice(chat.socratic))
        await shell.run()
        # a conversation that was never stored does not know its corpus
        about = "" if chat.history.turns or chat.corpus == SAMPLE else f" --corpus {chat.corpus}"
        spent = spending(total(shell.rows))
        screen.note(f"This session: {spent}. Continue with: marag chat{about} --session {chat.name}")


NextLine: TypeAlias = Callable[[], Awaitable[str]]
"""Returns the user's next line. Raises `EOFError` at the end, `KeyboardInterrupt` if the typed text is discarded."""


class Stopped(Exception):  # noqa: N818  # nothing went wrong
    """The user stopped the current work."""


async def stoppable(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which Ctrl+C cancels; raises `Stopped` then, and the errors of the work."""
    task, loop, stopped = asyncio.ensure_future(work), asyncio.get_running_loop(), False

    def stop() -> None:
        nonlocal stopped
        if not stopped:
            stopped = task.cancel()

    with suppress(NotImplementedError):  # on Windows
        loop.add_signal_handler(signal.SIGINT, stop)
    try:
        return await task
    except asyncio.CancelledError:
        around = asyncio.current_task()
        if stopped and not (around is not None and around.cancelling()):
            raise Stopped from None
        raise
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


async def _plain_line() -> str:
    """A line of standard input, unedited. Blocks the event loop, which has no other work at this time."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            sys.stdout.write(PROMPT)
            sys.stdout.flush()
        if sys.stdin.isatty() and sys.platform != "win32":
            while not select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
                pass  # a read would not notice a Ctrl+C that comes just before it blocks
        line = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def _edited_line(settings: Settings, screen: Screen) -> NextLine:
    """Lines edited with prompt_toolkit, with a history on disk and completion of slash commands."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.keys import Keys
    from prompt_toolkit.output import ColorDepth

    class Kept(FileHistory):
        def store_string(self, string: str) -> None:
            with suppress(OSError):  # a line that cannot be stored is still valid
                super().store_string(string.encode("utf-8", "replace").decode("utf-8"))

    keys = KeyBindings()
    # a pasted colour code looks like a mouse event, which the library's own binding fails to parse
    keys.add(Keys.Vt100MouseEvent)(lambda event: None)
    names = {f"/{name}": command.meaning for name, command in COMMANDS.items()}
    session: PromptSession[str] = PromptSession(
        history=Kept(settings.marag_data_dir / "chat_history"),
        key_bindings=keys,
        completer=WordCompleter(list(names), meta_dict=names, pattern=re.compile(r"^/\w*")),
        color_depth=None if screen.coloured else ColorDepth.DEPTH_1_BIT,
    )
    return lambda: session.prompt_async(PROMPT, handle_sigint=False)


@dataclass(kw_only=True)
class Shell:
    """A session: turns, commands, and the handling of Ctrl+C and errors.

    `last` is this process's last answer from documents, `coached` the coach's last reply if it came after that, `rows`
    all calls so far, including those of stopped and failed turns.
    """

    chat: ChatSession
    settings: Settings
    screen: Screen
    next_line: NextLine = _plain_line
    debug: bool = False
    last: GroundedAnswer | None = None
    coached: CoachReply | None = None
    rows: list[LedgerRow] = field(default_factory=list)

    async def run(self) -> None:
        """Process lines until one of them, or the end of the input, ends the session."""
        while True:
            try:
                line = (await self.next_line()).strip()
                if line:
                    await (self._harmless(run_command(self, line)) if line.startswith("/") else self._turn(line))
            except KeyboardInterrupt:
                if not sys.stdin.isatty():
                    raise
                self.screen.line()
            except EOFError:
                return
            except Stopped:
                self.screen.line("Stopped; this question is not remembered.")
            except MetaRagError as error:
                if self.debug:
                    sys.stderr.write("".join(traceback.format_exception(error)))
                self.screen.fault(error)

    async def confirmed(self, question: str) -> bool:
        """Whether the user answers yes; Ctrl+C and the end of the input mean no, and in a pipe nobody is asked."""
        if not sys.stdin.isatty():
            return True
        self.screen.line(f"{question} [y/N]")
        try:
            return (await self.next_line()).strip().casefold() in {"y", "yes"}
        except (KeyboardInterrupt, EOFError):
            return False

    def models(self) -> str:
        """The provider and the models of both tiers, in one sentence."""
        choice = self.chat.model.choice
        models = [f"{tier} {choice.models[tier]}" for tier in ("flash", "pro")]
        return f"Model: {', '.join(models)}; {choice.provider.label}."

    async def _turn(self, message: str) -> None:
        started = time.perf_counter()
        with self.screen.working():
            turn = await stoppable(self.chat.reply(message))
        seconds = time.perf_counter() - started
        self.coached = turn.reply if isinstance(turn.reply, CoachReply) else None
        self.screen.line(turn.reply.text.strip() or turn.reply.short_answer)
        if isinstance(turn.reply, DocumentsReply):
            self.last = turn.reply.grounded
            if self.chat.sources:
                self.screen.note(f"Sources: {in_short(self.chat.sources)}")
            sure, rounds = self.last.confidence, counted(len(self.last.answer.rounds), "round")
            confidence = "not answered" if sure is None else f"confidence {sure.level} ({sure.score:.2f})"
            self.screen.note(f"{confidence}, {rounds}, {seconds:.1f} s")
        if self.coached is not None and self.coached.acknowledged:
            with files_of(self.settings.coach_dir):
                self.screen.line(reply_phrase("right_answer"))
        for note in (*turn.notes, *(await self._harmless(self.chat.settle()) or ())):
            self.screen.note(note)

    async def _harmless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of work that may be stopped silently; `None` if it was."""
        try:
            return await stoppable(work)
        except Stopped:
            return None


Run: TypeAlias = Callable[[Shell, str], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A slash command: `run` receives the text after the name, whose form `argument` shows."""

    name: str
    meaning: str
    run: Run
    argument: str


COMMANDS: dict[str, Command] = {}


def _command(name: str, meaning: str, argument: str = "") -> Callable[[Run], Run]:
    def registered(run: Run) -> Run:
        COMMANDS[name] = Command(name=name, meaning=meaning, run=run, argument=argument)
        return run

    return registered


async def run_command(shell: Shell, line: str) -> None:
    """Run a command line. Raises `InputError` for an unknown command, and the command's own errors."""
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    command = COMMANDS.get(name.casefold())
    if command is None:
        near = get_close_matches(name.casefold(), COMMANDS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(f'/{known}' for known in near)}" if near else "/help lists them"
        raise InputError(f"Unknown command {'/' + name!r}; {hint}.")
    await command.run(shell, argument.strip())


def _chosen(argument: str, known: Sequence[str], what: str) -> str:
    if argument not in known:
        raise InputError(f"There is no {what} {argument!r}; choose from: {', '.join(known)}.")
    return argument


def mode_called(name: str) -> str:
    """The mode of a conversation for a name used in the chat. Raises `InputError`."""
    return MODES[_chosen(name, tuple(MODES), "mode")]


def _show_some(shell: Shell, names: Sequence[str]) -> None:
    distinct = list(dict.fromkeys(names))
    for name in distinct[:TOPICS]:
        shell.screen.line(f"- {name}")
    if len(distinct) > TOPICS:
        shell.screen.line(f"and {len(distinct) - TOPICS} more")


@_command("help", "this list")
async def _help(shell: Shell, argument: str) -> None:
    for command in COMMANDS.values():
        shell.screen.line(f"{f'/{command.name} {command.argument}':<30}  {command.meaning}")


@_command("history", "what is remembered of the conversation")
async def _history(shell: Shell, argument: str) -> None:
    history = shell.chat.history
    if history.is_empty:
        shell.screen.line("Nothing is remembered yet.")
    if history.summary:
        shell.screen.markup(f"[dim]Summary of earlier turns:[/] {plain(history.summary)}")
    for exchange in history.exchanges:
        shell.screen.markup(f"[bold]{exchange.turn}. {plain(exchange.question)}[/]")
        shell.screen.line(exchange.answer)


@_command("sources", "the sources of the last answer")
async def _sources(shell: Shell, argument: str) -> None:
    if not shell.chat.sources:
        shell.screen.line("The last answer has no citations." if shell.last else "No citations yet.")
    for number, source in enumerate(shell.chat.sources, start=1):
        place, snippet = source_lines(source)
        shell.screen.markup(f"[bold]{number}. {plain(place)}[/]")
        shell.screen.line(f"   {snippet}")


@_command("topics", "the topics of the documents, by title")
async def _topics(shell: Shell, argument: str) -> None:
    with open_catalogue(shell.settings.marag_data_dir, shell.chat.corpus) as catalogue:
        titles = catalogue.titles()
    _show_some(shell, [" ".join(title.split()) for title in titles])


@_command("trace", "the last answer's rounds with unchecked drafts, or one in full", "[N]")
async def _trace(shell: Shell, argument: str) -> None:
    if shell.coached is not None:
        for line in coaching_lines(shell.coached.trace):
            shell.screen.line(line)
        return
    if shell.last is None:
        shell.screen.line("No rounds yet; ask a question about the documents.")
        return
    answer = shell.last.answer
    rounds = {str(round_.index): round_ for round_ in answer.rounds}
    if argument and argument not in rounds:
        raise InputError(f"There is no round {argument!r}; the last answer has the rounds {', '.join(rounds)}.")
    if not argument:
        shell.screen.note(f"{answer.question} (stopped: {answer.stop_reason}; drafts are not checked)")
    for round_ in [rounds[argument]] if argument else answer.rounds:
        shell.screen.markup(round_line(round_, chosen=round_.index == answer.chosen))
        for step in round_steps(round_) if argument else ():
            shell.screen.markup(step)
    for dropped in () if argument else dict.fromkeys(answer.dropped):
        shell.screen.markup(dropped_line(dropped))


@_command("mode", "who answers: the documents, a teacher or a coach", "[plain|teacher|coach]")
async def _mode(shell: Shell, argument: str) -> None:
    chat = shell.chat
    shell.screen.line(await chat.hold(mode=mode_called(argument)) if argument else notice(chat.socratic))


@_command("level", "how little the coach reveals", "[1|2|3]")
async def _level(shell: Shell, argument: str) -> None:
    if argument:
        level = int(_chosen(argument, tuple(map(str, levels())), "level"))
        shell.screen.line(await shell.chat.hold(mode="coach", level=level))
    else:
        shell.screen.line(notice(shell.chat.socratic))


@_command("topic", "the topic of the coach's questions", "[NAME|any]")
async def _topic(shell: Shell, argument: str) -> None:
    if argument:
        shell.screen.line(await shell.chat.hold(mode="coach", topic="" if argument == "any" else argument))
    else:
        shell.screen.line(topic_notice(shell.chat.socratic))
        _show_some(shell, [topic.name for topic in shell.chat.topics])


@_command("model", "the models in use")
async def _model(shell: Shell, argument: str) -> None:
    shell.screen.line(shell.models())


@_command("cost", "calls, tokens and dollars of this session")
async def _cost(shell: Shell, argument: str) -> None:
    shell.screen.line(f"This session so far: {spending(total(shell.rows))}.")


@_command("reset", "forget the conversation", "[--yes]")
async def _reset(shell: Shell, argument: str) -> None:
    forgotten = counted(shell.chat.history.turns, "question")
    if argument not in {"", "--yes"}:
        raise InputError(f"Unknown value {argument!r} for /reset; write /reset, or /reset --yes to skip the question.")
    if not argument and not await shell.confirmed(f"Delete this conversation with {forgotten} and the answers?"):
        shell.screen.line("Nothing was deleted.")
        return
    await shell.chat.reset()
    shell.last = shell.coached = None
    shell.screen.line(f"Forgotten: {forgotten} and the answers.")


@_command("save", "write the whole conversation to a new Markdown file", "FILE")
async def _save(shell: Shell, argument: str) -> None:
    if not argument:
        raise InputError("/save needs a file name; write /save FILE.")
    chat, file = shell.chat, Path(argument.strip("\"'"))
    text = as_markdown(chat.name, chat.corpus, await chat.said(), chat.sources)

    def write() -> None:
        with file.expanduser().open("x", encoding="utf-8") as opened:
            opened.write(text)

    try:
        await asyncio.to_thread(write)
    except FileExistsError:
        raise InputError(f"{str(file)!r} already exists and was left unchanged; give another name.") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The file {str(file)!r} cannot be written ({reason}); give another path.") from None
    shell.screen.line(f"Saved to {str(file)!r}.")


@_command("quit", "leave; so does Ctrl+D")
async def _quit(shell: Shell, argument: str) -> None:
    raise EOFError
