"""`marag keys create|list|revoke`: access to the service."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from .shared.command import Assignments, Json, command, group, plain, run, settings_of, show

if TYPE_CHECKING:
    from ..service.access import Client, Keys
    from ..settings import Settings

T = TypeVar("T")
_KEYS = group("keys", "Manage the keys of the service.")


@command(_KEYS)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The owner of the key, as shown in lists and records.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="A scope: ask, ingest or admin; repeatable, default: ask.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="Days until it expires; default: never.")] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="A corpus that it may use; repeatable, default: all that the service was started with."),
    ] = None,
    daily_usd: Annotated[float | None, typer.Option(help="Maximum cost of its questions per UTC day.")] = None,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Create a key and show it once."""
    from ..retrieval.corpus.corpus import corpus_folder

    settings = settings_of(set_)
    for one in corpus or ():
        corpus_folder(settings.marag_data_dir, one)  # raises for a name that no corpus can have
    options: dict[str, Any] = {"days": days, "daily_usd": daily_usd, "corpora": corpus}
    token, record = run(_with_keys(settings, lambda keys: keys.create(name, scope or ("ask",), **options)))
    about = f"[dim]{plain(_line(record))}; it is not shown again.[/]"
    show({"key": token, **_shown(record)}, plain(token), about, json_=json_)


@command(_KEYS)
def list_(set_: Assignments = None, json_: Json = False) -> None:
    """List all keys, without their secrets."""

    records = run(_with_keys(settings_of(set_), lambda keys: keys.all()))
    lines = [plain(_line(record)) for record in records] or ["No keys yet; create one with `marag keys create NAME`."]
    show([_shown(record) for record in records], *lines, json_=json_)


@command(_KEYS)
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `marag keys list` shows it.")],
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Revoke a key; a running service rejects it within two seconds."""

    record = run(_with_keys(settings_of(set_), lambda keys: keys.revoke(id_)))
    show(_shown(record), plain(_line(record)), json_=json_)


async def _with_keys(settings: "Settings", work: "Callable[[Keys], Coroutine[Any, Any, T]]") -> T:
    from ..service.access import Keys
    from ..service.database import open_database

    async with open_database(settings) as database:
        return await work(Keys(engine=database))


def _shown(record: "Client") -> dict[str, Any]:
    kept = {name: value for name, value in vars(record).items() if name != "digest"}
    return {**kept, "state": record.state}


def _line(record: "Client") -> str:
    shown = _shown(record)
    parts = [f"{record.id}  {record.name}: {shown['state']}", f"scopes {', '.join(record.scopes)}"]
    if record.corpora is not None:
        parts.append(f"corpora {', '.join(record.corpora)}")
    if record.daily_usd is not None:
        parts.append(f"{record.daily_usd:g} USD per day")
    parts.append(f"created {record.created:%Y-%m-%d}")
    if record.expires is not None:
        parts.append(f"until {record.expires:%Y-%m-%d %H:%M} UTC")
    return ", ".join(parts)
