"""`marag prices` and `marag balance`: what a million tokens cost, and what is left on the DeepSeek account."""

from datetime import UTC, datetime

import typer

from .shared.command import Assignments, Debug, Json, console, print_json, reporting, run


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("prices")(prices)
    app.command("balance")(balance)


@reporting
def prices(set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Show the dated tariffs, and the prices of the configured models."""
    from ..llm.pricing import million_token_prices, tariff_book
    from ..llm.providers import choose_provider
    from ..settings import Settings

    choice = choose_provider(Settings.load(set_ or ()))
    now = datetime.now(UTC)
    known = {model: million_token_prices(model, choice.provider.prices, now) for model in choice.models.values()}
    models = {tier: {"model": model, "usd_per_million": known[model]} for tier, model in choice.models.items()}
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
        listed = ", ".join(f"{kind} {amount}" for kind, amount in (known[model] or {}).items())
        screen.print(f"  {tier}: {model}: {listed or 'no known price'}")
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
    from ..settings import Settings

    account = run(account_balance(Settings.load(set_ or ())))
    if json_:
        print_json(account.model_dump(mode="json"))
        return
    for info in account.balance_infos:
        shares = f"{info.granted_balance} granted, {info.topped_up_balance} topped up"
        console().print(f"{info.total_balance} {info.currency} left ({shares})")
    if not account.is_available:
        console().print("The account cannot serve calls; top it up.")
