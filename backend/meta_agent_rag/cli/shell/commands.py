"""The slash commands of `marag chat`: one function each, and the state that they share with the loop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from ...agent.grounded import GroundedAnswer
from ...chat.coach.coach import CoachReply
from ...chat.coach.levels import levels
from ...chat.intent import document_lines
from ...chat.phrases import reply_phrase
from ...chat.session import ChatSession, notice, topic_notice
from ...chat.transcript import as_markdown, coaching_lines, source_lines
from ...errors import InputError
from ...llm.ledger import LedgerRow, Totals, total
from ...llm.providers import COMPATIBLE, choose_provider, providers
from ...retrieval.corpus.corpus import read_titles
from ...settings import ModelRoles, Settings
from ...wording import counted
from ..shared.command import plain
from ..shared.display import Screen, dropped_line, round_line, round_steps, spending

TOPICS = 40
"""The number of topics that `/topic` and `/topics` show."""
MODES = {"plain": "", "teacher": "teacher", "coach": "coach"}
"""The names that `/mode` uses for the modes of a conversation."""

Load: TypeAlias = Callable[..., Settings]
"""Reloads the settings of this session, with changes as keyword arguments."""


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Ends the session."""


@dataclass(frozen=True, kw_only=True)
class Reopen:
    """Reopens the chat with changed settings."""

    changes: dict[str, object]


NextAction: TypeAlias = Leave | Reopen | None


@dataclass(kw_only=True)
class Shell:
    """A session at a terminal.

    `changes` are the settings changed during the session, `last` is this process's last answer from documents,
    `coached` the coach's last reply if it came after that, `rows` all calls so far, including those of stopped and
    failed turns. `confirmed` asks the user a question of yes or no; it is `None` if nobody can be asked.
    """

    chat: ChatSession
    settings: Settings
    load: Load
    screen: Screen
    changes: dict[str, object] = field(default_factory=dict)
    last: GroundedAnswer | None = None
    coached: CoachReply | None = None
    rows: list[LedgerRow] = field(default_factory=list)
    confirmed: Callable[[str], Awaitable[bool]] | None = None

    def __post_init__(self) -> None:
        self.take(self.chat)

    def take(self, chat: ChatSession) -> None:
        """Continue with a reopened chat."""
        self.chat = chat
        chat.model.ledger.listeners.append(self.rows.append)

    @property
    def totals(self) -> Totals:
        """The cost of this session."""
        return total(self.rows)

    def models(self) -> str:
        """The provider and the models of both tiers, in one sentence."""
        choice = self.chat.model.choice
        models = [f"{tier} {choice.models[tier]}" for tier in ("flash", "pro")]
        return f"Model: {', '.join(models)}; {choice.provider.label}."


Run: TypeAlias = Callable[[Shell, str], Awaitable[NextAction]]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A slash command: `run` receives the text after the name; `values` are the allowed ones."""

    name: str
    meaning: str
    run: Run
    argument: str
    values: Callable[[], Sequence[str]]

    @property
    def usage(self) -> str:
        """The command as the user types it."""
        return f"/{self.name} {self.argument}".rstrip()


COMMANDS: dict[str, Command] = {}


def _command(
    name: str, meaning: str, argument: str = "", values: Callable[[], Sequence[str]] = tuple
) -> Callable[[Run], Run]:
    def registered(run: Run) -> Run:
        COMMANDS[name] = Command(name=name, meaning=meaning, run=run, argument=argument, values=values)
        return run

    return registered


async def run_command(shell: Shell, line: str) -> NextAction:
    """Run a command line. Raises `InputError` for an unknown command, and the command's own errors."""
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    command = COMMANDS.get(name.casefold())
    if command is None:
        begun = [known for known in COMMANDS if name and known.startswith(name.casefold())]
        near = begun or get_close_matches(name.casefold(), COMMANDS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(f'/{known}' for known in near)}" if near else "/help lists them"
        raise InputError(f"Unknown command {'/' + name!r}; {hint}.")
    return await command.run(shell, argument.strip())


def completions(begun: str) -> Iterator[tuple[str, str]]:
    """The possible completions of a line, each with its meaning: a command's name, then one of its values.

    >>> [text for text, _ in completions("/mode t")]
    ['/mode teacher']
    """
    name, blank, value = begun.partition(" ")
    for command in COMMANDS.values() if begun.startswith("/") else ():
        if not blank and f"/{command.name}".startswith(name):
            yield f"/{command.name}", command.meaning
        elif blank and f"/{command.name}" == name:
            yield from ((f"{name} {one}", "") for one in command.values() if one.startswith(value))


def _chosen(argument: str, known: Sequence[str], what: str) -> str:
    if argument not in known:
        raise InputError(f"There is no {what} {argument!r}; choose from: {', '.join(known)}.")
    return argument


@_command("help", "this list")
async def _help(shell: Shell, argument: str) -> NextAction:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        shell.screen.line(f"{command.usage:<{width}}  {command.meaning}")
    return None


@_command("history", "what is remembered of the conversation")
async def _history(shell: Shell, argument: str) -> NextAction:
    history = shell.chat.history
    if history.is_empty:
        shell.screen.line("Nothing is remembered yet.")
    if history.summary:
        shell.screen.markup(f"[dim]Summary of earlier turns:[/] {plain(history.summary)}")
    for exchange in history.exchanges:
        shell.screen.markup(f"[bold]{exchange.turn}. {plain(exchange.question)}[/]")
        shell.screen.line(exchange.answer)
    if history.dropped:
        shell.screen.note(f"{counted(history.dropped, 'older question')} no longer remembered.")
    return None


@_command("sources", "the sources of the last answer")
async def _sources(shell: Shell, argument: str) -> NextAction:
    if not shell.chat.sources:
        shell.screen.line("The last answer has no citations." if shell.last else "No citations yet.")
    for number, source in enumerate(shell.chat.sources, start=1):
        place, snippet = source_lines(source)
        shell.screen.markup(f"[bold]{number}. {plain(place)}[/]")
        shell.screen.line(f"   {snippet}")
    return None


@_command("documents", "the documents; @NAME in a question limits it to one")
async def _documents(shell: Shell, argument: str) -> NextAction:
    for line in document_lines(await shell.chat.documents()):
        shell.screen.line(line)
    shell.screen.note(reply_phrase("documents_mention"))
    return None


@_command("topics", "the topics of the documents, by title")
async def _topics(shell: Shell, argument: str) -> NextAction:
    titles = await asyncio.to_thread(read_titles, shell.settings.marag_data_dir, shell.chat.corpus)
    _show_some(shell, [" ".join(title.split()) for title in titles])
    return None


def _show_some(shell: Shell, names: Sequence[str]) -> None:
    distinct = list(dict.fromkeys(names))
    for name in distinct[:TOPICS]:
        shell.screen.line(f"- {name}")
    if len(distinct) > TOPICS:
        shell.screen.line(f"and {len(distinct) - TOPICS} more")


@_command("trace", "the last answer's rounds with unchecked drafts, or one in full", "[N]")
async def _trace(shell: Shell, argument: str) -> NextAction:
    if shell.coached is not None:
        for line in coaching_lines(shell.coached.trace):
            shell.screen.line(line)
        return None
    if shell.last is None:
        shell.screen.line("No rounds yet; ask a question about the documents.")
        return None
    answer = shell.last.answer
    if not argument:
        shell.screen.note(f"{answer.question} (stopped: {answer.stop_reason}; drafts are not checked)")
        for round_ in answer.rounds:
            shell.screen.markup(f"+ {round_line(round_, chosen=round_.index == answer.chosen)}")
        for dropped in dict.fromkeys(answer.dropped):
            shell.screen.markup(f"- {dropped_line(dropped)}")
        return None
    numbered = {str(round_.index): round_ for round_ in answer.rounds}
    if argument not in numbered:
        raise InputError(f"There is no round {argument!r}; the last answer has the rounds {', '.join(numbered)}.")
    shell.screen.markup(round_line(numbered[argument], chosen=numbered[argument].index == answer.chosen))
    for step in round_steps(numbered[argument]):
        shell.screen.markup(step)
    return None


def mode_called(name: str) -> str:
    """The mode of a conversation for a name used in the chat. Raises `InputError`."""
    return MODES[_chosen(name, tuple(MODES), "mode")]


@_command("mode", "who answers: the documents, a teacher or a coach", "[plain|teacher|coach]", lambda: tuple(MODES))
async def _mode(shell: Shell, argument: str) -> NextAction:
    chat = shell.chat
    shell.screen.line(await chat.hold(mode=mode_called(argument)) if argument else notice(chat.socratic))
    return None


@_command("level", "how little the coach reveals", "[1|2|3]", lambda: tuple(map(str, levels())))
async def _level(shell: Shell, argument: str) -> NextAction:
    if argument:
        level = int(_chosen(argument, tuple(map(str, levels())), "level"))
        shell.screen.line(await shell.chat.hold(mode="coach", level=level))
    else:
        shell.screen.line(notice(shell.chat.socratic))
    return None


@_command("topic", "the topic of the coach's questions", "[NAME|any]")
async def _topic(shell: Shell, argument: str) -> NextAction:
    if argument:
        shell.screen.line(await shell.chat.hold(mode="coach", topic="" if argument == "any" else argument))
        return None
    shell.screen.line(topic_notice(shell.chat.socratic))
    _show_some(shell, [topic.name for topic in shell.chat.topics])
    return None


@_command("model", "the models in use; with a name, switch to that provider", "[NAME]", lambda: ("auto", *providers()))
async def _model(shell: Shell, argument: str) -> NextAction:
    if not argument:
        shell.screen.line(shell.models())
        return None
    changes = {**shell.changes, **provider_changes(shell, argument)}
    choose_provider(shell.load(**changes))  # validates the provider before anything is closed
    return Reopen(changes=changes)


def provider_changes(shell: Shell, name: str) -> dict[str, object]:
    """The settings that switch to the named provider with its own address and models.

    LLM_BASE_URL and the model names apply to the provider with which the session began; they are not used for
    another one, and its key is not sent there.
    """
    own = shell.load()
    changes = {"llm_base_url": None, "flash_model": None, "pro_model": None, "model_roles": ModelRoles()}
    if name in {choose_provider(own).provider.name, "auto", COMPATIBLE}:
        changes = {field: getattr(own, field) for field in changes}
    return {"llm_provider": name, **changes}


@_command("cost", "calls, tokens and dollars of this session")
async def _cost(shell: Shell, argument: str) -> NextAction:
    shell.screen.line(f"This session so far: {spending(shell.totals)}.")
    return None


@_command("reset", "forget the conversation", "[--yes]")
async def _reset(shell: Shell, argument: str) -> NextAction:
    forgotten = shell.chat.history.turns
    if argument not in {"", "--yes"}:
        raise InputError(f"Unknown value {argument!r} for /reset; write /reset, or /reset --yes to skip the question.")
    if forgotten and not argument and shell.confirmed is not None:
        question = f"Delete this conversation with {counted(forgotten, 'question')} and the answers?"
        if not await shell.confirmed(question):
            shell.screen.line("Nothing was deleted.")
            return None
    await shell.chat.reset()
    shell.last = shell.coached = None
    shell.screen.line(f"Forgotten: {counted(forgotten, 'question')} and the answers.")
    return None


@_command("save", "write the whole conversation to a new Markdown file", "FILE")
async def _save(shell: Shell, argument: str) -> NextAction:
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
    return None


@_command("quit", "leave; so does Ctrl+D")
async def _quit(shell: Shell, argument: str) -> NextAction:
    return Leave()
