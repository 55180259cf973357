"""`marag ask`: one question over a corpus."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Assignments, Debug, Json, console, plain, print_json, reporting, run

if TYPE_CHECKING:
    from ..agent.engine import Answer
    from ..agent.grounded import GroundedAnswer
    from ..llm.ledger import Totals
    from ..retrieval.passage import Passage
    from ..settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ask")(ask)


@reporting
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    corpus: Annotated[str, typer.Option(help="The corpus to search; `sample` is built on first use.")] = "sample",
    grounded: Annotated[
        bool, typer.Option("--grounded", help="Answer from the documents alone, or say NOT FOUND.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show every round: draft, signals, diagnosis, repair.")
    ] = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Answer a question over a corpus, doubting and repairing the answer where it is inadequate."""
    from ..settings import Settings

    settings = Settings.load(set_ or ())
    from_documents = run(_grounded(question, corpus, settings)) if grounded else None
    result = run(_answer(question, corpus, settings)) if from_documents is None else from_documents.answer
    if json_:
        print_json(_as_json(result) | ({} if from_documents is None else _grounded_as_json(from_documents)))
        return
    if trace:
        _show_evidence(result)
        _show_rounds(result)
    if from_documents is None:
        _show_answer(result)
    else:
        _show_grounded(from_documents)


async def _answer(question: str, corpus: str, settings: "Settings") -> "Answer":
    from ..asking import answer

    return await answer(question, corpus=corpus, settings=settings)


async def _grounded(question: str, corpus: str, settings: "Settings") -> "GroundedAnswer":
    from ..asking import grounded_answer

    return await grounded_answer(question, corpus=corpus, settings=settings)


def _show_grounded(result: "GroundedAnswer") -> None:
    """The checked text, where its citations lead, and how far it can be relied on."""
    screen = console()
    screen.print(plain(result.text))
    for citation in result.citations:
        place = ", ".join(part for part in (citation.name, citation.section, citation.pages) if part)
        screen.print(f"  [dim]{plain(place)}: {plain(citation.snippet)}[/]")
    if result.confidence is not None:
        screen.print(f"[dim]confidence {result.confidence.level} ({result.confidence.score:.2f})[/]")
    _show_totals(result.answer, result.totals)


def _grounded_as_json(result: "GroundedAnswer") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "answer": result.text,
        "short_answer": result.short_answer,
        "refused": result.refused,
        "citations": [asdict(citation) for citation in result.citations],
        "claims": [{**asdict(claim), **asdict(support)} for claim, support in result.claims],
        "removed_citations": result.removed,
        "leaks": result.leaks,
        "confidence": None if result.confidence is None else asdict(result.confidence),
        "totals": asdict(result.totals),
    }


def _show_answer(result: "Answer") -> None:
    screen = console()
    screen.print(f"[bold]{plain(result.short_answer)}[/]")
    if result.text != result.short_answer:
        screen.print(plain(result.text))
    packed = result.rounds[result.chosen].packing.packed_ids
    passages = {found.passage.id: found.passage for found in result.evidence}
    for number, identity in enumerate(packed, start=1):
        screen.print(f"  [dim]{plain(f'[{number}]')} {plain(_place(passages[identity]))}[/]")
    _show_totals(result, result.totals)


def _show_totals(result: "Answer", totals: "Totals") -> None:
    screen, rounds = console(), len(result.rounds)
    cost = "cost unknown" if totals.cost_usd is None else f"{totals.cost_usd:.6f} USD"
    screen.print(
        f"[dim]{rounds} round{'s' if rounds > 1 else ''}, stopped: {result.stop_reason}; {totals.calls} calls, "
        f"{totals.prompt_tokens} + {totals.completion_tokens} tokens, {cost}[/]"
    )


def _place(passage: "Passage") -> str:
    """Where a passage stands: title, section, pages."""
    pages = None
    if passage.start_page is not None:
        many = passage.end_page not in {None, passage.start_page}
        pages = f"pp. {passage.start_page}-{passage.end_page}" if many else f"p. {passage.start_page}"
    section = passage.section if passage.section != passage.title else None
    return ", ".join(part for part in (passage.title or passage.id, section, pages) if part)


def _show_evidence(result: "Answer") -> None:
    """What was found, by which scores and along which link; and what was dropped, and why."""
    screen = console()
    screen.print("[bold]Evidence[/]")
    titles = {found.passage.id: found.passage.title or found.passage.id for found in result.evidence}
    for found in result.evidence:
        scores = [
            f"{name} {value:.2f}"
            for name, value in (("cosine", found.dense), ("BM25", found.lexical))
            if value is not None
        ]
        link = [] if found.via is None else [f"mentioned in {titles.get(found.via, found.via)}"]
        details = "; ".join([*scores, *link])
        screen.print(f"  {plain(_place(found.passage))} [dim]{plain(details)}[/]")
    for dropped in result.dropped:
        screen.print(f"  [yellow]dropped[/] {plain(dropped.passage_id)}: {plain(dropped.reason)}")


def _show_rounds(result: "Answer") -> None:
    screen = console()
    for round_ in result.rounds:
        chosen = " [green](chosen)[/]" if round_.index == result.chosen else ""
        screen.print(f"[bold]Round {round_.index}[/]{chosen}")
        if round_.plan is not None:
            screen.print(f"  repair of [yellow]{round_.plan.deficit}[/]: {plain(round_.plan.directive)}")
            for query in round_.plan.queries:
                screen.print(f"  looked up: {plain(query)}")
        screen.print(f"  draft: {plain(round_.draft.answer)}  ->  {plain(round_.draft.short_answer)}")
        for quote in round_.draft.quotes:
            screen.print(f"  quote: {plain(quote)}")
        if round_.reference is not None:
            screen.print(f"  reference: {plain(round_.reference.short_answer or round_.reference.error)}")
        if round_.signals is not None:
            screen.print(
                f"  monitor: {'satisfied' if round_.satisfied else 'not satisfied'} "
                f"({_signals(round_.signals, round_.chance)})"
            )
        if round_.diagnosis is not None:
            diagnosis = round_.diagnosis
            screen.print(f"  {diagnosis.source}: [yellow]{diagnosis.deficit}[/], {plain(diagnosis.rationale)}")


def _signals(signals: Any, chance: float | None) -> str:
    cosine = "-" if signals.similarity is None else f"{signals.similarity:.2f}"
    verbatim = "-" if signals.verbatim is None else f"{signals.verbatim:.0%}"
    agreement = {True: "yes", False: "no", None: "-"}[signals.agreement]
    right = "" if chance is None else f", chance of being right {chance:.2f}"
    return f"cosine {cosine}, same short answer {agreement}, quotes verbatim {verbatim}{right}"


def _as_json(result: "Answer") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "question": result.question,
        "answer": result.text,
        "short_answer": result.short_answer,
        "stop_reason": result.stop_reason,
        "chosen": result.chosen,
        "fired": result.fired,
        "rounds": [asdict(round_) for round_ in result.rounds],
        "evidence": [asdict(found) for found in result.evidence],
        "dropped": [asdict(dropped) for dropped in result.dropped],
        "totals": asdict(result.totals),
    }
