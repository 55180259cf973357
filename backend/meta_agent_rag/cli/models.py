"""`marag models`, `prices` and `balance`: local models and their download, prices, and what is left to spend."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..discovery import named
from ..errors import InputError
from ..wording import FREE
from .shared.command import (
    Assignments,
    Debug,
    Json,
    command,
    complain,
    console,
    group,
    plain,
    print_json,
    reporting,
    run,
    settings_of,
    show,
)

if TYPE_CHECKING:
    from ..llm.local import LocalModel
    from ..settings import Settings

_STOPPED = 130


_MODELS = group("models", "Models that run on this machine, and their download.", invoke_without_command=True)


@_MODELS.callback()
@reporting
def models(context: typer.Context, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """List models for EMBEDDED_MODEL with size, licence and memory; `marag models get NAME` downloads one."""
    if context.invoked_subcommand is not None:
        return
    from ..llm.local import AUTO, PACKAGED, listed_model, local_models

    settings = settings_of(set_)
    taken = listed_model(settings.model_copy(update={"embedded_model": AUTO}))
    rows = [_row(model, settings, taken) for model in local_models().values()]
    if json_:
        print_json(rows)
        return
    screen = console()
    screen.print(f"[bold]{'model':14}{'parameters':>10}{'download':>11}{'memory':>10}  {'licence':12}[/]")
    for row in rows:
        figures = f"{row['parameters']:>9}B{row['bytes'] / 1e9:>8.1f} GB{row['memory'] / 1e9:>7.1f} GB"
        notes = ["downloaded"] * row["downloaded"] + ["chosen by auto"] * row["auto"]
        notes += [] if row["fits"] else ["too large for this machine"]
        screen.print(f"{row['name']:14}{figures}  {row['licence']:12}{', '.join(notes)}".rstrip())
    screen.print(f"`auto` chooses {PACKAGED if taken is None else taken.name}{' (packaged)' if taken is None else ''}.")


@command(_MODELS)
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A model in the list.")],
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Download a model from the Hugging Face hub and check its SHA-256; continues an interrupted download."""
    from ..llm.local import PACKAGED, fetch, fits, local_models

    name = name.strip().lower()
    if name == PACKAGED:
        raise InputError(f"{PACKAGED} is packaged and needs no download; `marag models` lists larger models.")
    settings = settings_of(set_)
    model = named("model", name, local_models())
    if not fits(model, settings):
        complain(
            f"{model.name} needs {model.memory(settings) / 1e9:.1f} GB of memory, more than this machine has; `auto` "
            "will not choose it."
        )
    try:
        path = fetch(model, settings)
    except KeyboardInterrupt:
        complain(f"Stopped. The partial download is kept; `marag models get {model.name}` continues it.")
        raise typer.Exit(_STOPPED) from None
    about = {"name": model.name, "path": path, "sha256": model.sha256}
    show(about, f"Downloaded {model.name}: {plain(path)}", json_=json_)


def _row(model: "LocalModel", settings: "Settings", taken: "LocalModel | None") -> dict[str, Any]:
    from ..llm.local import fits

    return {
        **model.model_dump(mode="json", exclude={"attention"}),
        "memory": model.memory(settings),
        "path": model.path(settings),
        "downloaded": model.path(settings).is_file(),
        "fits": fits(model, settings),
        "auto": model == taken,
    }


@command()
def prices(set_: Assignments = None, json_: Json = False) -> None:
    """Show the dated tariffs, and the prices of the configured models."""
    from ..llm.pricing import million_token_prices, tariff_book
    from ..llm.providers import choose_provider

    settings = settings_of(set_)
    choice = choose_provider(settings)
    now = datetime.now(UTC)
    known = {
        tier: million_token_prices(endpoint.model, endpoint.provider.prices, now)
        for tier, endpoint in choice.tiers.items()
    }
    models = {tier: {"model": model, "usd_per_million": known[tier]} for tier, model in choice.models.items()}
    book = tariff_book()
    if json_:
        print_json(
            {
                "provider": choice.provider.name,
                "at": now,
                "models": models,
                "tariffs": book.model_dump(mode="json")["tariffs"],
            }
        )
        return
    screen = console()
    screen.print(f"[bold]{choice.provider.label}[/] ({choice.reason}), prices in USD per million tokens now:")
    for tier, model in choice.models.items():
        listed = ", ".join(f"{kind} {amount}" for kind, amount in (known[tier] or {}).items())
        unpriced = FREE if choice.tiers[tier].is_embedded else "no known price"
        screen.print(f"  {tier}: {model}: {listed or unpriced}")
    screen.print("[bold]Dated tariffs[/] (off-peak)")
    for tariff in book.tariffs:
        span = f"{tariff.since or '...'} to {tariff.until or '...'}"
        screen.print(
            f"  {' / '.join(tariff.models)}, {span}: cache hit {tariff.cache_hit}, cache miss {tariff.cache_miss}, "
            f"completion {tariff.completion}"
        )


@command()
def balance(set_: Assignments = None, json_: Json = False) -> None:
    """Show the balance of the DeepSeek account."""
    from ..llm.connections import account_balance

    account = run(account_balance(settings_of(set_)))
    lines = [
        f"{one.total_balance} {one.currency} left ({one.granted_balance} granted, {one.topped_up_balance} topped up)"
        for one in account.balance_infos
    ]
    lines += [] if account.is_available else ["The account cannot serve calls; top it up."]
    show(account.model_dump(mode="json"), *lines, json_=json_)
