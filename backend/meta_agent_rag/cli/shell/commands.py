"""The slash commands: an immutable table, with one small function each."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from ...chat.session import notice, topic_notice
from ...chat.transcript import as_markdown, coaching_lines, source_lines
from ...errors import InputError
from ...wording import counted
from ..shared.command import plain
from ..shared.display import dropped_line, round_line, show_round, spending
from .documents import compare, show_documents, summarise
from .state import Leave, NextAction, Reopen, Shell

TOPICS = 40
"""The number of titles that `/topics` shows."""

CLAIMS = {"mark": "mark", "strict": "drop"}
"""The names that `/claims` uses for the values of UNSUPPORTED_CLAIMS."""

MODES = {"plain": "", "teacher": "teacher", "coach": "coach"}
"""The names that `/mode` uses for the modes of a conversation."""

ANY_TOPIC = "any"
"""The name that `/topic` uses for all topics."""

_MEANT = {
    "mark": "claims not supported by any cited passage are marked",
    "strict": "claims not supported by any cited passage are left out",
}

Run: TypeAlias = Callable[[Shell, str], Awaitable[NextAction]]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A slash command: `run` receives the text after the name; `values` are the allowed ones."""

    name: str
    meaning: str
    run: Run
    argument: str = ""
    values: Callable[[], Sequence[str]] = tuple

    @property
    def usage(self) -> str:
        """The command as the user types it."""
        return f"/{self.name} {self.argument}".rstrip()


def is_command(line: str) -> bool:
    """Is a line meant for the shell rather than the documents?"""
    return line.lstrip().startswith("/")


async def run_command(shell: Shell, line: str) -> NextAction:
    """Run a command line. Raises `InputError` for an unknown command, and the command's own errors."""
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    command = next((known for known in COMMANDS if known.name == name.casefold()), None)
    if command is None:
        raise InputError(f"Unknown command {'/' + name!r}; {_nearest(name.casefold())}.")
    return await command.run(shell, argument.strip())


def completions(typed: str, commands: Sequence[Command]) -> Iterator[tuple[str, str]]:
    """The possible completions of a line, each with its meaning: a command's name, then one of its values.

    >>> [text for text, _ in completions("/claims s", COMMANDS)]
    ['/claims strict']
    """
    if not typed.startswith("/"):
        return
    name, blank, begun = typed.partition(" ")
    for command in commands:
        if not blank and f"/{command.name}".startswith(name):
            yield f"/{command.name}", command.meaning
        elif blank and f"/{command.name}" == name:
            yield from ((f"{name} {value}", "") for value in command.values() if value.startswith(begun))


def _nearest(name: str) -> str:
    names = [command.name for command in COMMANDS]
    begun = [known for known in names if name and known.startswith(name)]
    near = begun or get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(f'/{known}' for known in near)}" if near else "/help lists them"


async def _help(shell: Shell, argument: str) -> NextAction:
    width = max(len(command.usage) for command in COMMANDS)
    for command in COMMANDS:
        shell.screen.line(f"{command.usage:<{width}}  {command.meaning}")
    return None


async def _history(shell: Shell, argument: str) -> NextAction:
    history = shell.study.history
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


async def _sources(shell: Shell, argument: str) -> NextAction:
    if not shell.study.sources:
        shell.screen.line("The last answer has no citations." if shell.last else "No citations yet.")
    for number, source in enumerate(shell.study.sources, start=1):
        place, snippet = source_lines(source)
        shell.screen.markup(f"[bold]{number}. {plain(place)}[/]")
        shell.screen.line(f"   {snippet}")
    return None


async def _topics(shell: Shell, argument: str) -> NextAction:
    from ...retrieval.corpus.corpus import read_titles

    found = await asyncio.to_thread(read_titles, shell.settings.marag_data_dir, shell.study.corpus)
    titles = list(dict.fromkeys(" ".join(title.split()) for title in found))
    for title in titles[:TOPICS]:
        shell.screen.line(f"- {title}")
    if len(titles) > TOPICS:
        shell.screen.line(f"and {len(titles) - TOPICS} more")
    return None


async def _sessions(shell: Shell, argument: str) -> NextAction:
    for one in await shell.study.sessions.listed():
        mark = "*" if one.name == shell.study.name else "-"
        facts = f"{one.corpus}, {counted(one.turns, 'question')}, {one.saved:%Y-%m-%d %H:%M} UTC"
        shell.screen.line(f"{mark} {one.name}: {facts}")
    return None


async def _trace(shell: Shell, argument: str) -> NextAction:
    if shell.coached is not None:
        for line in coaching_lines(shell.coached.trace):
            shell.screen.line(line)
        return None
    if shell.last is None:
        shell.screen.line("No rounds yet; ask a question about the documents.")
        return None
    answer = shell.last.answer
    numbers = [str(round_.index) for round_ in answer.rounds]
    if argument and argument not in numbers:
        raise InputError(f"There is no round {argument!r}; the last answer has the rounds {', '.join(numbers)}.")
    if not argument:
        shell.screen.note(f"{answer.question} (stopped: {answer.stop_reason}; drafts are not checked)")
    for round_ in answer.rounds:
        chosen = round_.index == answer.chosen
        if argument == str(round_.index):
            show_round(shell.screen.console, round_, chosen=chosen)
        elif not argument:
            shell.screen.markup(f"+ {round_line(round_, chosen=chosen)}")
    for dropped in () if argument else dict.fromkeys(answer.dropped):
        shell.screen.markup(f"- {dropped_line(dropped)}")
    return None


async def _mode(shell: Shell, argument: str) -> NextAction:
    study = shell.study
    shell.screen.line(await study.hold(mode=mode_called(argument)) if argument else notice(study.socratic))
    return None


def mode_called(name: str) -> str:
    """The mode of a conversation for a name used in the chat. Raises `InputError`."""
    if name not in MODES:
        raise InputError(f"There is no mode {name!r}; choose from: {', '.join(MODES)}.")
    return MODES[name]


async def _level(shell: Shell, argument: str) -> NextAction:
    if argument and argument not in _levels():
        raise InputError(f"There is no level {argument!r}; choose from: {', '.join(_levels())}.")
    study = shell.study
    said = await study.hold(mode="coach", level=int(argument)) if argument else notice(study.socratic)
    shell.screen.line(said)
    return None


async def _topic(shell: Shell, argument: str) -> NextAction:
    study = shell.study
    if argument:
        shell.screen.line(await study.hold(mode="coach", topic="" if argument == ANY_TOPIC else argument))
        return None
    shell.screen.line(topic_notice(study.socratic))
    for topic in study.topics[:TOPICS]:
        shell.screen.line(f"- {topic.name}")
    return None


def _levels() -> tuple[str, ...]:
    from ...chat.coach.levels import levels

    return tuple(map(str, levels()))


async def _claims(shell: Shell, argument: str) -> NextAction:
    now = next(name for name, value in CLAIMS.items() if value == shell.settings.unsupported_claims)
    if argument in {"", now}:
        shell.screen.line(f"{now}: {_MEANT[now]}.")
        return None
    if argument not in CLAIMS:
        raise InputError(f"Unknown value {argument!r} for /claims; choose from: {', '.join(CLAIMS)}.")
    return Reopen(changes={"unsupported_claims": CLAIMS[argument]}, said=f"{argument}: {_MEANT[argument]}.")


async def _model(shell: Shell, argument: str) -> NextAction:
    from ...llm.providers import choose_provider

    if not argument:
        shell.screen.line(models_of(shell))
        return None
    changes = {**shell.changes, **provider_changes(shell, argument)}
    choose_provider(shell.load(**changes))  # validates the provider before anything is closed
    return Reopen(changes=changes, said="")


def provider_changes(shell: Shell, name: str) -> dict[str, object]:
    """The settings that switch to the named provider with its own address and models.

    LLM_BASE_URL and the model names apply to the provider with which the session began; they are not used for
    another one, and its key is not sent there.
    """
    from ...llm.providers import COMPATIBLE, choose_provider
    from ...settings import ModelRoles

    own = shell.load()
    changes = {"llm_base_url": None, "flash_model": None, "pro_model": None, "model_roles": ModelRoles()}
    if name in {choose_provider(own).provider.name, "auto", COMPATIBLE}:
        changes = {field: getattr(own, field) for field in changes}
    return {"llm_provider": name, **changes}


def models_of(shell: Shell) -> str:
    """The provider and the models of both tiers, in one sentence."""
    choice = shell.study.conversation.model.choice
    models = [f"{tier} {choice.models[tier]}" for tier in ("flash", "pro")]
    return f"Model: {', '.join(models)}; {choice.provider.label}."


def _provider_names() -> Sequence[str]:
    from ...llm.providers import providers

    return ("auto", *providers())


async def _cost(shell: Shell, argument: str) -> NextAction:
    shell.screen.line(f"This session so far: {spending(shell.totals)}.")
    return None


async def _reset(shell: Shell, argument: str) -> NextAction:
    forgotten = shell.study.history.turns
    if argument not in {"", "--yes"}:
        raise InputError(f"Unknown value {argument!r} for /reset; write /reset, or /reset --yes to skip the question.")
    if forgotten and not argument and shell.confirmed is not None:
        question = f"Delete this conversation with {counted(forgotten, 'question')} and the answers?"
        if not await shell.confirmed(question):
            shell.screen.line("Nothing was deleted.")
            return None
    await shell.study.reset()
    shell.last = shell.coached = None
    shell.screen.line(f"Forgotten: {counted(forgotten, 'question')} and the answers.")
    return None


async def _save(shell: Shell, argument: str) -> NextAction:
    if not argument:
        raise InputError("/save needs a file name; write /save FILE.")
    study = shell.study
    file = Path(argument.strip("\"'"))
    text = as_markdown(study.name, study.corpus, study.history, await study.said(), study.sources)
    await asyncio.to_thread(_write_new, file, text)
    shell.screen.line(f"Saved to {str(file)!r}.")
    return None


def _write_new(file: Path, text: str) -> None:
    try:
        with file.expanduser().open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise InputError(f"{str(file)!r} already exists and was left unchanged; give another name.") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The file {str(file)!r} cannot be written ({reason}); give another path.") from None


async def _quit(shell: Shell, argument: str) -> NextAction:
    return Leave()


COMMANDS: tuple[Command, ...] = (
    Command(name="help", meaning="this list", run=_help),
    Command(name="history", meaning="what is remembered of the conversation", run=_history),
    Command(name="sources", meaning="the sources of the last answer", run=_sources),
    Command(name="documents", meaning="the documents; @NAME in a question limits it to one", run=show_documents),
    Command(
        name="summarise",
        argument="[NAME...|all]",
        meaning="whole documents section by section, every point cited",
        run=summarise,
    ),
    Command(
        name="compare", argument="NAME NAME", meaning="what two documents share, and what only one says", run=compare
    ),
    Command(name="sessions", meaning="all conversations; `marag sessions` renames and deletes", run=_sessions),
    Command(name="topics", meaning="the topics of the documents, by title", run=_topics),
    Command(
        name="trace",
        argument="[N]",
        meaning="the last answer's rounds with unchecked drafts, or one in full",
        run=_trace,
    ),
    Command(
        name="mode",
        argument="[plain|teacher|coach]",
        meaning="who answers: the documents, a teacher or a coach",
        run=_mode,
        values=lambda: tuple(MODES),
    ),
    Command(name="level", argument="[1|2|3]", meaning="how little the coach reveals", run=_level, values=_levels),
    Command(name="topic", argument="[NAME|any]", meaning="the topic of the coach's questions", run=_topic),
    Command(
        name="claims",
        argument="[mark|strict]",
        meaning="how to treat claims not supported by any cited passage",
        run=_claims,
        values=lambda: tuple(CLAIMS),
    ),
    Command(
        name="model",
        argument="[NAME]",
        meaning="the models in use; with a name, switch to that provider",
        run=_model,
        values=_provider_names,
    ),
    Command(name="cost", meaning="calls, tokens and dollars of this session", run=_cost),
    Command(name="reset", argument="[--yes]", meaning="forget the conversation", run=_reset),
    Command(name="save", argument="FILE", meaning="write the whole conversation to a new Markdown file", run=_save),
    Command(name="quit", meaning="leave; so does Ctrl+D", run=_quit),
)
