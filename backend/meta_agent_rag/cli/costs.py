"""`marag prices` and `marag balance`: prices per million tokens, and the balance of the DeepSeek account."""

from datetime import UTC, datetime

from ..wording import FREE
from .shared.command import Assignments, Json, command, console, print_json, run, settings_of, show


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
