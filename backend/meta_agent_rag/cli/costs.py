"""`marag prices` and `marag balance`: prices per million tokens, the balance of the DeepSeek account, and whether
the ledger agrees with it.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..wording import FREE
from .shared.command import Assignments, Debug, Json, console, print_json, reporting, run, settings_of


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Dated tariffs, prices of the configured models, and the bill.", invoke_without_command=True
    )
    group.callback()(prices)
    group.command("reconcile")(reconcile)
    app.add_typer(group, name="prices")
    app.command("balance")(balance)


@reporting
def prices(context: typer.Context, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Show the dated tariffs, and the prices of the configured models."""
    if context.invoked_subcommand is not None:
        return
    from ..llm.pricing import million_token_prices, priced_model, tariff_book
    from ..llm.providers import choose_provider

    settings = settings_of(set_)
    choice = choose_provider(settings)
    now = datetime.now(UTC)
    known = {
        tier: million_token_prices(*priced_model(settings, endpoint, at=now), now)
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


@reporting
def balance(set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Show the balance of the DeepSeek account."""
    from ..llm.balance import account_balance

    account = run(account_balance(settings_of(set_)))
    if json_:
        print_json(account.model_dump(mode="json"))
        return
    for info in account.balance_infos:
        shares = f"{info.granted_balance} granted, {info.topped_up_balance} topped up"
        console().print(f"{info.total_balance} {info.currency} left ({shares})")
    if not account.is_available:
        console().print("The account cannot serve calls; top it up.")


@reporting
def reconcile(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Folders of benchmark runs made since then.")
    ] = None,
    start: Annotated[bool, typer.Option("--start", help="Store the current balance for a later comparison.")] = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the ledger with the decrease of the DeepSeek balance since `marag prices reconcile --start`.

    Counts the calls of this data folder and of the given runs. The balance is reported in cents and may lag.
    """
    from ..llm.balance import BalanceReading, account_balance, keep_reading, kept_reading, reconciled
    from ..llm.ledger import read_ledger

    settings = settings_of(set_)
    named = {run.resolve(): run for run in runs or ()}  # a run that is named twice is counted once
    ledgers = [settings.marag_data_dir / "ledger.jsonl", *(run / "calls.jsonl" for run in named.values())]
    for ledger in ledgers[1:]:
        if not ledger.is_file():
            raise InputError(f"{str(ledger.parent)!r} is not a run folder: it has no {ledger.name}; check the path.")
    before = None if start else kept_reading(settings.marag_data_dir)
    now = BalanceReading.of(run(account_balance(settings)), datetime.now(UTC))
    if before is None:
        keep_reading(now, settings.marag_data_dir)
        _tell({"at": now.at, "balance_usd": now.usd}, f"{now.usd} USD, stored for a later comparison.", json_=json_)
        return
    found = reconciled(before, now, (row for ledger in ledgers for row in read_ledger(ledger)))
    unknown = f" ({found.unknown} without a known bill)" if found.unknown else ""
    words = (
        f"Since {before.at:%Y-%m-%d %H:%M} UTC the account balance fell by {found.lost_usd} USD, and the ledger has "
        f"{found.paid_usd:.6f} USD for {found.calls} calls{unknown}: a difference of {found.difference_usd:+.6f} USD."
    )
    figures = {
        "since": before.at,
        "until": now.at,
        "lost_usd": found.lost_usd,
        "ledger_usd": found.paid_usd,
        "difference_usd": found.difference_usd,
        "calls": found.calls,
        "unknown": found.unknown,
    }
    _tell(figures, words, json_=json_)


def _tell(figures: dict[str, object], words: str, *, json_: bool) -> None:
    if json_:
        print_json(figures)
    else:
        console().print(words)
