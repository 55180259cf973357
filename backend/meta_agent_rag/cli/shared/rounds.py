"""Displays the history of an answer: its rounds, the places of its passages, and its cost."""

from typing import TYPE_CHECKING, Any

from ...wording import FREE, counted
from .command import plain
from .derivations import show_derivation, show_vote

if TYPE_CHECKING:
    from ...agent.state import Round, Signals
    from ...llm.ledger import Totals
    from ...llm.providers import Choice
    from ...retrieval.passage import Passage
    from ...retrieval.screening import Dropped


def show_round(screen: Any, round_: "Round", *, chosen: bool) -> None:
    """One round in full on a Rich console: draft, quotes, second answer, signals, diagnosis and repair."""
    from ...demo.words import repair

    screen.print(f"[bold]Round {round_.index}[/]{' [green](chosen)[/]' if chosen else ''}")
    if round_.plan is not None:
        screen.print(f"  repair of [yellow]{plain(round_.plan.deficit)}[/]: {plain(repair(round_.plan))}")
        for query in round_.plan.queries:
            screen.print(f"  looked up: {plain(query)}")
    screen.print(f"  draft: {plain(round_.draft.answer)}  ->  {plain(round_.draft.short_answer)}")
    for quote in round_.draft.quotes:
        screen.print(f"  quote: {plain(quote)}")
    if round_.second_answer is not None:
        screen.print(f"  second answer: {plain(round_.second_answer.short_answer or round_.second_answer.error)}")
    if round_.derivation is not None:
        show_derivation(screen, round_.derivation)
    if round_.vote is not None:
        show_vote(screen, round_.vote, round_.derivation)
    if round_.signals is not None:
        screen.print(f"  monitor: {_judged(round_)} ({_signals(round_.signals, round_.p_correct)})")
    if round_.diagnosis is not None:
        diagnosis = round_.diagnosis
        screen.print(f"  {diagnosis.source}: [yellow]{plain(diagnosis.deficit)}[/], {plain(diagnosis.rationale)}")


def round_line(round_: "Round", *, chosen: bool) -> str:
    """One round in one line, as markup."""
    repair = [] if round_.plan is None else [f"repair of [yellow]{plain(round_.plan.deficit)}[/]"]
    judged = [] if round_.signals is None else [f"monitor {_judged(round_)}"]
    found = [] if round_.diagnosis is None else [f"{round_.diagnosis.source}: {plain(round_.diagnosis.deficit)}"]
    draft = f"draft: {plain(' '.join(round_.draft.short_answer.split()))}"
    mark = " [green](chosen)[/]" if chosen else ""
    return f"[bold]Round {round_.index}[/]{mark}: {'; '.join([*repair, draft, *judged, *found])}"


def dropped_line(dropped: "Dropped") -> str:
    """A passage that was left out, and why, as markup."""
    return f"[yellow]dropped[/] {plain(dropped.passage_id)}: {plain(dropped.reason)}"


def place(passage: "Passage") -> str:
    """The place of a passage: title, section, pages."""
    pages = None
    if passage.start_page is not None:
        many = passage.end_page not in {None, passage.start_page}
        pages = f"pp. {passage.start_page}-{passage.end_page}" if many else f"p. {passage.start_page}"
    section = passage.section if passage.section != passage.title else None
    return ", ".join(part for part in (passage.title or passage.id, section, pages) if part)


def spending(totals: "Totals") -> str:
    """Calls, tokens and dollars; unknown prices are reported as such, and a local model as free."""
    unpriced = FREE if totals.on_this_machine else "cost unknown"
    cost = unpriced if totals.cost_usd is None else f"{totals.cost_usd:.6f} USD"
    failed = f", and at most {totals.failed_usd:.6f} USD for failed calls" if totals.failed_usd else ""
    tokens = f"{totals.prompt_tokens} + {totals.completion_tokens} tokens"
    if totals.unmetered_calls:
        known = f"{tokens} and an unknown number in" if totals.prompt_tokens else "an unknown number of tokens in"
        tokens = f"{known} {counted(totals.unmetered_calls, 'call')}"
    return f"{counted(totals.calls, 'call')}, {tokens}, {cost}{failed}"


def small_model_hint(choice: "Choice") -> str | None:
    """A hint for a user whose question was not answered because of the packaged model; `None` otherwise."""
    from ...llm.local.catalogue import local_models
    from ...llm.providers import EMBEDDED, providers

    if choice.provider.name != EMBEDDED or choice.models["flash"] != providers()[EMBEDDED].flash:
        return None
    first = next(iter(local_models().values()))
    return (
        f"The packaged {choice.models['flash']} is very small, and most of its answers are rejected; run `marag models "
        f"get {first.name}` ({first.bytes / 1e9:.1f} GB; `marag models` lists others), or set DEEPSEEK_API_KEY (or "
        "another provider's key), or EMBEDDED_MODEL_PATH to a GGUF file of your own."
    )


def _judged(round_: "Round") -> str:
    from ...grounding.confidence import is_doubtful

    if not round_.satisfied:
        return "not satisfied"
    return "accepts it because no better answer was found" if is_doubtful(round_.p_correct) else "satisfied"


def _signals(signals: "Signals", p_correct: float | None) -> str:
    known = {
        "cosine": None if signals.similarity is None else f"{signals.similarity:.2f}",
        "same short answer": None if signals.agreement is None else "yes" if signals.agreement else "no",
        "quotes verbatim": None if signals.verbatim is None else f"{signals.verbatim:.0%}",
        "probability of being correct": None if p_correct is None else f"{p_correct:.0%}",
    }
    return ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
