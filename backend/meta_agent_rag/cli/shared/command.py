"""Shared by all commands: options, one-sentence error reports, and two output formats, Rich and JSON."""

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from ...errors import InputError, MetaRagError
from ...extras import missing_module
from ...wording import printable

if TYPE_CHECKING:
    from ...settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting; `marag config show` lists them."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
_INSTALLED = "meta_agent_rag.benchmarks"
_CLONED = "benchmarks"


app = typer.Typer(
    name="marag",
    help="Multi-hop question answering that knows when its own answer is inadequate, and why.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # help without Rich: it takes half as long to appear
    pretty_exceptions_enable=False,
)


def group(name: str, about: str, *, invoke_without_command: bool = False) -> typer.Typer:
    """A group of commands, added to `marag`."""
    made = typer.Typer(
        help=about, no_args_is_help=not invoke_without_command, invoke_without_command=invoke_without_command
    )
    app.add_typer(made, name=name)
    return made


def command(of: typer.Typer = app, name: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Add a function to `marag` or a group of it, under its own name unless given, with the option `--debug`."""

    def added(function: Callable[P, T]) -> Callable[P, T]:
        reported, own = reporting(function), inspect.signature(function)
        if "debug" not in own.parameters:
            option = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
            vars(reported)["__signature__"] = own.replace(parameters=[*own.parameters.values(), option])
            reported.__annotations__ = {**function.__annotations__, "debug": Debug}
        of.command(name or function.__name__.rstrip("_"))(reported)
        return reported

    return added


def reporting(function: Callable[P, T]) -> Callable[P, T]:
    """Report an error of this package as one sentence on stderr, with its exit code; `debug` shows the traceback.

    Characters that stdout cannot encode are escaped.
    """
    takes_debug = "debug" in inspect.signature(function).parameters

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        debug = kwargs.get("debug") if takes_debug else kwargs.pop("debug", False)
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            code, sentence = 130, "Stopped."
        except BrokenPipeError:  # closed by `head`, which has read all it wanted
            raise typer.Exit(0) from None
        except (MetaRagError, ModuleNotFoundError, OSError) as error:
            known = missing_module(error, "This command") if isinstance(error, ModuleNotFoundError) else error
            if debug or known is None:
                raise
            code = known.exit_code if isinstance(known, MetaRagError) else 2
            sentence = denied(known) if isinstance(known, OSError) else str(known)
        complain(sentence)
        raise typer.Exit(code)

    return wrapped


def denied(error: OSError) -> str:
    """One sentence about what the system refused."""
    absent = isinstance(error, FileNotFoundError | NotADirectoryError)
    folder = Path(os.fsdecode(error.filename)).parent if isinstance(error.filename, str | bytes) else None
    if absent and folder is not None and not folder.is_dir():
        return f"The folder {str(folder)!r} does not exist; create it or check the path, then run the command again."
    where = f" to {error.filename!r}" if error.filename else ""
    mend = "check the path" if absent else "free disk space or fix the permissions"
    return f"The system denied access{where}: {error.strerror or error}; {mend}, then run the command again."


def settings_of(assignments: list[str] | None) -> "Settings":
    """The settings with the command's `--set` options applied; imported on first use."""
    from ...settings import Settings

    return Settings.load(assignments or ())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's asynchronous part, with the package's log messages on stderr, one per line."""
    import asyncio
    import logging

    log = logging.getLogger("meta_agent_rag")
    notes = logging.StreamHandler()
    log.addHandler(notes)
    log.setLevel(logging.INFO)
    try:
        return asyncio.run(work)
    finally:
        log.removeHandler(notes)


def complain(sentence: str) -> None:
    """Print one sentence on stderr."""
    sys.stderr.write(f"{sentence}\n")


def say(text: str = "") -> None:
    """Print a line on stdout verbatim."""
    sys.stdout.write(f"{text}\n")


def print_json(value: object) -> None:
    """Print a value as JSON on stdout; unsupported types (money, paths, times) become text.

    Characters that stdout cannot encode are escaped.
    """
    escaped = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    say(json.dumps(value, ensure_ascii=escaped, indent=2, default=str))


def show(value: object, *lines: str, json_: bool) -> None:
    """Print JSON if asked to, else these lines of Rich's markup."""
    if json_:
        print_json(value)
    for line in () if json_ else lines:
        console().print(line)


def console(**options: Any) -> Any:
    """Rich's console on stdout, imported on first use; `options` are Rich's own."""
    from rich.console import Console

    made: Any = Console(soft_wrap=True, highlight=False, emoji=False, **options)
    made.on_broken_pipe = _broken_pipe  # Rich's own ends the process with exit code 1
    return made


def _broken_pipe() -> None:
    raise BrokenPipeError


def keep_private() -> None:
    """Make the files that this process writes unreadable for other users, apart from the owner's group."""
    os.umask(os.umask(0) | 0o007)


def plain(text: object) -> str:
    """Text of unknown origin for literal output by Rich: no markup, no control characters."""
    from rich.markup import escape

    return escape(printable(text))


def confirm(step: str, question: str, *, declined: str, json_: bool = False) -> None:
    """Ask before a deletion or a cost; if nobody can be asked, or the answer is no, end the command."""
    if json_ or not sys.stdin.isatty():
        raise InputError(f"{step} needs confirmation; add --yes.")
    if not typer.confirm(question, err=True):
        complain(declined)
        raise typer.Exit(1)


def benchmark_package() -> tuple[str, Path | None]:
    """The package of the benchmark: inside ours if installed; in a clone, next to it in the returned folder.

    The folder is added to the import path.
    """
    if find_spec(_INSTALLED) is not None:
        return _INSTALLED, None
    root = Path(__file__).parents[4]
    sys.path.insert(0, str(root))
    return _CLONED, root
