"""`marag balance`: what is left on the DeepSeek account."""

import typer

from .command import Assignments, Debug, Json, console, print_json, reporting, run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("balance")(balance)


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
